import json

import numpy as np
import pytest

from core.errors import InputError
from core.store import labels as store
from core.store.database import Database
from core.store.label_files import batch_of, export_labels, import_folder, import_labels
from tests.store.labelling import SET, a_map, event


@pytest.fixture
def labelled(db):
    store.store_maps(db, [a_map("m1"), a_map("m2", length=9, split=None, seed=None)])
    store.record_events(
        db,
        [
            event(1, suggestion="block", probability=0.75, classifier="c1", happened="2026-11-20T14:00:00.5Z"),
            event(2, "m2", cls="block"),
            event(3, kind="flag"),
            event(4, kind="note", note='line\nbreak, "quote", ü'),
            event(5, "m2", kind="undo", undoes="tab:2"),
            event(6, "m2", kind="skip"),
        ],
    )
    return db


@pytest.fixture
def other(tmp_path):
    database = Database(tmp_path / "other.duckdb")
    yield database
    database.close()


def everything(db):
    return store.all_events(db), store.maps_of(db, ["m1", "m2"])


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_round_trip_loses_nothing_and_a_second_one_adds_nothing(labelled, other, tmp_path, ending):
    wave = store.ClassChange("add", "wave", title="Wave", eye="A wave.", colour="#0072B2", key="6")
    store.change_class(labelled, SET, wave, annotator="ada")
    file = tmp_path / f"labels.{ending}"
    assert export_labels(labelled, file) == 6
    first = import_labels(other, file)
    assert (first.new, first.maps, first.refused) == (6, 2, [])
    assert everything(other) == everything(labelled)
    assert store.class_events(other) == store.class_events(labelled)
    again = import_labels(other, file)
    assert (again.new, again.already) == (0, 6)
    assert everything(other) == everything(labelled)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_without_weights_the_maps_must_be_there(labelled, other, tmp_path, ending):
    file = tmp_path / f"labels.{ending}"
    export_labels(labelled, file, weights=False)
    report = import_labels(other, file)
    assert report.new == 0
    assert len(report.refused) == 6
    assert "without weights must refer to a stored map" in report.refused[0][1]
    store.store_maps(other, [a_map("m1"), a_map("m2", length=9, split=None, seed=None)])
    assert import_labels(other, file).new == 6


BAD = [
    ('{"map_id": "m1", "class": "zigzag", "class_set": "bert", "annotator": "eve"}', "zigzag"),
    ('{"map_id": "m1", "class": ', "Expecting value"),
    ("[1, 2]", "JSON object"),
    ('{"class": "block", "class_set": "bert", "annotator": "eve"}', "map_id"),
    ('{"map_id": "m9", "class": "block", "class_set": "bert", "annotator": "eve"}', "m9"),
    ('{"map_id": "m1", "class": "block", "class_set": "bert", "annotator": "eve"}', "row 1"),
    ('{"map_id": "m3", "class": "block", "class_set": "bert", "annotator": "eve", "weights": "%%"}', "base64"),
    (
        '{"map_id": "m3", "class": "block", "class_set": "bert", "annotator": "eve", "weights": "AAAA", "length": 9}',
        "checkpoint",
    ),
    (b"\xff\xfe", "utf-"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("line", "reason"), BAD, ids=[reason for _, reason in BAD])
@pytest.mark.parametrize("keep_rest", [True, False])
def test_a_bad_row_is_named_and_the_rest_kept_or_nothing(labelled, tmp_path, line, reason, keep_rest):
    good = json.dumps({"map_id": "m1", "class": "diagonal", "class_set": SET, "annotator": "eve"}).encode()
    file = tmp_path / "hand.jsonl"
    file.write_bytes(good + b"\n" + (line if isinstance(line, bytes) else line.encode()) + b"\n")
    report = import_labels(labelled, file, keep_rest=keep_rest)
    assert [number for number, _ in report.refused] == [2]
    assert reason in report.refused[0][1]
    assert (report.rows, report.new, report.already, report.maps) == (2, int(keep_rest), 0, 0)
    assert store.decided(labelled, SET, "eve") == ({"m1": "diagonal"} if keep_rest else {})


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_file_of_labels_may_have_any_unicode_encoding(labelled, tmp_path, encoding):
    row = {"map_id": "m1", "class": "diagonal", "class_set": SET, "annotator": "zoë"}
    rows = [row, row | {"map_id": "m9"}, row | {"annotator": "李"}]
    file = tmp_path / "labels.jsonl"
    file.write_bytes("\r\n\n".join(json.dumps(one, ensure_ascii=False) for one in rows).encode(encoding))
    report = import_labels(labelled, file)
    assert (report.rows, report.new, [number for number, _ in report.refused]) == (3, 2, [2])
    own = [(one["annotator"], one["class"]) for one in store.all_events(labelled) if one["batch"].startswith("file-")]
    assert own == [("zoë", "diagonal"), ("李", "diagonal")]


def test_other_files_are_refused(db, tmp_path):
    with pytest.raises(InputError, match=r"\.jsonl or \.parquet"):
        import_labels(db, _written(tmp_path / "labels.csv", "a,b"))
    with pytest.raises(InputError, match="cannot be opened"):
        import_labels(db, tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="must be Parquet"):
        import_labels(db, _written(tmp_path / "labels.parquet", "PAR?"))


def _written(file, text):
    file.write_text(text)
    return file


def test_a_folder_of_maps_without_texts_comes_in_with_its_labels_once(db, tmp_path):
    facts = {name: value for name, value in a_map("m1").items() if name not in ("weights", "tokens")}
    (tmp_path / "maps.jsonl").write_text(json.dumps(facts | {"separators": [2, 5]}) + "\n")
    weights = np.frombuffer(a_map("m1")["weights"], "<f2").reshape(6, 6)
    np.savez(tmp_path / "maps.npz", m1=weights)
    for name, class_ in (("ada", "block"), ("eve", "diagonal")):
        row = {"map_id": "m1", "class": class_, "class_set": SET, "annotator": name}
        (tmp_path / f"labels-{name}.jsonl").write_text(json.dumps(row) + "\n")
    assert [report.new for report in import_folder(db, tmp_path)] == [1, 1]
    assert [(report.new, report.already) for report in import_folder(db, tmp_path)] == [(0, 1), (0, 1)]
    (stored,) = store.maps_of(db, ["m1"])
    assert stored["tokens"] == ["[CLS]", "1", "[SEP]", "3", "4", "[SEP]"]
    assert stored["weights"] == weights.tobytes()
    assert store.decided(db, SET, "eve") == {"m1": "diagonal"}


def test_a_folder_without_maps_is_nothing(db, tmp_path):
    assert import_folder(db, tmp_path) == []


def test_an_import_reports_names_that_are_normalised_or_look_alike(labelled, tmp_path):
    rows = [{"map_id": name, "class": "block", "class_set": SET} for name in ("m1", "m2")]

    def notes(*people):
        given = [json.dumps(row | {"annotator": one}) for row, one in zip(rows, people, strict=False)]
        file = _written(tmp_path / "hand.jsonl", "\n".join(given) + "\n")
        report = import_labels(labelled, file)
        assert (report.rows, report.new + report.already, report.refused) == (len(given), len(given), [])
        return report.notes

    assert notes("eve") == []
    assert notes("eve") == []  # as before: nothing is new
    (alike,) = notes("eve", "Eve")
    assert "'Eve' and 'eve'" in alike
    assert any("' Bob@x.org' as 'bob@x.org'" in note for note in notes(" Bob@x.org"))


def test_a_file_is_known_by_sixteen_digits_of_the_hash_of_its_contents():
    assert batch_of(b"labels") == "file-d772ebb4590212c6"  # SHA-256
