"""Several jobs one after another, each taking up what an earlier one of the same options left in the store.

A job whose options were asked for before is not run again when it is done, and goes on where it stopped when it is
not. `begin` does this in a thread of the app, so that no page need stay open; commands call `run_in_turn`.
"""

import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import AtlasError, InputError, JobError
from ..store.database import Database
from ..store.rows import Row
from . import api

log = logging.getLogger("atlas.jobs")


@dataclass(frozen=True)
class JobRequest:
    """One job of a sequence."""

    study: str
    options: Row
    title: str


@dataclass(frozen=True)
class Ended:
    """What became of a job of a sequence: its run, or why there is none. kept: it had been done before."""

    run: str | None
    error: str = ""
    kept: bool = False


def run_in_turn(
    db: Database,
    requests: Sequence[JobRequest],
    *,
    watch: Callable[[Database, str], object] = api.wait,
    before: Callable[[int, str | None], None] | None = None,
    anew: bool = False,
) -> list[Ended]:
    """Run jobs one after another; one that fails leaves its sentence and the next one starts.

    Args:
        db: where the jobs are stored.
        requests: the jobs, in this order.
        watch: called with the database and the job's id; returns once the job has stopped.
        before: called with the job's number in the order, from 0, and its id (None: it is done already) before it is
            waited for.

    Returns:
        What became of each request, in their order.

    Raises:
        JobError: a job was cancelled or interrupted, which ends the sequence.
    """
    ended: list[Ended] = []
    for number, request in enumerate(requests):
        done = None if anew else api.finished_like(db, request.study, request.options)
        try:
            job = None if done else _put(db, request)
        except InputError as error:  # its checkpoint or rows lack what it needs
            ended.append(Ended(None, str(error)))
            continue
        if before:
            before(number, job)
        if job is None:
            ended.append(Ended(done, kept=True))
            continue
        watch(db, job)
        now = api.status(db, job)
        if now.state in ("cancelled", "interrupted"):
            raise JobError(f"The job {request.title} was {now.state}; ask for the same again to go on.")
        ended.append(Ended(now.run, now.error or ""))
    return ended


def _put(db: Database, request: JobRequest) -> str:
    job = api.unfinished_like(db, request.study, request.options)
    if job is None:
        return api.start(db, request.study, request.options, request.title)
    if not api.status(db, job).active:
        api.resume(db, job)
    return job


# ---------------------------------------------------------------- in the app


@dataclass
class AtWork:
    """A sequence in a thread. at: number of the job under way, from 0; job: its id; error: why it ended early."""

    requests: Sequence[JobRequest]
    at: int = 0
    job: str | None = None
    error: str = ""
    over: bool = False


_AT_WORK: "weakref.WeakKeyDictionary[Database, AtWork]" = weakref.WeakKeyDictionary()


def at_work(db: Database) -> AtWork | None:
    """The newest sequence begun on this database here, over or not."""
    return _AT_WORK.get(db.shared)


def begin(db: Database, requests: Sequence[JobRequest], then: Callable[[list[Ended]], object]) -> AtWork:
    """Run jobs one after another in a thread of this process.

    Args:
        db: where the jobs are stored.
        requests: the jobs, in this order.
        then: called in the thread with what became of each, once all have stopped.

    Returns:
        The state of the sequence, which the thread keeps up to date.

    Raises:
        JobError: while another sequence is at work.
        RightsError: the person's role does not start one of the jobs.
    """
    now = at_work(db)
    if now is not None and not now.over:
        raise JobError("One report is made at a time, and one is being made; wait for it or cancel its job first.")
    for request in requests:
        db.person.must(api.started_by(request.study), "start a job")
    state = _AT_WORK[db.shared] = AtWork(requests)

    def note(number: int, job: str | None) -> None:
        state.at, state.job = number, job

    def work() -> None:
        try:
            then(run_in_turn(db, requests, before=note))
        except AtlasError as error:
            state.error = str(error)
        except Exception as error:  # a defect of ours is told on the page, not only in the log
            log.exception("A sequence of jobs failed")
            state.error = f"Putting the results together met a defect ({type(error).__name__}); report it."
        finally:
            state.over = True

    threading.Thread(target=work, daemon=True).start()
    return state
