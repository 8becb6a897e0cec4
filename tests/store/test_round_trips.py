"""Export, import, and the same again: random histories of labels give equal tables, whatever the form of the file."""

import gzip
import json
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.patterns import snapshot as label_snapshot
from core.store import label_files, labels
from core.store.database import Database
from tests.store.labelling import SET, a_map, event

FILES = Path(__file__).parent / "files"
TABLES = {
    "label_event": "SELECT * EXCLUDE (ordinal) FROM label_event ORDER BY ordinal",
    "attention_map": "SELECT * FROM attention_map WHERE map_id IN (SELECT map_id FROM label_event) ORDER BY map_id",
    "class_event": "SELECT * EXCLUDE (ordinal) FROM class_event "
    "WHERE class_set IN (SELECT class_set FROM label_event) ORDER BY class_set, class_event.ordinal",
    "standing": "SELECT * EXCLUDE (ordinal) FROM standing ORDER BY event",
}
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["label", "label", "skip", "flag", "note", "undo", "by hand", "class"]),
        st.sampled_from(["ada", "bob", "Zoë"]),
        st.integers(1, 3),  # which map
        st.integers(0, 9),
        WORDS,
    ),
    max_size=14,
)


def contents(db: Database) -> dict[str, list]:
    return {name: db.cursor().execute(sql).fetchall() for name, sql in TABLES.items()}


def lived(db: Database, steps, folder: Path) -> None:
    """A history: people label, skip, flag, note and undo, files made by hand come in, classes are added."""
    labels.store_maps(db, [a_map(f"m{k}", length=3 + k, seed=None if k == 2 else k) for k in range(1, 4)])
    sequence, made, own = 0, {}, []
    for kind, who, which, choice, words in steps:
        name, cls = f"m{which}", ["vertical", "block", "diagonal"][choice % 3]
        if kind == "class":
            labels.change_class(
                db,
                "mine",
                labels.ClassChange("add", f"c{len(own)}", eye=f"x{words}", colour="#000000", key="1"),
                annotator=who,
            )
            own.append(f"c{len(own)}")
        elif kind == "by hand":
            row = {"map_id": name, "class": cls, "class_set": SET, "annotator": who}
            label_files.write_lines(folder / "hand.jsonl", [row | {"note": words}])
            label_files.import_labels(db, folder / "hand.jsonl")
        elif kind != "undo" or made.get(who):
            sequence += 1
            about = {"note": words} if kind == "note" else {}
            if kind == "undo":
                target, of_set, of_map = made[who].pop(choice % len(made[who]))
                one = event(sequence, of_map, kind="undo", undoes=target, class_set=of_set, annotator=who, batch=who)
            else:
                mine = own and choice > 6
                about |= {"class_set": "mine"} if mine else {}
                one = event(sequence, name, own[0] if mine else cls, kind=kind, annotator=who, batch=who, **about)
                made.setdefault(who, []).append((f"{who}:{sequence}", one["class_set"], name))
            labels.record_events(db, [one])


@pytest.mark.thorough
@settings(max_examples=10, deadline=None)  # a database on the disk; how long it takes depends on the machine
@given(STEPS, st.sampled_from(label_files.ENDINGS), st.booleans())
def test_export_and_import_is_the_identity(steps, ending, twice):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Database(folder / "a.duckdb") as first, Database(folder / "b.duckdb") as second:
            lived(first, steps, folder)
            count = label_files.export_labels(first, folder / f"labels{ending}")
            for time in range(1 + twice):
                report = label_files.import_labels(second, folder / f"labels{ending}")
                assert (report.refused, report.rows, report.new) == ([], count, 0 if time else count)
            assert contents(second) == contents(first)
            label_files.export_labels(second, folder / f"again{ending}")
            if ending == ".jsonl":
                assert (folder / "again.jsonl").read_bytes() == (folder / "labels.jsonl").read_bytes()


@pytest.mark.slow  # 5 CPU seconds: more examples of the same
@settings(max_examples=25, deadline=None)
@given(STEPS, st.sampled_from(label_files.ENDINGS), st.booleans())
def test_export_and_import_of_more_lives_is_the_identity(steps, ending, twice):
    test_export_and_import_is_the_identity.hypothesis.inner_test(steps, ending, twice)


def test_labels_of_one_person_in_two_files_made_by_hand_come_back_and_the_newer_stands(db, tmp_path):
    labels.store_maps(db, [a_map("m1")])
    for cls in ("vertical", "block"):
        row = {"map_id": "m1", "class": cls, "class_set": SET, "annotator": "ada"}
        label_files.write_lines(tmp_path / f"{cls}.jsonl", [row])
        label_files.import_labels(db, tmp_path / f"{cls}.jsonl")
    label_files.export_labels(db, tmp_path / "all.jsonl")
    with Database(tmp_path / "other.duckdb") as other:
        report = label_files.import_labels(other, tmp_path / "all.jsonl")
        assert (report.new, report.refused) == (2, [])
        assert labels.decided(other, SET, "ada") == {"m1": "block"}


def test_an_export_that_is_killed_leaves_the_file_before(db, tmp_path, monkeypatch):
    labels.store_maps(db, [a_map("m1")])
    labels.record_events(db, [event(1)])
    for file in (tmp_path / "labels.jsonl", tmp_path / "labels.parquet"):
        label_files.export_labels(db, file)
        before = file.read_bytes()
        with monkeypatch.context() as stopped:
            stopped.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                label_files.export_labels(db, file)
        assert file.read_bytes() == before


GOOD = {"map_id": "m1", "class": "block", "class_set": SET, "annotator": "eve"}
HOPELESS = {
    "a year past Python's": {"happened": pa.scalar(4_551_000_000_000_000_000, pa.timestamp("us"))},
    "tokens that are no JSON": {"tokens": pa.scalar("[")},
    "tokens of surrogates": {"tokens": pa.scalar('["\\ud800"]')},
    "text that is no UTF-8": {"note": pa.scalar(b"\xff\xfe").cast(pa.binary())},
    "seconds without end": {"seconds": pa.scalar(float("inf"))},
}


@pytest.mark.parametrize("name", HOPELESS)
def test_one_hopeless_row_of_a_parquet_file_is_refused_alone(db, tmp_path, name):
    labels.store_maps(db, [a_map("m1"), a_map("m2")])
    ((column, value),) = HOPELESS[name].items()
    if column == "note":
        array = pa.Array.from_buffers(pa.string(), 3, _one_text(b"\xff\xfe"))
    else:
        array = pa.concat_arrays([pa.nulls(1, value.type), pa.array([value], value.type), pa.nulls(1, value.type)])
    rows = [GOOD, GOOD | {"annotator": "bad"}, GOOD | {"map_id": "m2"}]
    table = pa.Table.from_pylist(rows).append_column(column, array)
    pq.write_table(table, tmp_path / "labels.parquet")
    report = label_files.import_labels(db, tmp_path / "labels.parquet")
    assert [number for number, _ in report.refused] == [2]
    assert report.new == 2


def _one_text(text: bytes) -> list:
    offsets = pa.array([0, 0, len(text), len(text)], pa.int32()).buffers()[1]
    return [pa.py_buffer(bytes([0b010])), offsets, pa.py_buffer(text)]


@pytest.mark.parametrize(
    "line",
    [
        json.dumps(GOOD | {"seconds": 10**400}).encode(),
        json.dumps(GOOD | {"happened": "146000-01-01"}).encode(),
        json.dumps(GOOD | {"note": "\udcff"}).encode(),
        b'{"map_id": "m1", "class": "\xff", "class_set": "bert", "annotator": "eve"}',
        json.dumps(GOOD | {"probability": 7}).encode(),
        json.dumps(GOOD | {"batch": "b", "sequence": 1, "event": "b:2"}).encode(),
        json.dumps(GOOD | {"event": "b:2"}).encode(),
        json.dumps(GOOD | {"layer": 11}).encode(),
        json.dumps(GOOD | {"class_events": "7"}).encode(),
        json.dumps(GOOD | {"class_events": [{"kind": "add", "class": "x"}]}).encode(),
        b'{"map_id": "m1", "seconds": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
    ],
)
def test_one_hopeless_line_is_refused_alone(db, tmp_path, line):
    labels.store_maps(db, [a_map("m1"), a_map("m2")])
    good = [json.dumps(GOOD | {"annotator": "ada", "map_id": name}).encode() for name in ("m1", "m2")]
    (tmp_path / "labels.jsonl").write_bytes(b"\n".join([good[0], line, good[1]]))
    report = label_files.import_labels(db, tmp_path / "labels.jsonl")
    assert [number for number, _ in report.refused] == [2]
    assert report.new == 2


def test_files_without_bound_are_refused_at_once(db, tmp_path, monkeypatch):
    table = pa.table({"map_id": pa.array(["m1"] * 3_000_000).dictionary_encode()})
    pq.write_table(table, tmp_path / "bomb.parquet", compression="zstd")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="at most 200,000 rows"):
        label_files.import_labels(db, tmp_path / "bomb.parquet")
    with pytest.raises(InputError, match=r"zero\.jsonl cannot be opened \(Not a regular file\)"):
        label_files.import_labels(db, tmp_path / "zero.jsonl")
    monkeypatch.setattr(label_files, "LARGEST", 2**20)
    (tmp_path / "large.jsonl").write_bytes(b"\n" * (2**20 + 1))
    with pytest.raises(InputError, match="must not be larger than 1 MB"):
        label_files.import_labels(db, tmp_path / "large.jsonl")


def test_a_database_of_before_opens_with_its_labels_and_its_unknown_class_counted(tmp_path):
    """A file that the version before owners wrote, with a label of no class and an undo in advance by somebody else."""
    path = tmp_path / "atlas.duckdb"
    path.write_bytes(gzip.decompress((FILES / "before-owners.duckdb.gz").read_bytes()))
    with Database(path) as db:
        assert len(labels.all_events(db)) == 8
        assert labels.decided(db, SET, "ada") == {"m0": "diagonal", "m1": "wavy", "m2": None}
        found = label_snapshot.current_labels(db, SET)
        assert sorted(found["class"]) == ["diagonal", "diagonal"]
        assert label_snapshot.unknown_labels(db, SET) == {"wavy": 1}
        assert len(db.id) == 36
        labels.change_class(
            db,
            SET,
            labels.ClassChange("add", "wavy", eye="a wave", colour="#000000", key="6"),
            annotator="ada",
            taken=("vertical",),
        )
        assert label_snapshot.unknown_labels(db, SET) == {}
        assert len(label_snapshot.current_labels(db, SET)) == 3
    assert list((tmp_path / "backups").glob("*-before-005-*.duckdb"))


def test_times_of_maps_come_back(db, tmp_path):
    labels.store_maps(db, [a_map("m1")])
    labels.record_events(db, [event(1)])
    with db.write() as cursor:
        cursor.execute("UPDATE attention_map SET stored = stored - INTERVAL 9 DAY")
    label_files.export_labels(db, tmp_path / "a.jsonl")
    with Database(tmp_path / "b.duckdb") as other:
        label_files.import_labels(other, tmp_path / "a.jsonl")
        (stored,) = labels.stored_at(other).values()
        assert datetime.now() - stored > timedelta(days=8)
