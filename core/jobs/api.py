"""Start, watch, cancel, resume and retry jobs. One runner per open database; it alone writes what workers return.

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
from ..studies.contract import Study, as_json, identity
from ..studies.lookup import find_study
from ..studies.provenance import provenance_of_run
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
    """How a job is doing. rate: tokens a second since it was last started, None before the first unit ends. under_way:
    tokens that unfinished units have run so far."""

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
        """Part of the work that is done, 0 to 1: of finished units, and of tokens that others have run."""
        if not self.size:
            return float(self.state == "done")
        running = min(self.under_way, 0.99 * (self.size - self.size_done)) if unit_word(self.study) == "tokens" else 0.0
        return (self.size_done + running) / self.size

    @property
    def left(self) -> float | None:
        """Seconds left at the present rate, or None."""
        return (self.size - self.size_done) / self.rate if self.rate and self.active else None

    @property
    def active(self) -> bool:
        """Whether it runs or waits to run."""
        return self.state in ACTIVE


def runner(db: Database, place: JobPlacement | None = None) -> Runner:
    """The runner of `db`. The first call marks jobs that an earlier process left running as interrupted.

    place: where its jobs run from now on; unchanged when None.
    """
    db = db.shared  # a runner keeps its own books, whoever looks first
    with _GUARD:
        if db not in _RUNNERS:
            _RUNNERS[db] = Runner(db, place)
        keeper = _RUNNERS[db]
    if place is not None:
        keeper.place = place
    return keeper


def with_absolute_task_paths(options: Any) -> dict[str, Any]:
    """Options as workers elsewhere can follow them: a task that is a file of the user's own by its full path."""
    named = dict(options) if isinstance(options, Mapping) else as_json(options)
    task, tasks = named.get("task"), named.get("tasks")
    if isinstance(task, str):
        named |= {"task": absolute(task)}
    if isinstance(tasks, list):
        named |= {"tasks": [absolute(task) if isinstance(task, str) else task for task in tasks]}
    return named


def start(db: Database, study: str, options: Any, title: str = "") -> str:
    """Queue a job of a study and return its id at once; what goes wrong later becomes the job's error.

    The same study with the same options is joined where it is queued or at work already: nothing is queued then.

    Args:
        db: where the job and its results are stored.
        options: the study's own record, or some of its options by name.
        title: what the job is called; "" for the study's name.

    Raises:
        InputError: the checkpoint or the rows lack what the study needs.
        RightsError: the person's role does not start jobs of this study.
    """
    db.person.must(started_by(study), "start a job")
    check_runnable(study, options)
    keeper = runner(db)
    with _STARTING:
        job = _active_like(db, study, options)
        if job is None:
            job = store.add_job(db, study, title or study, with_absolute_task_paths(options))
            keeper.put(job)
    return job


def started_by(study: str) -> str:
    """The lowest role that may start, cancel and resume jobs of a study, also with *Run again* and within a report."""
    try:
        return find_study(study).started_by
    except JobError:
        return Study.started_by


def must_start(db: Database, job: str, doing: str) -> None:
    """RightsError unless the person may start jobs of the study of `job`."""
    try:
        study = one_job(db, job).study
    except JobError:  # there is no such job, which what follows says
        study = ""
    db.person.must(started_by(study), doing)


def check_runnable(study: str, options: Any) -> None:
    """Refuse now what a job of `study` could not do with its checkpoint and rows. Raises InputError."""
    try:
        declared = find_study(study)
    except JobError:  # which the job itself says
        return
    preflight.check_runnable(declared, with_absolute_task_paths(options))


def _active_like(db: Database, study: str, options: Any) -> str | None:
    keeper = runner(db)
    active = [job for job in jobs_of(db, study) if job.active and not keeper.stopping(job.job)]
    if not active:
        return None  # nothing of the study is imported to queue its first job
    wanted = _identity(study, options)
    return next((job.job for job in active if _identity(study, job.options) == wanted), None)


def status(db: Database, job: str) -> JobStatus:
    """How `job` is doing now. Raises JobError when there is no such job."""
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
    """The newest job of `study` with these options that has work left (unfinished, failed or cancelled), or None; none
    whose units were run on weights that its checkpoint's name no longer leads to."""
    wanted = _identity(study, options)
    like = (job for job in jobs_of(db, study) if job.state != "done" and _identity(study, job.options) == wanted)
    return next((job.job for job in like if not _is_of_earlier_weights(db, study, job)), None)


def finished_like(db: Database, study: str, options: Any) -> str | None:
    """The run of the newest job of `study` with these options that is done, or None; none of weights that its
    checkpoint's name no longer leads to."""
    wanted = _identity(study, options)
    like = (job for job in jobs_of(db, study) if job.state == "done" and job.run)
    same = (job.run for job in like if _identity(study, job.options) == wanted)
    known = ((run, runs.one_run(db, run)) for run in same if run)
    return next((run for run, about in known if about["imported"] is None and standing(about) != "earlier"), None)


def _is_of_earlier_weights(db: Database, study: str, job: BriefJob) -> bool:
    """Whether units of it are stored that saw other weights than a unit would see now."""
    about = provenance_of_run(job.options, merged(store.job_provenance(db, job.job)))
    return standing(about.as_row() | {"study": study, "options": job.options}) == "earlier"


def _identity(study: str, options: Any) -> str:
    """Of the options with the study's defaults; of the bare ones where they cannot be options of it."""
    named = with_absolute_task_paths(options)
    try:
        return identity(study, complete(find_study(study), named))
    except AtlasError:
        return identity(study, named)


def partial_rows(db: Database, job: str) -> "pd.DataFrame":
    """The summary of what is done so far: refreshed every few seconds while it runs, the run's rows once done."""
    import pandas as pd  # a start's 0.4 s

    known = one_job(db, job)
    if known.run:
        return runs.study_rows(db, known.run)
    return pd.DataFrame(runner(db).partial(job))


def cancel(db: Database, job: str) -> None:
    """Stop `job` within two seconds: local units in the middle are killed. What is stored stays, and can be resumed."""
    must_start(db, job, "cancel a job")
    runner(db).cancel(job)


def resume(db: Database, job: str) -> None:
    """Run what is not stored of a job that was interrupted or cancelled; its failed units are tried again too."""
    must_start(db, job, "resume a job")
    keeper = runner(db)
    known = one_job(db, job)
    if known.active:
        raise JobError("Only a job that has stopped can be resumed, and this one is still at work; cancel it first.")
    if known.state == "done":
        raise JobError("Only a job with work left can be resumed, and this one is done; start it anew.")
    if _is_of_earlier_weights(db, known.study, known):
        raise JobError(
            "A job goes on with the weights that it began with, and its checkpoint has others by now; start it anew."
        )
    store.ask_again(db, job)
    store.set_state(db, job, "queued")
    keeper.put(job)


def delete(db: Database, job: str) -> None:
    """Remove a job that has stopped; the run its rows became stays."""
    db.person.must("admin", "delete a job")
    runner(db)
    if one_job(db, job).active:
        raise JobError("Only a job that has stopped can be deleted, and this one is still at work; cancel it first.")
    store.delete_job(db, job)


def take_in(db: Database, file: Path) -> str:
    """Store the run that a terminal left in `file` and what its study keeps of it; returns its id. Raises StoreError,
    RightsError, those of the study."""
    with db.write():
        run = exchange.import_run(db, file)
        keep(db, run)
    return run


def unit_word(study: str) -> str:
    """What the sizes of the units of `study` count; tokens of one that there is no more."""
    try:
        return find_study(study).counts
    except JobError:
        return Study.counts


def running_count(db: Database) -> int:
    """How many jobs run or wait, for the indicator on every page. 0 when the file cannot be read."""
    try:
        runner(db)
        return store.count_active(db)
    except StoreError:
        return 0


def wait(db: Database, job: str, timeout: int | float | None = None) -> JobStatus:
    """Block until `job` has stopped, or `timeout` seconds have passed; its status then."""
    runner(db).wait(job, timeout)
    return status(db, job)
