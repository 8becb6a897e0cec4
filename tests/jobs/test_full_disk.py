"""A disk that fills while a job runs: the job stops with a sentence, and goes on where it was once there is room."""

import resource

import pytest

from core.jobs import api
from core.store import jobs as store
from tests.jobs.test_api import TINY, pids, until


@pytest.mark.thorough
def test_a_job_stops_and_is_resumed(db, folder):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    job = api.start(db, TINY, {"count": 8, "seconds": 0.3, "folder": str(folder)})
    until(lambda: store.progress(db, job)["done"] >= 2, 60)
    log = db.path.with_name(db.path.name + ".wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, hard))  # stands for a disk without a free byte
    try:
        now = api.wait(db, job, 60)
        assert "its disk is full" in (now.error or "")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    until(lambda: api.status(db, job).state == "interrupted")
    kept = api.status(db, job)
    assert 2 <= kept.done < 8
    assert "its disk is full" in kept.error
    before = len(pids(folder))
    api.resume(db, job)
    done = api.wait(db, job, 60)
    assert (done.state, done.done, done.error) == ("done", 8, None)
    assert len(pids(folder)) - before == 8 - kept.done  # what was stored did not run again
