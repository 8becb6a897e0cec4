"""What a job shows before it is done: summaries of what is there, which leave the job its time."""

import time

import pytest

from core.jobs import api, scheduler
from core.store import jobs as store

TINY = "tests.jobs.tiny"


@pytest.mark.thorough
def test_summaries_take_a_small_part_of_a_job_however_many_units_it_has(db, folder, monkeypatch):
    """Each summary reads all rows so far: as often as units end, a job of many would be quadratic."""
    monkeypatch.setattr(scheduler, "SUMMARY_SECONDS", 0.0)
    read, began = store.job_rows, time.monotonic()
    asked = []

    def slowly(database, job):
        asked.append(time.monotonic())
        time.sleep(0.01)
        return read(database, job)

    monkeypatch.setattr(store, "job_rows", slowly)
    job = api.start(db, TINY, {"count": 100, "folder": str(folder)})
    assert api.wait(db, job, 60).state == "done"
    seconds = time.monotonic() - began
    assert 1 < len(asked) <= 4 + seconds / (scheduler.SUMMARY_PAUSE * 0.01)


def test_beyond_a_number_of_rows_nothing_is_read_for_summaries(db, folder, monkeypatch):
    monkeypatch.setattr(scheduler, "SUMMARY_SECONDS", 0.0)
    monkeypatch.setattr(scheduler, "SUMMARY_ROWS", 0)
    read, asked = store.job_rows, []
    monkeypatch.setattr(store, "job_rows", lambda *given: asked.append(given) or read(*given))
    job = api.start(db, TINY, {"count": 30, "folder": str(folder)})
    assert api.wait(db, job, 60).state == "done"
    assert len(asked) <= 2  # the last summary, and what the study keeps
