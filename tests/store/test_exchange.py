"""Everything leaves as Parquet and comes back equal; a run travels as one file."""

import itertools
import json
import threading

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import AtlasError, InputError, StoreError
from core.store import exchange, jobs, runs
from core.store.database import Database
from core.store.runs import Provenance
from tests.store.filling import contents, fill_every_table

ROWS = [
    {"statistic": "to_next", "layer": 0, "head": 1, "value": 0.1 + 0.2, "token": "naïve\n'; DROP TABLE run; --"},
    {"statistic": "to_next", "layer": 0, "head": 2, "value": None, "token": "\U0001f600"},
]


@pytest.fixture
def filled(db):
    run = runs.record_run(db, "heads", {"limit": 3}, Provenance(checkpoint="c", row_ids=("1", "2"), seed=4), title="T")
    runs.store_rows(db, run, ROWS)
    job = jobs.add_job(db, "heads", "t", {"a": 1})
    jobs.add_units(db, job, {"a": 1}, [{"key": "k", "size": 3, "arguments": {}}])
    jobs.store_outcome(db, job, 0, jobs.UnitEnd(rows=[{"b": [1, None]}], seconds=0.25))
    return db, run


@pytest.mark.thorough
def test_an_export_reads_back_equal_table_by_table(filled, tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "BATCH", 1)
    db, _ = filled
    names = fill_every_table(db)
    counts = exchange.export_all(db, tmp_path / "new" / "out")
    assert sorted(counts) == names
    assert min(counts.values()) >= 2
    other = Database(tmp_path / "other.duckdb")
    assert exchange.import_all(other, tmp_path / "new" / "out") == counts
    assert runs.runs(other)["imported"].notna().all()
    with db.write() as one, other.write() as two:  # that it came in is all that differs
        for cursor, name in itertools.product((one, two), ("run", "hypothesis_event")):
            cursor.execute(f"UPDATE {name} SET imported = NULL")  # noqa: S608 - ours
        for name in ("job_row", "job_outcome"):  # partial results of jobs with work left stay behind
            one.execute(f"DELETE FROM {name} WHERE job IN (SELECT job FROM job WHERE state <> 'done')")  # noqa: S608
        for cursor in (one, two):
            cursor.execute("UPDATE finding SET about = replace(about, $words, '')", {"words": exchange.IMPORTED})
            cursor.execute("UPDATE classifier SET title = replace(title, $words, '')", {"words": exchange.IMPORTED})
    assert contents(other, names) == contents(db, names)
    newer = runs.record_run(other, "heads", {}, Provenance())
    assert runs.runs(other)["run"].tolist()[0] == newer  # the sequences went on where the export stood
    other.close()


def test_an_export_needs_an_empty_folder_and_an_empty_database(filled, tmp_path):
    db, _ = filled
    exchange.export_all(db, tmp_path / "out")
    with pytest.raises(InputError, match="new or empty"):
        exchange.export_all(db, tmp_path / "out")
    with pytest.raises(InputError, match="empty database"):
        exchange.import_all(db, tmp_path / "out")
    with pytest.raises(InputError, match="must be a folder with"):
        exchange.import_all(db, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="must be writable"):
        exchange.export_all(db, tmp_path / "file" / "out")


def test_an_export_that_fails_lets_the_database_be_opened_again(filled, tmp_path, monkeypatch):
    db, _ = filled

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(exchange.pq.ParquetWriter, "write_batch", full)
    with pytest.raises(StoreError) as failed:  # it keeps what was under way
        exchange.export_all(db, tmp_path / "out")
    db.close()
    opening = threading.Thread(target=duckdb.connect, args=(str(db.path),), daemon=True)
    opening.start()
    opening.join(30)  # DuckDB waits for the end of every result without an end
    assert not opening.is_alive(), failed


def test_a_damaged_export_changes_nothing(filled, tmp_path):
    db, _ = filled
    exchange.export_all(db, tmp_path / "out")
    file = tmp_path / "out" / "study_row.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    other = Database(tmp_path / "other.duckdb")
    with pytest.raises(InputError, match="complete Parquet file"):
        exchange.import_all(other, tmp_path / "out")
    assert not any(contents(other, exchange.tables(other)).values())
    other.close()


def test_a_run_travels_as_a_file_once(filled, tmp_path):
    db, run = filled
    file = exchange.export_run(db, run, tmp_path / "runs" / "heads.jsonl")
    assert exchange.waiting_runs(db).empty  # it is this database's own
    other = Database(tmp_path / "elsewhere" / "other.duckdb")
    folder = exchange.runs_folder(other.path)
    folder.mkdir()
    there = folder / file.name
    there.write_bytes(file.read_bytes())
    assert exchange.waiting_runs(other)[["study", "title", "rows"]].values.tolist() == [["heads", "T", 2]]
    for _ in range(2):
        assert exchange.import_run(other, there) == run
    assert exchange.waiting_runs(other).empty
    assert runs.run_rows(other, run) == ROWS
    when = ("created", "imported")
    here, gone = runs.one_run(db, run), runs.one_run(other, run)
    assert {k: v for k, v in here.items() if k not in when} == {k: v for k, v in gone.items() if k not in when}
    assert (here["imported"] is None, gone["imported"] is None) == (True, False)
    assert len(runs.head_scores(other)) == 2
    other.close()


junk = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60).map(str.encode),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(["atlas_run", "study", "title", "provenance", "run", "options", "seed"]),
                inner,
                max_size=6,
            )
        ),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode()),
)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])  # one database
@given(heading=junk, rest=junk)
def test_a_file_that_is_no_run_is_one_sentence_and_stores_nothing(db, tmp_path, heading, rest):
    file = tmp_path / "bad.jsonl"
    file.write_bytes(heading + b"\n" + rest)
    with pytest.raises(AtlasError) as error:
        exchange.import_run(db, file)
    assert "\n" not in str(error.value)
    assert runs.runs(db).empty


@pytest.mark.thorough
@pytest.mark.parametrize("said", [{"seed": "many"}, {"seed": 2**70}, {"options": None}, {"row_ids": 5}])
def test_a_run_with_values_of_the_wrong_kind_stores_nothing(db, tmp_path, said):
    file = tmp_path / "bad.jsonl"
    heading = {"atlas_run": 1, "study": "s", "title": "t", "provenance": {"run": "r", "options": {}} | said}
    file.write_text(json.dumps(heading) + "\n" + json.dumps({"layer": "x", "statistic": 1, "head": 0, "value": "a"}))
    with pytest.raises(InputError):
        exchange.import_run(db, file)
    assert runs.runs(db).empty


def test_charts_and_maps_of_imported_findings_are_those_that_the_app_can_draw():
    def finding(**columns):
        return pa.Table.from_pylist([{"pictures": "[]", "maps": None} | columns])

    own, foreign = (
        {"mark": {"type": "point"}, "data": data} for data in ({"values": [{"a": 1}]}, {"url": "https://example.org"})
    )
    for columns in ({}, {"pictures": None}, {"pictures": json.dumps([own, own])}, {"maps": "AAAA"}):
        exchange.check_rows("finding", finding(**columns))
    for pictures in ([own, foreign], [foreign]):
        with pytest.raises(InputError, match="The chart of a finding"):
            exchange.check_rows("finding", finding(pictures=json.dumps(pictures)))
    with pytest.raises(InputError, match="base64"):
        exchange.check_rows("finding", finding(maps="not packed!"))
