"""Jobs, on worker processes where it says so: rows, errors, cancel, resume, queue."""

import contextlib
import os
import signal
import threading
import time

import pytest

from core.errors import JobError, StoreError
from core.jobs import api, scheduler
from core.jobs.duration_estimate import keep_partial
from core.jobs.executors import JobPlacement
from core.store import backup, exchange, runs
from core.store import jobs as store
from core.store.database import Database
from core.store.people import Person, RightsError
from core.studies.transport import decode
from tests.jobs.tiny import Squares

TINY = "tests.jobs.tiny"


def until(true, seconds=120.0):
    """Wait for something another process does."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def numbers(db, job):
    return [int(decode(Squares, row["partial"]).k[0]) for row in store.job_rows(db, job)]


def pids(folder):
    return [int(line) for mark in folder.glob("ran-*") for line in mark.read_text().split()]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.thorough
@pytest.mark.processes
def test_a_job_runs_its_units_in_workers_and_keeps_a_run(db, folder):
    job = api.start(db, TINY, {"count": 6, "folder": str(folder)}, "Six squares")
    done = api.wait(db, job, 60)
    assert (done.state, done.units, done.done, done.failed, done.share) == ("done", 6, 6, 0, 1.0)
    assert (done.job, done.study, done.title, done.error) == (job, TINY, "Six squares", None)
    assert done.created == store.one_job(db, job)["created"]
    assert runs.run_rows(db, done.run) == [{"n": 6, "total": 55, "thirds": sum(k / 3 for k in range(6))}]
    assert numbers(db, job) == list(range(6))
    assert db.read("SELECT run, numbers FROM kept").values.tolist() == [[done.run, 6]]  # by the study's own `keep`
    known = runs.one_run(db, done.run)
    assert (known["title"], known["weights_hash"], known["seed"], known["task"]) == ("Six squares", "w7", 3, "squares")
    assert known["row_ids"] == [f"r{k}" for k in range(6)]
    assert known["options"]["count"] == 6
    used = set(pids(folder))
    assert os.getpid() not in used
    assert len(list(folder.glob("opened-*"))) == len(used)  # opened once a worker
    assert api.partial_rows(db, job)["total"].tolist() == [55]


def test_a_done_job_has_rows_and_seconds_and_is_no_longer_counted(db, folder, monkeypatch):
    job = api.start(db, TINY, {"count": 3, "seconds": 0.01, "folder": str(folder)})
    done = api.wait(db, job, 60)
    assert api.partial_rows(db, job)["total"].tolist() == [5]
    assert 0.03 <= store.seconds_of(db, done.run) < 30
    assert api.running_count(db) == 0

    def unreadable(db):
        raise StoreError("The database cannot be read.")

    monkeypatch.setattr(store, "count_active", unreadable)
    assert api.running_count(db) == 0


DOINGS = {"cancel": api.cancel, "resume": api.resume, "keep a part": keep_partial}


@pytest.mark.parametrize("doing", DOINGS)
def test_who_may_start_a_study_may_do_the_rest_with_its_jobs(db, doing):
    jobs = {study: store.add_job(db, study, "T", {"seed": 1}) for study in ("train-patterns", "statistics")}
    for job in jobs.values():
        store.set_state(db, job, "done")
    allowed = {"viewer": set(), "annotator": {"train-patterns"}, "admin": set(jobs)}
    for role, studies in allowed.items():
        person = db.acting_as(Person("grace", role))
        for study, job in jobs.items():
            if study not in studies:
                with pytest.raises(RightsError, match=doing):
                    DOINGS[doing](person, job)
                continue
            with contextlib.suppress(JobError):  # there is nothing left to do for a job that is done
                DOINGS[doing](person, job)


def test_a_failed_unit_shows_its_error_and_is_retried_alone(db, folder):
    job = api.start(db, TINY, {"fail": [2], "folder": str(folder)})
    failed = api.wait(db, job, 60)
    assert (failed.state, failed.done, failed.failed, failed.run) == ("failed", 3, 1, None)
    assert failed.error == "1 of 4 units of work failed. The first error is: ValueError: unit 2 is unlucky"
    api.resume(db, job)
    assert api.wait(db, job, 60).state == "done"
    assert {mark.name: len(mark.read_text().split()) for mark in folder.glob("ran-*")} == {
        "ran-0": 1,
        "ran-1": 1,
        "ran-2": 2,
        "ran-3": 1,
    }
    outcomes = store.unit_outcomes(db, job)
    assert outcomes["attempts"].tolist() == [1, 1, 2, 1]
    assert outcomes["worker"].str.fullmatch(r".+:\d+").all()


@pytest.mark.thorough
@pytest.mark.processes
def test_a_worker_that_dies_costs_nothing_but_time(db, folder):
    job = api.start(db, TINY, {"count": 5, "die": [1], "folder": str(folder)})
    done = api.wait(db, job, 60)
    assert done.state == "done"
    assert numbers(db, job) == list(range(5))
    assert store.unit_outcomes(db, job)["attempts"][1] > 1
    who = store.by_worker(db, job)
    assert who["units"].sum() == 5
    assert who["retries"].sum() >= 1
    assert who["worker"].str.fullmatch(r".+:\d+").all()


@pytest.mark.thorough
@pytest.mark.processes
def test_cancel_kills_a_running_unit_within_two_seconds_and_resume_finishes(db, folder):
    job = api.start(db, TINY, {"count": 3, "seconds": 600, "folder": str(folder)})
    until(lambda: len(pids(folder)) == 2)
    started = time.monotonic()
    api.cancel(db, job)
    stopped = api.wait(db, job, 10)
    until(lambda: not any(map(alive, pids(folder))))
    assert time.monotonic() - started < 2.0  # the promise of the Jobs page
    assert stopped.state == "cancelled"
    assert api.running_count(db) == 0


def test_a_waiting_job_can_be_cancelled_and_jobs_run_one_after_another(db, folder):
    first = api.start(db, TINY, {"count": 2, "seconds": 600, "folder": str(folder)})
    second = api.start(db, TINY, {"count": 1})
    third = api.start(db, TINY, {"count": 2})
    until(lambda: api.status(db, first).state == "running")
    assert api.running_count(db) == 3
    assert api.status(db, second).state == "queued"
    api.cancel(db, second)
    assert api.status(db, second).state == "cancelled"
    api.cancel(db, first)
    assert api.wait(db, third, 60).state == "done"
    assert api.wait(db, second, 10).state == "cancelled"


def test_starting_one_job_twice_joins_the_first_until_it_has_stopped(db, folder):
    options = {"count": 1, "seconds": 600, "folder": str(folder)}
    first = api.start(db, TINY, options)
    assert api.start(db, TINY, options) == first  # queued, or at work
    until(lambda: api.status(db, first).state == "running")
    assert api.start(db, TINY, dict(reversed(options.items())) | {"fail": []}) == first  # a default named is the same
    other = api.start(db, TINY, options | {"seconds": 0.0})
    assert other != first
    api.cancel(db, first)
    again = api.start(db, TINY, options)
    assert again not in {first, other}
    assert len(store.jobs(db)) == 3
    api.cancel(db, again)
    api.wait(db, again, 10)


def test_a_status_says_when_a_job_was_asked_for_and_why_its_end_could_not_be_stored(db, monkeypatch):
    job = store.add_job(db, TINY, "Six squares", {})
    monkeypatch.setattr(api.runner(db), "trouble", {job: "The disk is full."}.get)
    monkeypatch.setattr(api.runner(db), "rate", lambda asked, size_done: {job: 5.0 + size_done}[asked])
    known = api.status(db, job)
    assert known.rate == 5.0
    assert (known.created, known.error) == (store.one_job(db, job)["created"], "The disk is full.")


def test_where_all_units_fail_alike_their_error_is_the_jobs(db, folder):
    job = api.start(db, TINY, {"count": 1, "fail": [0], "folder": str(folder)}, "Unlucky")
    failed = api.wait(db, job, 60)
    assert (failed.title, failed.state, failed.error) == ("Unlucky", "failed", "ValueError: unit 0 is unlucky")
    first = api.start(db, TINY, {"count": 1, "seconds": 600, "folder": str(folder)})
    api.resume(db, job)
    assert api.status(db, job).state == "queued"  # until the first has ended
    api.cancel(db, first)
    assert api.wait(db, job, 60).state == "done"


def test_bad_options_and_names_become_the_jobs_error_in_one_sentence(db):
    for study, options, said in [
        (TINY, {"count": 2000}, "At most 1000 squares can be made, but 2000 were asked for; ask for fewer."),
        (TINY, {"cuont": 2}, "got 'cuont'"),
        ("no-such-study", {}, "got 'no-such-study'"),
        ("os; import sys", {}, "letters, digits and dashes"),
        (TINY, {"count": 0}, "of the study tiny must select something to compute"),
    ]:
        done = api.wait(db, api.start(db, study, options), 60)
        assert done.state == "failed"
        assert said in done.error
        assert "\n" not in done.error
        assert api.unfinished_like(db, study, options) == done.job
    assert api.unfinished_like(db, TINY, {"cuont": 3}) is None


def test_a_study_goes_in_rounds_until_it_asks_for_no_more(db):
    done = api.wait(db, api.start(db, "tests.jobs.rounds", {"count": 3}), 60)
    assert (done.state, done.units, done.error) == ("done", 3, None)
    assert runs.run_rows(db, done.run) == [{"n": 3, "total": 5, "thirds": 1.0}]


def test_a_defect_ends_its_job_with_a_sentence_and_the_next_job_runs(db, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(scheduler, "open_units", lambda *_: 1 / 0)
        failed = api.wait(db, api.start(db, TINY, {"count": 1}), 60)
    assert failed.state == "failed"
    assert failed.error == "The job failed because of a defect of Attention Atlas (ZeroDivisionError). Report it."
    assert api.wait(db, api.start(db, TINY, {"count": 2}), 60).state == "done"


def test_another_process_gets_its_copy_while_nothing_runs_and_cancels_with_a_file(db, folder, tmp_path):
    api.runner(db)
    assert backup.ask(db.path, tmp_path / "copy.duckdb", seconds=20) == (tmp_path / "copy.duckdb").stat().st_size
    job = api.start(db, TINY, {"count": 1, "seconds": 600, "folder": str(folder)})
    until(lambda: api.status(db, job).state == "running")
    request = exchange.runs_folder(db.path) / f"cancel-{job}"
    request.touch()
    assert api.wait(db, job, 20).state == "cancelled"
    assert not request.exists()


def test_the_end_of_the_process_interrupts_a_job(tmp_path, folder, monkeypatch):
    ends = []
    monkeypatch.setattr(threading, "_register_atexit", ends.append)
    with Database(tmp_path / "own.duckdb") as db:
        job = api.start(db, TINY, {"count": 1, "seconds": 600, "folder": str(folder)})
        until(lambda: api.status(db, job).state == "running")
        for end in ends:
            end()
        assert api.status(db, job).state == "interrupted"


def test_jobs_run_where_the_settings_say(db, monkeypatch):
    monkeypatch.setenv("ATLAS_WORKERS", "3")
    monkeypatch.setenv("ATLAS_CLUSTER", "tcp://127.0.0.1:9")
    keeper = scheduler.Runner(db)
    keeper.close()
    assert keeper.place == JobPlacement(3, "tcp://127.0.0.1:9")


def test_after_a_long_summary_units_have_twenty_times_as_long():
    live = scheduler.Live()
    live.pause_summaries(2.0)
    assert live.next_summary - time.monotonic() == pytest.approx(40.0, abs=1.0)


def test_a_run_that_a_terminal_left_is_stored_with_what_its_study_keeps(db, tmp_path):
    run = runs.record_run(db, TINY, {"count": 2}, runs.Provenance(), title="Left")
    file = exchange.export_run(db, run, tmp_path / "run.jsonl")
    runs.delete_runs(db, [run])
    assert api.take_in(db, file) == run
    assert runs.one_run(db, run)["title"] == "Left"
    assert db.read("SELECT run, numbers FROM kept").values.tolist() == [
        [run, 0]
    ]  # a terminal leaves no partial results


def test_a_file_of_ones_own_is_named_by_its_full_path_wherever_a_worker_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").write_text("sentence\nOne.\n")
    named = api.with_absolute_task_paths({"task": "own.csv", "tasks": ["own.csv", "sst2", 3], "limit": 5})
    own = str(tmp_path / "own.csv")
    assert named == {"task": own, "tasks": [own, "sst2", 3], "limit": 5}  # a 3 is refused by the study, in its words


def test_a_job_at_work_is_neither_resumed_nor_deleted(db, folder):
    job = api.start(db, TINY, {"count": 1, "seconds": 600, "folder": str(folder)})
    until(lambda: api.status(db, job).state == "running")
    for act in (api.resume, api.delete):
        with pytest.raises(JobError, match=r"^Only a stopped job can be (resumed|deleted); .* Cancel the job first\.$"):
            act(db, job)
    api.cancel(db, job)
    api.wait(db, job, 10)
    api.delete(db, job)
    assert store.jobs(db).empty


def test_progress_knows_rate_time_left_and_results_so_far_while_running(db, folder, monkeypatch):
    monkeypatch.setattr(scheduler, "SUMMARY_SECONDS", 0.0)
    job = api.start(db, TINY, {"count": 600, "seconds": 0.1, "folder": str(folder)})
    until(lambda: any(row["n"] >= 2 for row in api.partial_rows(db, job).to_dict("records")))
    now = api.status(db, job)
    assert (now.state, now.run) == ("running", None)
    assert 0 < now.share < 1
    assert now.rate > 0
    assert now.left == pytest.approx((now.size - now.size_done) / now.rate)
    api.cancel(db, job)
    api.wait(db, job, 10)


@pytest.mark.thorough
@pytest.mark.processes
@pytest.mark.parametrize("ended", [signal.SIGKILL])
def test_killing_one_worker_from_outside_loses_nothing(db, folder, ended):
    job = api.start(db, TINY, {"count": 8, "seconds": 0.2, "folder": str(folder)})
    until(lambda: api.status(db, job).done >= 2)
    os.kill(pids(folder)[-1], ended)
    assert api.wait(db, job, 60).state == "done"
    assert numbers(db, job) == list(range(8))


@pytest.mark.thorough
def test_an_interrupted_job_is_found_by_its_options_and_goes_on(db, folder):
    job = store.add_job(db, TINY, "Earlier", {"count": 3, "folder": str(folder)})
    units = [{"key": f"square-{k}", "size": 10, "arguments": {"k": k}} for k in range(3)]
    store.add_units(db, job, {"count": 3, "folder": str(folder)}, units)
    store.set_state(db, job, "interrupted")
    assert api.unfinished_like(db, TINY, {"count": 3, "folder": str(folder)}) == job
    assert api.unfinished_like(db, TINY, {"count": 4, "folder": str(folder)}) is None
    api.resume(db, job)
    done = api.wait(db, job, 60)
    assert done.state == "done"
    assert numbers(db, job) == [0, 1, 2]
    with pytest.raises(
        JobError, match=r"^Only a job with unfinished work can be resumed; this job is done\. Start a new job\.$"
    ):
        api.resume(db, job)
    assert api.finished_like(db, TINY, {"folder": str(folder), "count": 3}) == done.run
    assert api.unfinished_like(db, TINY, {"count": 3, "folder": str(folder)}) is None


@pytest.mark.parametrize(("weights", "taken_up"), [("now", True), ("before", False)])
def test_work_on_earlier_weights_is_neither_taken_for_todays_nor_gone_on_with(
    db, folder, monkeypatch, weights, taken_up
):
    monkeypatch.setattr("core.studies.stored_runs.present_weights", {"encoder": "now"}.get)
    options = {"count": 3, "folder": str(folder)}
    about = {"checkpoint": "encoder", "weights_hash": weights}
    run = runs.record_run(db, TINY, options, runs.Provenance(**about))
    done = store.add_job(db, TINY, "done", options)
    store.set_state(db, done, "done", run=run)
    stopped = store.add_job(db, TINY, "stopped", options)
    store.add_units(db, stopped, options, [{"key": str(k), "size": 1, "arguments": {"k": k}} for k in range(3)])
    store.store_outcome(db, stopped, 0, store.UnitEnd(rows=[], seconds=1.0, provenance=about))
    store.set_state(db, stopped, "interrupted")
    assert api.finished_like(db, TINY, options) == (run if taken_up else None)
    assert api.unfinished_like(db, TINY, options) == (stopped if taken_up else None)
    if not taken_up:
        with pytest.raises(
            JobError,
            match=r"^A job can only be resumed with the weights .* have changed since then\. Start a new job\.$",
        ):
            api.resume(db, stopped)
