"""Jobs in the store: what was queued, what became of it."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import JobError
from core.store import jobs
from core.store.database import Database

UNITS = [{"key": f"unit-{place}", "size": 10 * (place + 1), "arguments": {"layer": place}} for place in range(4)]


@pytest.fixture
def job(db):
    return divided(db, "Heads of SST-2")


def divided(db, title):
    job = jobs.add_job(db, "heads", title, {"task": "sst2"})
    jobs.add_units(db, job, {"task": "sst2", "limit": None}, UNITS)
    return job


def test_a_queued_job_lists_its_units_in_order(db, job):
    assert jobs.open_units(db, job) == [{**unit, "position": place, "attempts": 0} for place, unit in enumerate(UNITS)]
    known = jobs.one_job(db, job)
    assert (known["state"], known["options"], known["study"]) == ("queued", {"task": "sst2", "limit": None}, "heads")
    assert known["asked"] == {"task": "sst2"}


def test_a_stored_unit_is_not_open_again_and_rows_keep_the_units_order(db, job):
    jobs.store_outcome(db, job, 2, jobs.UnitEnd(rows=[{"a": 2}, {"a": 2.5}], seconds=1.0))
    jobs.store_outcome(db, job, 0, jobs.UnitEnd(rows=[{"a": 0}]))
    jobs.store_outcome(db, job, 2, jobs.UnitEnd(rows=[{"a": "twice"}]))
    assert [unit["position"] for unit in jobs.open_units(db, job)] == [1, 3]
    assert jobs.job_rows(db, job) == [{"a": 0}, {"a": 2}, {"a": 2.5}]


def test_a_failed_unit_waits_until_it_is_asked_again(db, job):
    jobs.store_outcome(db, job, 1, jobs.UnitEnd(error="ValueError: too short"))
    assert [unit["position"] for unit in jobs.open_units(db, job)] == [0, 2, 3]
    outcome = jobs.unit_outcomes(db, job).iloc[1]
    assert (outcome["state"], outcome["error"], outcome["attempts"]) == ("failed", "ValueError: too short", 1)
    assert jobs.ask_again(db, job) == 1
    assert jobs.open_units(db, job)[1]["attempts"] == 1
    jobs.store_outcome(db, job, 1, jobs.UnitEnd(rows=[{"a": 1}]))
    outcome = jobs.unit_outcomes(db, job).iloc[1]
    assert (outcome["state"], outcome["attempts"]) == ("done", 2)
    assert outcome["error"] is None or outcome["error"] != outcome["error"]
    assert jobs.ask_again(db, job) == 0


def test_who_did_what_is_told_with_what_was_tried_again(db, job):
    jobs.store_outcome(db, job, 0, jobs.UnitEnd(rows=[], seconds=2.0, worker="one:11"))
    jobs.store_outcome(db, job, 1, jobs.UnitEnd(error="ValueError: x", seconds=1.0, worker="one:11"))
    jobs.ask_again(db, job)
    jobs.store_outcome(db, job, 1, jobs.UnitEnd(rows=[], seconds=1.5, worker="two:22"))
    jobs.store_outcome(db, job, 2, jobs.UnitEnd(rows=[], seconds=1.0, worker="two:22", deaths=2))
    found = jobs.by_worker(db, job)
    assert found[["worker", "units", "failed", "retries", "seconds"]].values.tolist() == [
        ["two:22", 2, 0, 3, 2.5],
        ["one:11", 1, 0, 0, 2.0],
    ]
    units = jobs.unit_outcomes(db, job)
    assert units["attempts"].tolist() == [1, 2, 3, 0]
    assert units["worker"].tolist()[:3] == ["one:11", "two:22", "two:22"]
    assert jobs.jobs(db)[["workers", "retries"]].values.tolist() == [[2, 3]]
    assert [unit["position"] for unit in jobs.open_units(db, job)] == [3]


def test_progress_counts_units_and_tokens(db, job):
    jobs.store_outcome(db, job, 1, jobs.UnitEnd(rows=[], seconds=2.0))
    jobs.store_outcome(db, job, 3, jobs.UnitEnd(error="x", seconds=1.0))
    assert jobs.progress(db, job) == {"units": 4, "done": 1, "failed": 1, "size": 100, "size_done": 20, "seconds": 3.0}


def test_unfinished_jobs_are_interrupted_by_a_new_start(db, job):
    finished = divided(db, "b")
    jobs.set_state(db, job, "running")
    jobs.set_state(db, finished, "done", run="r1")
    assert jobs.interrupt_running(db) == 1
    listed = jobs.jobs(db)
    assert listed[["job", "state", "units"]].values.tolist() == [[finished, "done", 4], [job, "interrupted", 4]]
    assert jobs.one_job(db, finished)["run"] == "r1"


def test_a_deleted_job_is_gone_with_its_units(db, job):
    jobs.store_outcome(db, job, 1, jobs.UnitEnd(rows=[{"a": 1}]))
    jobs.delete_job(db, job)
    assert jobs.jobs(db).empty
    assert jobs.job_rows(db, job) == []
    with pytest.raises(JobError, match="Jobs page"):
        jobs.one_job(db, job)


def test_jobs_of_a_study_say_what_they_were_asked(db, job):
    assert [(row["job"], row["state"], row["options"], row["run"]) for row in jobs.jobs_of(db, "heads")] == [
        (job, "queued", {"task": "sst2", "limit": None}, None)
    ]
    assert jobs.jobs_of(db, "others") == []
    assert len(jobs.jobs_of(db, "heads", unfinished=True)) == 1
    jobs.set_state(db, job, "done")
    assert jobs.jobs_of(db, "heads", unfinished=True) == []
    assert len(jobs.jobs_of(db, "heads")) == 1


def test_units_with_one_key_are_refused(db, job):
    with pytest.raises(JobError, match="got 'unit-0' twice"):
        jobs.add_units(db, job, {}, [UNITS[0], UNITS[0]])


steps = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["done", "failed", "again"])), max_size=12)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    database = Database(tmp_path_factory.mktemp("jobs") / "atlas.duckdb")
    yield database
    database.close()


@settings(max_examples=15, deadline=None)  # each example writes to a real file
@given(steps)
def test_states_follow_a_plain_model(shared, steps):
    job, model = divided(shared, "t"), dict.fromkeys(range(4))
    for position, event in steps:
        if event == "again":
            jobs.ask_again(shared, job)
            model = {place: None if state == "failed" else state for place, state in model.items()}
        else:
            jobs.store_outcome(shared, job, position, jobs.UnitEnd(error="bad" if event == "failed" else None))
            model[position] = model[position] if model[position] == "done" else event
    assert [unit["position"] for unit in jobs.open_units(shared, job)] == [p for p, state in model.items() if not state]
    counted = jobs.progress(shared, job)
    assert counted["done"] == sum(state == "done" for state in model.values())
    assert counted["failed"] == sum(state == "failed" for state in model.values())


@pytest.mark.slow  # 3 CPU seconds, of a job larger than any study here divides into
def test_a_hundred_thousand_units_are_listed_and_counted_in_seconds(db):
    many = [{"key": f"unit-{k}", "size": 10, "arguments": {"k": k}} for k in range(100_000)]
    job, begun = jobs.add_job(db, "heads", "many", {}), time.process_time()
    jobs.add_units(db, job, {}, many)
    jobs.store_outcome(db, job, 5, jobs.UnitEnd(rows=[{"k": 5}], seconds=0.1))
    assert len(jobs.open_units(db, job)) == 99_999
    counted = jobs.progress(db, job)
    assert (counted["units"], counted["done"], counted["size"]) == (100_000, 1, 1_000_000)
    assert time.process_time() - begun < 30


def test_jobs_rows_and_seconds_are_counted(db, job):
    other = divided(db, "Heads of MRPC")
    assert [jobs.count_active(db), jobs.count_rows(db, job), jobs.seconds_of(db, "r1")] == [2, 0, None]
    jobs.set_state(db, other, "running")
    assert jobs.count_active(db) == 2
    jobs.store_outcome(db, job, 0, jobs.UnitEnd(rows=[{"a": 1}, {"a": 2}], seconds=2.0))
    jobs.store_outcome(db, job, 1, jobs.UnitEnd(error="ValueError: x", seconds=8.0))
    jobs.store_outcome(db, job, 2, jobs.UnitEnd(rows=[{"a": 3}], seconds=1.5))
    jobs.store_outcome(db, other, 0, jobs.UnitEnd(rows=[{"a": 4}], seconds=64.0))
    jobs.set_state(db, job, "done", run="r1")
    assert [jobs.count_active(db), jobs.count_rows(db, job), jobs.count_rows(db, other)] == [1, 3, 1]
    assert [jobs.seconds_of(db, "r1"), jobs.seconds_of(db, "r2")] == [3.5, None]  # of units that are done
