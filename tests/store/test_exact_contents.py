"""What the store writes, exactly: every key of a heading, every file of a folder, every column of a fixed history."""

import errno
import hashlib
import hmac
import json
import os
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest

from core.config import code_version
from core.errors import AtlasError, InputError, StoreError
from core.store import (
    backup,
    classifiers,
    database,
    erasure,
    exchange,
    findings,
    hypotheses,
    label_files,
    labels,
    migrations,
    projects,
    runs,
)
from core.store.database import Database
from core.store.label_checks import check_class, checked_map, time_of
from core.store.labels import ClassChange
from core.store.people import Person, role_of
from core.store.recovery import STOPPED
from core.store.runs import Provenance
from tests.store.filling import contents, fill_every_table
from tests.store.labelling import SET, a_map, event

SCORE = {"statistic": "entropy", "feature": "noun", "layer": 1, "head": 2, "value": 0.5, "low": 0.25, "high": 0.75,
         "n": 9, "baseline": 0.125, "p": 0.01, "q": 0.04, "checkpoint": "own", "task": "sst2"}  # fmt: skip
ABOUT = Provenance(
    checkpoint="c", weights_hash="w", task="mrpc", split="train", row_ids=("1", "2"), seed=4, dtype="float32",
    operator="zero", device="cpu", code_version="v",
)  # fmt: skip


@pytest.fixture
def run(db):
    made = runs.record_run(db, "statistics", {"limit": 3}, ABOUT, title="T")
    runs.store_rows(db, made, [SCORE, {"kind": "note", "text": "é"}])
    return made


def files(folder: Path) -> list[str]:
    """All names under a folder, hidden ones too, without databases' own logs."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix != ".wal")


# ---------------------------------------------------------------- what is written


def test_the_heading_of_an_export_has_counts_migrations_version_and_time(db, run, tmp_path):
    before = datetime.now(UTC).replace(microsecond=0)
    counts = exchange.export_all(db, tmp_path / "out")
    text = (tmp_path / "out" / "atlas.json").read_text()
    heading = json.loads(text)
    assert text == json.dumps(heading, indent=1)
    created = datetime.fromisoformat(heading.pop("created"))
    assert (created.microsecond, created.utcoffset()) == (0, timedelta(0))
    assert before <= created <= datetime.now(UTC)
    assert heading == {
        "tables": counts,
        "migrations": [step.number for step in migrations.known()],
        "code_version": code_version(),
    }
    assert list(counts) == exchange.tables(db)
    assert (counts["run"], counts["study_row"], counts["head_score"], counts["job"]) == (1, 2, 1, 0)
    assert not {"migration", "store_id"} & set(counts)
    assert files(tmp_path / "out") == sorted(["atlas.json", *(f"{name}.parquet" for name in counts)])


def test_the_heading_of_a_run_has_its_provenance_and_the_seal_of_its_database(db, run, tmp_path):
    file = exchange.export_run(db, run, tmp_path / "one.jsonl", database=db.path)
    heading, *rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert rows == [SCORE, {"kind": "note", "text": "é"}]
    seal = heading.pop("seal")
    provenance = heading["provenance"]
    created = provenance.pop("created")
    assert heading == {
        "atlas_run": 1,
        "study": "statistics",
        "title": "T",
        "provenance": {
            "run": run, "checkpoint": "c", "weights_hash": "w", "task": "mrpc", "split": "train",
            "row_ids": ["1", "2"], "seed": 4, "dtype": "float32", "operator": "zero", "device": "cpu",
            "options": {"limit": 3}, "code_version": "v", "imported": None,
        },
    }  # fmt: skip
    key = db.path.with_name(db.path.name + ".key")
    assert (key.stat().st_mode & 0o777, len(key.read_bytes())) == (0o600, 32)
    provenance["created"] = created
    sealed = json.dumps([heading, *rows], sort_keys=True).encode()
    assert seal == hmac.new(key.read_bytes(), sealed, hashlib.sha256).hexdigest()
    plain = exchange.export_run(db, run, tmp_path / "two.jsonl")
    assert "seal" not in json.loads(plain.read_text().splitlines()[0])


@pytest.mark.parametrize("changed", [None, "title", "value", "seal", "key"])
def test_a_run_counts_as_measured_here_only_if_its_seal_fits(db, run, tmp_path, changed):
    file = exchange.export_run(db, run, tmp_path / "one.jsonl", database=db.path)
    heading, *rows = [json.loads(line) for line in file.read_text().splitlines()]
    if changed in ("title", "seal"):
        heading[changed] = "other"
    if changed == "value":
        rows[0]["value"] = 0.75
    if changed == "key":
        db.path.with_name(db.path.name + ".key").write_bytes(b"k" * 31)
    file.write_text("".join(json.dumps(line) + "\n" for line in (heading, *rows)))
    runs.delete_runs(db, [run])
    assert exchange.import_run(db, file) == run
    assert runs.is_imported(db, run) is (changed is not None)
    assert runs.one_run(db, run)["title"] == ("other" if changed == "title" else "T")
    assert runs.run_rows(db, run) == rows


def test_every_column_of_a_score_is_stored(db, run):
    (stored,) = runs.head_scores(db).drop(columns="created").to_dict("records")
    assert stored.pop("part") is None
    names = ("statistic", "feature", "layer", "head", "value", "low", "high", "n", "baseline", "p", "q")
    wanted = {name: SCORE[name] for name in names}
    assert stored == wanted | {"run": run, "study": "statistics", "checkpoint": "c", "task": "mrpc"}
    for asked, count in (
        ({"statistic": "entropy"}, 1), ({"statistic": "to_next"}, 0), ({"feature": "noun"}, 1),
        ({"feature": "verb"}, 0), ({"task": "mrpc"}, 1), ({"task": "sst2"}, 0), ({"study": "statistics"}, 1),
        ({"study": "roles"}, 0), ({"run": run}, 1), ({"run": "other"}, 0),
    ):  # fmt: skip
        assert len(runs.head_scores(db, **asked)) == count, asked


def test_runs_that_wait_are_listed_oldest_first(db, run, tmp_path):
    folder = exchange.runs_folder(tmp_path / "other" / "other.duckdb")
    with Database(tmp_path / "other" / "other.duckdb") as other:
        for number, name in enumerate(("c", "a", "b")):
            file = exchange.export_run(db, run, folder / f"{name}.jsonl")
            os.utime(file, (1_000 + number, 1_000 + number))
        (folder / "d.jsonl").write_text("no run")
        os.utime(folder / "d.jsonl", (1, 1))
        waiting = exchange.waiting_runs(other)
    assert [Path(file).stem for file in waiting["file"]] == ["d", "c", "a", "b"]
    assert waiting[["study", "title", "rows"]].values.tolist() == [["", "d.jsonl", 0], *[["statistics", "T", 2]] * 3]
    assert [bool(error) for error in waiting["error"]] == [True, False, False, False]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, None), ({"annotator": "bob"}, "resent or undone by its author"), ({"seconds": 9.0}, None),
        ({"class": "block"}, "must be unchanged"), ({"map_id": "m2"}, "must be unchanged"),
        ({"pass": 2}, "must be unchanged"), ({"class_set": "gpt2"}, "must be unchanged"),
        ({"kind": "skip", "class": None}, "must be unchanged"),
    ],
)  # fmt: skip
def test_an_event_that_is_sent_again_must_say_the_same(db, changes, says):
    labels.store_maps(db, [a_map("m1"), a_map("m2")])
    labels.record_events(db, [event(1)])
    before = labels.all_events(db)
    if says is None:
        saved = labels.record_events(db, [event(1) | changes])
        assert saved.acknowledged == 1
    else:
        with pytest.raises(InputError, match=says):
            labels.record_events(db, [event(1) | changes])
    assert labels.all_events(db) == before


def test_questions_about_nothing_have_empty_answers(db):
    assert labels.stored_events(db.cursor(), []) == set()
    assert labels.known_names(db.cursor(), set()) == {}
    assert projects.projects_answered(db.cursor(), []) == {}


# ---------------------------------------------------------------- which files are left


@pytest.mark.parametrize("links", ["made", "refused", "made by another process"])
def test_creating_a_database_leaves_one_file(tmp_path, monkeypatch, links):
    def link(part, path):
        if links == "made by another process":
            Path(path).write_bytes(b"theirs")
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    if links != "made":
        monkeypatch.setattr(os, "link", link)
    path = tmp_path / "atlas.duckdb"
    database.begin(path, {})
    assert files(tmp_path) == ["atlas.duckdb"]
    assert (path.read_bytes() == b"theirs") is (links == "made by another process")
    before = path.read_bytes()
    database.begin(path, {})
    assert path.read_bytes() == before


@pytest.mark.thorough
def test_writing_and_reading_files_leaves_no_other_file(db, run, tmp_path):
    labels.store_maps(db, [a_map("m1")])
    labels.record_events(db, [event(1)])
    out = tmp_path / "out"
    out.mkdir()
    size = backup.back_up(db, out / "copy.duckdb")
    exchange.export_run(db, run, out / "run.jsonl")
    for ending in label_files.ENDINGS:
        assert label_files.export_labels(db, out / f"labels{ending}") == 1
    wanted = ["copy.duckdb", "run.jsonl", *(f"labels{ending}" for ending in label_files.ENDINGS)]
    assert files(out) == sorted(wanted)
    assert size == (out / "copy.duckdb").stat().st_size
    assert backup.restore(out / "copy.duckdb", out / "again.duckdb") == 1
    assert files(out) == sorted([*wanted, "again.duckdb"])
    assert backup.schema_of(out / "again.duckdb") == migrations.known()[-1].number
    for again in (
        lambda: backup.back_up(db, out / "copy.duckdb"),
        lambda: backup.restore(out / "copy.duckdb", db.path),
    ):
        with pytest.raises(StoreError, match="exists"):
            again()
    assert files(out) == sorted([*wanted, "again.duckdb"])


@pytest.mark.thorough
@pytest.mark.parametrize("trouble", ["copying", "linking"])
def test_a_backup_or_a_restored_file_that_fails_leaves_nothing(db, tmp_path, monkeypatch, trouble):
    labels.store_maps(db, [a_map("m1")])
    backup.back_up(db, tmp_path / "copy.duckdb")
    out = tmp_path / "out"
    out.mkdir()

    def fails(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if trouble == "copying":
        monkeypatch.setattr(backup, "copy_held", fails)
        monkeypatch.setattr(backup.shutil, "copyfile", fails)
        for step in (
            lambda: backup.back_up(db, out / "a.duckdb"),
            lambda: backup.restore(tmp_path / "copy.duckdb", out / "b.duckdb"),
        ):
            with pytest.raises(StoreError, match="the disk is full"):
                step()
        assert files(out) == []
    else:
        monkeypatch.setattr(os, "link", fails)  # a file system without hard links
        assert backup.restore(tmp_path / "copy.duckdb", out / "b.duckdb") == 0
        assert files(out) == ["b.duckdb"]


def test_a_disk_that_is_full_when_the_log_of_a_copy_is_merged_is_no_damage(db, tmp_path, monkeypatch):
    labels.store_maps(db, [a_map("m1")])
    out = tmp_path / "out"
    out.mkdir()

    def connect(path=":memory:", **options):
        if Path(path).parent == out:
            raise duckdb.IOException("IO Error: Could not write file: No space left on device")
        return duckdb.connect(path, **options)

    monkeypatch.setattr(backup, "duckdb", SimpleNamespace(connect=connect, Error=duckdb.Error))
    with pytest.raises(StoreError, match="the disk is full"):
        backup.back_up(db, out / "a.duckdb")
    assert files(out) == []


@pytest.mark.parametrize("answer", ["made", "refused", "none"])
def test_a_backup_that_another_process_makes_leaves_no_request(db, tmp_path, monkeypatch, answer):
    target = tmp_path / "there" / "copy.duckdb"
    if answer == "refused":
        target.parent.mkdir()
        target.write_text("")
    monkeypatch.setattr(backup, "LOOK_SECONDS", 0.0)
    waiting = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: answer == "none" or backup.answer_requests(db))
    monkeypatch.setattr(backup, "time", waiting)
    if answer == "made":
        assert backup.ask(db.path, target, 30) == target.stat().st_size > 0
    else:
        with pytest.raises(StoreError, match="exists" if answer == "refused" else "not answered within 0 seconds"):
            backup.ask(db.path, target, 0 if answer == "none" else 30)
    assert files(exchange.runs_folder(db.path)) == []


# ---------------------------------------------------------------- a database that stopped


def test_a_transaction_in_which_duckdb_stops_fails_and_the_next_one_reopens_the_file(tmp_path):
    with Database(tmp_path / "atlas.duckdb") as db, Database(tmp_path / "atlas.duckdb") as twin:
        labels.store_maps(db, [a_map("m1")])

        def stopping():
            with db.write() as cursor:
                cursor.execute("DELETE FROM attention_map")
                db._opening.heed(duckdb.FatalException(STOPPED))  # as after a full disk
                db.read("SELECT 1")

        with pytest.raises(StoreError, match=rf"{db.path} stopped after a failed write"):
            stopping()
        for handle in (db, twin):
            assert handle.rows("SELECT map_id FROM attention_map") == [("m1",)]
        labels.record_events(twin, [event(1)])
        assert [row["sequence"] for row in labels.all_events(db)] == [1]
    with pytest.raises(StoreError, match=r"this process has closed it"):
        db.read("SELECT 1")


def test_transactions_inside_others_are_committed_or_rolled_back_together(db):
    before = db.writes
    with db.write() as outer, db.write() as inner:
        assert inner is outer
        labels.store_maps(db, [a_map("m1")])
    assert db.writes == db.acting_as(db.person).writes == before + 1

    def failing():
        with db.write():
            labels.store_maps(db, [a_map("m2")])
            raise InputError("no")

    with pytest.raises(InputError):
        failing()
    assert db.writes == before + 1
    with db.snapshot() as cursor:
        assert cursor.execute("SELECT map_id FROM attention_map").fetchall() == [("m1",)]
        with pytest.raises(duckdb.Error, match="read-only"):
            cursor.execute("DELETE FROM attention_map")
    assert db.records("SELECT map_id, layer FROM attention_map") == [{"map_id": "m1", "layer": a_map("m1")["layer"]}]


# ---------------------------------------------------------------- what an import refuses


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("table", "column", "value", "says"),
    [
        ("run", "ordinal", 0, "must be from 1 to"),
        ("run", "ordinal", 2**52, "must be from 1 to"),
        ("head_score", "layer", -1, "must be from 0 to"),
        ("part_score", "part", "middle", "must be one of encoder, decoder, cross"),
        ("class_event", "kind", "paint", "must be one of"),
        ("label_event", "event", "tab:9", "must consist of its batch and sequence number"),
        ("label_event", "map_id", "m9", "must exist in the table attention_map"),
        ("claim", "project", "p9", "must exist in the table project"),
        ("attention_map", "tokens", "[", "must be JSON"),
        ("finding", "pictures", '[{"data": {"url": "x"}}]', "The chart of a finding"),
    ],
)
def test_an_export_with_a_value_that_cannot_be_is_refused_whole(db, tmp_path, table, column, value, says):
    import pyarrow as pa
    import pyarrow.parquet as pq

    fill_every_table(db)
    exchange.export_all(db, tmp_path / "out")
    file = tmp_path / "out" / f"{table}.parquet"
    rows = pq.read_table(file)
    place = rows.schema.get_field_index(column)
    kept = rows.column(column).to_pylist()
    changed = pa.array([value, *kept[1:]], rows.schema.field(place).type)
    pq.write_table(rows.set_column(place, rows.schema.field(place), changed), file)
    with Database(tmp_path / "other.duckdb") as other:
        with pytest.raises(InputError, match=says):
            exchange.import_all(other, tmp_path / "out")
        assert not any(contents(other, exchange.tables(other)).values())


# ---------------------------------------------------------------- errors of the system, and what messages repeat


@pytest.mark.parametrize("target", ["a folder", "no/such/folder/copy", "copy"])
def test_a_copy_that_fails_has_the_error_of_the_system(tmp_path, target):
    (tmp_path / "a folder").mkdir()
    source, into = tmp_path / "source", tmp_path / target
    if target != "copy":
        source.write_text("kept")
    with pytest.raises(OSError) as expected:
        into.write_bytes(source.read_bytes())
    with pytest.raises(type(expected.value)) as failed:
        backup.copy_held(source, into)
    assert (failed.value.errno, failed.value.strerror) == (expected.value.errno, expected.value.strerror)


LONG = "q" * 190  # two of this letter in a row occur nowhere else in these messages


def refused_events(db):
    """What is sent, and how many letters of each long value its message repeats."""
    for changed, letters in (
        ({"name": LONG}, [60]),
        ({"class_set": LONG}, [60]),
        ({"cls": LONG}, [60]),
        ({"kind": "undo", "undoes": LONG}, [60]),
        ({"kind": LONG}, [40]),
        ({"kind": LONG, "sequence": LONG}, [40, 20]),
        ({"sequence": LONG}, [60, 20]),
        ({"annotator": LONG + "\n"}, [60]),
        ({"batch": LONG, "cls": "diagonal"}, [60]),
        ({"batch": LONG, "annotator": LONG}, [60, 60]),
        ({"batch": LONG, "sequence": 4}, [60, 60]),
        ({"kind": "undo", "undoes": LONG + ":1", "name": "m2"}, [60]),
        ({"kind": "undo", "undoes": LONG + ":2"}, [60]),
        ({"kind": "retire", "undoes": LONG + ":3"}, [60]),
    ):
        yield lambda changed=changed: labels.record_events(db, [event(**{"sequence": 1} | changed)]), letters
    yield lambda: labels.retire(db, [LONG], annotator="ada", why="wrong"), [60]


def refused_names(db):
    """Names of other kinds that the store does not know or does not take."""
    maps = [projects.ProjectMap("m1", "label", None)]
    heading = projects.Heading(LONG, SET)
    yield lambda: projects.one_project(db, LONG), [60]
    yield lambda: [projects.add_project(db, heading, recipe={}, rules={}, maps=maps) for _ in range(2)], [60, 60]
    yield lambda: erasure.erase_name(db, LONG + "x", annotator="ada"), [60]
    yield lambda: hypotheses.withdraw(db, LONG), [60]
    yield lambda: classifiers.one_classifier(db, LONG), [60]
    yield lambda: Person("ada", LONG), [40]
    yield lambda: Person("ada", "annotator").signs(LONG), [60]
    yield lambda: role_of("ada", {LONG: []}), [40]
    yield lambda: findings.checked_maps("!" + LONG), [59]
    yield lambda: labels.change_classes(db, SET, [ClassChange("add", LONG)], annotator="ada"), [60]
    yield lambda: labels.change_classes(db, SET, [ClassChange("delete", LONG)], annotator="ada"), [60]
    yield lambda: check_class(SET, LONG, colour=LONG, key=LONG), [20, 20, 40]
    yield lambda: check_class(SET, LONG, title=LONG + LONG), [60, 40]
    yield lambda: time_of(LONG, "a label"), [40]
    yield lambda: checked_map(a_map(LONG) | {"length": 0}), [40]
    yield lambda: exchange.check_columns("run", pa.table({LONG: [1]}), ["run"]), [60]
    yield lambda: exchange.check_fields([LONG], "a row"), [38]  # after a bracket and a quotation mark
    yield lambda: exchange.check_fields({"what": "w", "value": LONG}, "a row"), [40]


def test_a_message_repeats_the_beginning_of_a_long_value(db):
    labels.store_maps(db, [a_map("m1"), a_map("m2")])
    labels.record_events(db, [event(1, batch=LONG), event(2, batch=LONG, annotator="eve")])
    labels.record_events(db, [event(4, batch=LONG, annotator=LONG)])
    labels.record_events(db, [event(3, batch=LONG, kind="undo", undoes=f"{LONG}:2", annotator="eve")])
    for number, (step, letters) in enumerate([*refused_events(db), *refused_names(db)]):
        with pytest.raises(AtlasError) as refused:
            step()
        found = [len(run) for run in re.findall("qq+", str(refused.value))]
        assert found == letters, (number, str(refused.value))
