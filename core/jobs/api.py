"""Functions that start, watch, cancel, resume and retry jobs. Each open database has one runner, which stores results.

job = start(db, "heads", {"task": "sst2"}, "Heads of SST-2")
status(db, job).share, partial_rows(db, job), cancel(db, job)
"""

import threading
import weakref
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import unit_progress
from ..errors import AtlasError, JobError, StoreError
from ..store import exchange, runs
from ..store import jobs as store
from ..store.database import Database
from ..studies import preflight
from ..studies.contract import Study, as_json, identity, provenance_of_run
from ..studies.imports import check_run
from ..studies.lookup import find_study
from ..studies.stored_runs import standing
from ..tasks.own import absolute
from .executors import JobPlacement
from .records import ACTIVE, BriefJob, JobProgress, jobs_of, one_job, progress
from .scheduler import Runner, keep
from .worker import complete, merged, progress_folder

if TYPE_CHECKING:
    import pandas as pd

_RUNNERS: "weakref.WeakKeyDictionary[Database, Runner]" = weakref.WeakKeyDictionary()
_GUARD = threading.Lock()
_STARTING = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class JobStatus(JobProgress):
    """The status of a job. `rate` is the size processed per second (None if unknown). `under_way` is the number of
    tokens already processed in unfinished units."""

    job: str
    study: str
    title: str
    state: str
    error: str | None
    run: str | None
    created: datetime
    rate: float | None
    under_way: float = 0.0

    @property
    def share(self) -> float:
        if not self.size:
            return float(self.state == "done")
        running = min(self.under_way, 0.99 * (self.size - self.size_done)) if unit_word(self.study) == "tokens" else 0.0
        return (self.size_done + running) / self.size

    @property
    def left(self) -> float | None:
        """Return the estimated number of seconds until the job ends; None if it cannot be estimated."""
        return (self.size - self.size_done) / self.rate if self.rate and self.active else None

    @property
    def active(self) -> bool:
        return self.state in ACTIVE


def runner(db: Database, place: JobPlacement | None = None) -> Runner:
    """Return the job runner of a database, creating it on first use. If `place` is given, jobs run there from now on. A
    new runner marks unfinished jobs of ended processes as interrupted."""
    db = db.shared  # one runner for all handles on the file
    with _GUARD:
        if db not in _RUNNERS:
            _RUNNERS[db] = Runner(db, place)
        keeper = _RUNNERS[db]
    if place is not None:
        keeper.place = place
    return keeper


def with_absolute_task_paths(options: Any) -> dict[str, Any]:
    """Return study options in which custom task files have absolute paths, so that other processes can find them."""
    named = dict(options) if isinstance(options, Mapping) else as_json(options)
    task, tasks = named.get("task"), named.get("tasks")
    if isinstance(task, str):
        named |= {"task": absolute(task)}
    if isinstance(tasks, list):
        named |= {"tasks": [absolute(task) if isinstance(task, str) else task for task in tasks]}
    return named


def start(db: Database, study: str, options: Any, title: str = "") -> str:
    """Queue a job that runs a study, and return the job ID without waiting for the job to end.

    If the same job is queued or running, its ID is returned instead. Raises InputError if the checkpoint or examples do
    not meet the requirements of the study, and RightsError if the person may not start it.
    """
    db.person.must(started_by(study), "start a job")
    check_runnable(study, options)
    keeper = runner(db)
    with _STARTING:
        active = [job for job in jobs_of(db, study) if job.active and not keeper.stopping(job.job)]
        # without an active job the study is not imported
        wanted = _identity(study, options) if active else None
        job = next((job.job for job in active if _identity(study, job.options) == wanted), None)
        if job is None:
            job = store.add_job(db, study, title or study, with_absolute_task_paths(options))
            keeper.put(job)
    return job


def started_by(study: str) -> str:
    """Return the lowest user role that may start, cancel and resume jobs of a study."""
    try:
        return find_study(study).started_by
    except JobError:
        return Study.started_by


def must_start(db: Database, job: str, doing: str) -> None:
    """Raise RightsError if the current user may not run the study of this job. `doing` names the action in the
    message."""
    try:
        study = one_job(db, job).study
    except JobError:  # reported by the next step
        study = ""
    db.person.must(started_by(study), doing)


def check_runnable(study: str, options: Any) -> None:
    """Raise InputError if a study cannot run on the checkpoint or examples in its options."""
    try:
        declared = find_study(study)
    except JobError:  # reported by the job itself
        return
    preflight.check_runnable(declared, with_absolute_task_paths(options))


def status(db: Database, job: str) -> JobStatus:
    """Return the current status of a job. Raises JobError if the job ID is unknown."""
    keeper = runner(db)
    known, counted = one_job(db, job), progress(db, job)
    return JobStatus(
        job=job,
        study=known.study,
        title=known.title,
        state=known.state,
        run=known.run,
        created=known.created,
        error=known.error or keeper.trouble(job),
        rate=keeper.rate(job, counted.size_done),
        under_way=unit_progress.tokens_under_way(progress_folder(known.study, known.options)) if known.active else 0.0,
        **asdict(counted),
    )


def unfinished_like(db: Database, study: str, options: Any) -> str | None:
    """Return the ID of the newest unfinished job with the same study, options and model weights, or None."""
    wanted = _identity(study, options)
    like = (job for job in jobs_of(db, study) if job.state != "done" and _identity(study, job.options) == wanted)
    return next((job.job for job in like if not _is_of_earlier_weights(db, study, job)), None)


def finished_like(db: Database, study: str, options: Any) -> str | None:
    """Return the ID of the newest run with the same study, options and model weights, or None."""
    wanted = _identity(study, options)
    like = (job for job in jobs_of(db, study) if job.state == "done" and job.run)
    same = (job.run for job in like if _identity(study, job.options) == wanted)
    known = ((run, runs.one_run(db, run)) for run in same if run)
    return next((run for run, about in known if about["imported"] is None and standing(about) != "earlier"), None)


def _is_of_earlier_weights(db: Database, study: str, job: BriefJob) -> bool:
    """Return whether stored units of a job used other weights than the checkpoint has now."""
    about = provenance_of_run(job.options, merged(store.job_provenance(db, job.job)))
    return standing(about.as_row() | {"study": study, "options": job.options}) == "earlier"


def _identity(study: str, options: Any) -> str:
    """Return the identity of the options completed by defaults, or as given if they are invalid."""
    named = with_absolute_task_paths(options)
    try:
        return identity(study, complete(find_study(study), named))
    except AtlasError:
        return identity(study, named)


def partial_rows(db: Database, job: str) -> "pd.DataFrame":
    """Return the result rows of a job as a data frame. The rows are preliminary while the job is running."""
    import pandas as pd  # imported here because it takes 0.4 s at start

    run = one_job(db, job).run
    return pd.DataFrame(runs.run_rows(db, run) if run else runner(db).partial(job))


def cancel(db: Database, job: str) -> None:
    """Stop a job. The results of its finished units remain stored, so that the job can be resumed."""
    must_start(db, job, "cancel a job")
    runner(db).cancel(job)


def resume(db: Database, job: str) -> None:
    """Continue an interrupted, cancelled or failed job, including its failed units."""
    must_start(db, job, "resume a job")
    keeper = runner(db)
    known = one_job(db, job)
    if known.active:
        raise JobError("Only a stopped job can be resumed; this job is still active. Cancel the job first.")
    if known.state == "done":
        raise JobError("Only a job with unfinished work can be resumed; this job is done. Start a new job.")
    if _is_of_earlier_weights(db, known.study, known):
        raise JobError(
            "A job can only be resumed with the weights that it started with; the weights of its checkpoint have "
            "changed since then. Start a new job."
        )
    store.ask_again(db, job)
    store.set_state(db, job, "queued")
    keeper.put(job)


def delete(db: Database, job: str) -> None:
    """Delete a job that is neither queued nor running. The results of its run remain stored."""
    db.person.must("admin", "delete a job")
    runner(db)
    if one_job(db, job).active:
        raise JobError("Only a stopped job can be deleted; this job is still active. Cancel the job first.")
    store.delete_job(db, job)


def take_in(db: Database, file: Path) -> str:
    """Import a run from a file, and return the ID of the run. Raises RightsError if the user may not import runs."""
    with db.write():
        run = exchange.import_run(db, file, check_run=check_run)
        keep(db, run)
    return run


def unit_word(study: str) -> str:
    """Return the word for the items that a study counts, such as "tokens". Return the default for unknown studies."""
    try:
        return find_study(study).counts
    except JobError:
        return Study.counts


def running_count(db: Database) -> int:
    """Return the number of running and queued jobs; 0 if the database cannot be read."""
    try:
        runner(db)
        return store.count_active(db)
    except StoreError:
        return 0


def wait(db: Database, job: str, timeout: int | float | None = None) -> JobStatus:
    """Wait until a job has stopped or `timeout` seconds have passed, and return its status."""
    runner(db).wait(job, timeout)
    return status(db, job)
