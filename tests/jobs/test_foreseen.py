"""The time a job will take, and what a stopped one has done."""

import pytest

from core.errors import JobError
from core.jobs.foreseen import Extent, foreseen, keep_partial
from core.jobs.worker import complete, divide, run_unit
from core.store import jobs, runs
from core.store.database import Database
from core.store.runs import Provenance
from core.studies.lookup import find_study

TINY = "tests.jobs.tiny"


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setattr("core.config.RECORD", tmp_path / "no-record")
    with Database(tmp_path / "atlas.duckdb") as database:
        yield database


def timed(db, seconds, **options):
    run = runs.record_run(db, "statistics", options, Provenance(row_ids=tuple(range(options["limit"]))), title="Before")
    job = jobs.add_job(db, "statistics", "Before", options)
    jobs.add_units(db, job, options, [{"key": "a", "size": 10, "arguments": {}}])
    jobs.store_outcome(db, job, 0, jobs.Outcome(seconds=seconds))
    jobs.set_state(db, job, "done", run=run)


def test_time_follows_the_rate_of_the_most_similar_run(db):
    assert foreseen(db, "statistics", {"checkpoint": "atlas-encoder", "limit": 100}) is None  # nothing was timed
    timed(db, 5.0, checkpoint="atlas-encoder", limit=50)
    timed(db, 90.0, checkpoint="atlas-decoder", limit=50)
    found = foreseen(db, "statistics", {"checkpoint": "atlas-encoder", "limit": 100})
    assert (found.seconds, found.rows, found.here) == (pytest.approx(10.0), 100, True)
    unknown = foreseen(db, "statistics", {"checkpoint": "atlas-encoder", "limit": None})
    assert (unknown.seconds, unknown.rows) == (pytest.approx(5.0), None)  # as long as the one that is like it


def test_rows_are_counted_where_they_can_be(db, tmp_path):
    (tmp_path / "own.csv").write_text("sentence\nOne.\nTwo.\nThree.\n")
    timed(db, 5.0, checkpoint="atlas-encoder", limit=50)
    own = {"checkpoint": "atlas-encoder", "limit": 500, "tasks": [str(tmp_path / "own.csv")]}
    assert foreseen(db, "statistics", own).rows == 3  # and not 500
    seeds = Extent.of({"tasks": ["a", "b"], "seeds": [0, 1, 2], "initialisations": ["pretrained", "random"]})
    assert seeds.runs == 6


def test_what_a_stopped_job_has_done_is_a_result_with_its_own_n(db):
    options = complete(find_study(TINY), {"count": 3})
    units = divide(TINY, options)["units"]
    job = jobs.add_job(db, TINY, "Squares", options)
    jobs.add_units(db, job, options, units)
    with pytest.raises(JobError, match="queued with 0 of 3 units"):
        keep_partial(db, job)
    for place in (0, 2):
        jobs.store_outcome(db, job, place, jobs.Outcome(rows=run_unit(TINY, options, units[place])["rows"]))
    jobs.set_state(db, job, "cancelled")
    run = keep_partial(db, job)
    assert runs.one_run(db, run)["title"] == "Squares (stopped: 2 of 3 units)"
    (row,) = runs.run_rows(db, run)
    assert (row["n"], row["total"]) == (2, 4)
    assert jobs.one_job(db, job)["state"] == "cancelled"  # it can still be resumed
