"""Sequences of jobs, which reuse stored results.

A job with the same options as a finished one is not run again, and an unfinished one is resumed. `begin` runs a
sequence in a thread of the app, so no page needs to stay open; commands call `run_in_turn`.
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
    """The study, options and title of one job in a sequence of jobs."""

    study: str
    options: Row
    title: str


@dataclass(frozen=True)
class Ended:
    """The outcome of one job in a sequence: a run ID or an error. `kept` is True if a stored run was reused."""

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
    """Run several jobs one after another. If a job fails, the next job still starts.

    Raises JobError if a job was cancelled or interrupted, which ends the sequence.

    Args:
        watch: called with the database and the ID of the job; returns once the job has stopped.
        before: called before each job with its zero-based number and its ID (None if an earlier run is reused).
    """
    ended: list[Ended] = []
    for number, request in enumerate(requests):
        done = None if anew else api.finished_like(db, request.study, request.options)
        try:
            job = None if done else api.unfinished_like(db, request.study, request.options)
            if job is not None and not api.status(db, job).active:
                api.resume(db, job)
            elif job is None and not done:
                job = api.start(db, request.study, request.options, request.title)
        except InputError as error:  # its checkpoint or examples lack something that the study needs
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
            raise JobError(
                f"The job {request.title} was {now.state} before it finished. Start the same report again to continue."
            )
        ended.append(Ended(now.run, now.error or ""))
    return ended


# ---------------------------------------------------------------- sequences in the app


@dataclass
class AtWork:
    """A sequence of jobs that runs in a background thread. `at` and `job` are the index and ID of the current job.
    `error` is not empty if an error ended the sequence."""

    requests: Sequence[JobRequest]
    at: int = 0
    job: str | None = None
    error: str = ""
    over: bool = False


_AT_WORK: "weakref.WeakKeyDictionary[Database, AtWork]" = weakref.WeakKeyDictionary()


def at_work(db: Database) -> AtWork | None:
    """Return the newest sequence of jobs that this process has started for a database; None if there is none."""
    return _AT_WORK.get(db.shared)


def begin(db: Database, requests: Sequence[JobRequest], then: Callable[[list[Ended]], object]) -> AtWork:
    """Run several jobs one after another in a background thread. The returned state is updated while the jobs run.

    `then` is called in the thread with the results. Raises JobError if another sequence is running, and RightsError if
    the person may not start one of the jobs.
    """
    now = at_work(db)
    if now is not None and not now.over:
        raise JobError(
            "Only one report can be made at a time, and another report is in progress. Wait until it is "
            "finished, or cancel its job."
        )
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
        except Exception as error:  # an unexpected error is shown on the page as well as logged
            log.exception("A sequence of jobs failed")
            state.error = (
                "The results could not be combined because of a defect of Attention Atlas "
                f"({type(error).__name__}). Report it."
            )
        finally:
            state.over = True

    threading.Thread(target=work, daemon=True).start()
    return state
