"""Jobs one after another: what is stored is not run again, an interruption goes on, a failure leaves its sentence."""

import time

import pytest

from core.errors import InputError, JobError
from core.jobs import api
from core.jobs.chain import JobRequest, at_work, begin, run_in_turn
from core.jobs.executors import JobPlacement
from core.store import jobs, runs
from core.store.database import Database
from tests.pages.browsing import until

TINY = "tests.jobs.tiny"


def asked(folder, *counts, **more):
    return [JobRequest(TINY, {"count": count, "folder": str(folder)} | more, f"{count} squares") for count in counts]


def ran(folder):
    return sum(len(mark.read_text().split()) for mark in folder.glob("ran-*"))


def test_each_job_is_run_once_and_its_run_is_found_again(db, folder):
    told = []
    first = run_in_turn(db, asked(folder, 2, 3))
    again = run_in_turn(db, asked(folder, 2, 3), before=lambda *one: told.append(one))
    assert [one.run for one in first] == [one.run for one in again]
    assert [one.kept for one in again] == [True, True]
    assert told == [(0, None), (1, None)]
    assert ran(folder) == 5
    assert runs.run_rows(db, first[1].run) == [{"n": 3, "total": 5, "thirds": 1.0}]
    assert run_in_turn(db, asked(folder, 2), anew=True)[0].run != first[0].run


def test_a_job_that_fails_leaves_its_sentence_and_the_next_one_runs(db, folder):
    found = run_in_turn(db, asked(folder, 2000, 2))
    assert "2000 were asked for" in found[0].error
    assert found[0].run is None
    assert found[1].run


def test_what_is_refused_at_once_leaves_its_sentence_and_the_next_one_runs(db, folder, monkeypatch):
    def check(study, options):
        if options["count"] == 2:
            raise InputError("Squares need more.")

    monkeypatch.setattr(api, "check_runnable", check)
    refused, done = run_in_turn(db, asked(folder, 2, 3))
    assert (refused.run, refused.error, refused.kept) == (None, "Squares need more.", False)
    assert (bool(done.run), done.error) == (True, "")


@pytest.mark.thorough
def test_an_interrupted_sequence_goes_on_where_it_stopped(tmp_path, folder):
    """The first process ends in the middle of the second job; the next one runs only what is not stored."""
    path, work = tmp_path / "own.duckdb", asked(folder, 2, 8, seconds=0.2)
    with Database(path) as db:
        api.runner(db, JobPlacement(workers=1))

        def stop_in_the_middle(db, job):
            until(lambda: ran(folder) >= 5 or api.status(db, job).state == "done")
            if api.status(db, job).state != "done":
                api.runner(db).close()
            api.wait(db, job)

        with pytest.raises(JobError, match="Start the same report again"):
            run_in_turn(db, work, watch=stop_in_the_middle)
        done = int(jobs.jobs(db)["done"].sum())
        assert 2 < done < 10
    with Database(path) as db:
        api.runner(db, JobPlacement(workers=1))
        before = ran(folder)
        found = run_in_turn(db, work)
        assert [one.kept for one in found] == [True, False]
        assert runs.run_rows(db, found[1].run)[0]["n"] == 8
        assert ran(folder) - before == 10 - done
        assert len(jobs.jobs(db)) == 2
        api.runner(db).close()


def test_in_the_app_a_sequence_runs_without_a_page(db, folder):
    ended = []
    state = begin(db, asked(folder, 2, 3, seconds=0.05), ended.extend)
    with pytest.raises(JobError, match="another report is in progress"):
        begin(db, asked(folder, 2), ended.extend)
    assert at_work(db) is state
    until(lambda: state.over)
    assert [bool(one.run) for one in ended] == [True, True]
    assert state.at == 1
    assert not state.error


def test_cancelling_the_job_under_way_ends_the_sequence(db, folder):
    ended = []
    state = begin(db, asked(folder, 50, 3, seconds=0.2), ended.extend)
    until(lambda: state.job is not None and api.status(db, state.job).done)
    api.cancel(db, state.job)
    until(lambda: state.over)
    assert "was cancelled" in state.error
    assert not ended


def test_a_defect_in_putting_together_is_told(db, folder):
    def fail(ended):
        raise ValueError

    state = begin(db, asked(folder, 1), fail)
    end = time.monotonic() + 60
    while not state.over:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert "defect of Attention Atlas (ValueError)" in state.error
