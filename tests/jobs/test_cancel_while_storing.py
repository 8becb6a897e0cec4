"""A job that is cancelled while something of it is being stored: whole or not at all, and it goes on from there."""

import threading

import pytest

from core.errors import StoreError
from core.jobs import api, scheduler
from core.store import runs
from core.store.jobs import unit_outcomes
from tests.jobs.test_api import TINY, numbers, until

MOMENTS = [
    *[("add_units", 0), *(("store_outcome", number) for number in range(4)), ("job_provenance", 0)],
    *[("record_run", 0), ("store_rows", 0)],
]


# Every moment once by default, from either side in turn.
CASES = [
    pytest.param(
        *moment, inside, marks=pytest.mark.slow if (k + inside) % 2 else (), id=f"{'-'.join(map(str, moment))}-{where}"
    )
    for k, moment in enumerate(MOMENTS)
    for inside, where in ((True, "in the transaction"), (False, "from another thread"))
]


@pytest.mark.thorough
@pytest.mark.parametrize(("step", "number", "inside"), CASES)
def test_a_job_cancelled_while_it_stores_loses_nothing_and_doubles_nothing(db, monkeypatch, step, number, inside):
    room = runs if step in {"record_run", "store_rows"} else scheduler.store
    before, calls = getattr(room, step), []

    def cancelling(*given, **named):
        calls.append(step)
        if len(calls) - 1 != number:
            return before(*given, **named)
        with db.write():
            stored = before(*given, **named)
            cancel = threading.Thread(target=api.cancel, args=(db, job))
            api.cancel(db, job) if inside else cancel.start()
        if not inside:
            cancel.join()
        return stored

    begun = threading.Event()
    monkeypatch.setattr(room, step, lambda *given, **named: begun.wait() and cancelling(*given, **named))
    job = api.start(db, TINY, {"count": 4})
    begun.set()
    ended = api.wait(db, job, 60)
    assert ended.state in {"cancelled", "done"}
    assert (ended.run is not None) == (ended.state == "done")
    if ended.state == "cancelled":
        api.resume(db, job)
        ended = api.wait(db, job, 60)
    assert ended.state == "done"
    assert numbers(db, job) == list(range(4))
    assert unit_outcomes(db, job)["attempts"].tolist() == [1, 1, 1, 1]
    assert db.read("SELECT count(*) AS n FROM run")["n"].item() == 1
    assert runs.run_rows(db, ended.run) == [{"n": 4, "total": 14, "thirds": sum(k / 3 for k in range(4))}]


def test_a_cancel_that_cannot_be_written_down_is_written_down_later(db, folder, monkeypatch):
    first = api.start(db, TINY, {"count": 1, "seconds": 600, "folder": str(folder)})
    until(lambda: api.status(db, first).state == "running")
    second, before = api.start(db, TINY, {"count": 2}), scheduler.store.set_state

    def full(*_, **__):
        raise StoreError("The disk is full.")

    monkeypatch.setattr(scheduler.store, "set_state", full)
    with pytest.raises(StoreError):
        api.cancel(db, second)
    monkeypatch.setattr(scheduler.store, "set_state", before)
    api.cancel(db, first)
    until(lambda: api.status(db, second).state == "cancelled")
