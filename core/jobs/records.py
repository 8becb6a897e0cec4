"""Records of jobs, their units and their progress."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..store import jobs
from ..store.database import Database
from ..store.rows import Row
from ..studies.records import Result

# ---------------------------------------------------------------- answers of workers


@dataclass(frozen=True, kw_only=True)
class Answer(jobs.UnitEnd, Result):
    """The result of a task in a worker process, such as dividing a job into units or running one unit.

    After dividing a job, `options` are the options completed by defaults, and `units` the units of the job.
    """

    options: Row | None = None
    units: Sequence[Row] = ()


ACTIVE = frozenset({"queued", "running"})


@dataclass(frozen=True, kw_only=True)
class BriefJob(Result):
    """The main fields of a stored job. `run` is the ID of the run with the results; None if none are stored yet."""

    job: str
    state: str
    options: Mapping[str, Any]
    run: str | None

    @property
    def active(self) -> bool:
        return self.state in ACTIVE


@dataclass(frozen=True, kw_only=True)
class Job(BriefJob):
    """A stored job with all its fields. `asked` contains the options that the user set, without defaults."""

    study: str
    title: str
    error: str | None
    created: datetime
    started: datetime | None
    finished: datetime | None
    asked: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class JobProgress(Result):
    """The progress of a job: numbers of units, unit sizes (usually in tokens), and computing time in seconds."""

    units: int
    done: int
    failed: int
    size: int
    size_done: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class DividedUnit(Result):
    """One unit of work in a job, such as a batch of examples, with its size (usually in tokens) and JSON-serialisable
    arguments."""

    key: str
    size: int
    arguments: Any


@dataclass(frozen=True, kw_only=True)
class JobUnit(DividedUnit):
    """A unit of work that is still to be run in a job. `position` is its index among all units of the job."""

    position: int
    attempts: int


@dataclass(frozen=True, kw_only=True)
class UnitOutcome(Result):
    """The stored state of one unit of work in a job. `state` is None before the unit has run. `worker` is the host and
    process of the last attempt."""

    position: int
    key: str
    size: int
    state: str | None
    error: str | None
    seconds: float | None
    worker: str | None
    attempts: int


def one_job(db: Database, job: str) -> Job:
    """Return the job with the given ID from the database. Raises JobError if the ID is unknown."""
    return Job.of(jobs.one_job(db, job))


def jobs_of(db: Database, study: str) -> list[BriefJob]:
    """Return the jobs of a study, newest first."""
    return BriefJob.among(jobs.jobs_of(db, study))


def progress(db: Database, job: str) -> JobProgress:
    """Return the progress of a job: numbers and sizes of units, in total and finished, and computing time."""
    return JobProgress.of(jobs.progress(db, job))


def open_units(db: Database, job: str) -> list[JobUnit]:
    """Return the units of a job that have not run yet or must run again, in order."""
    return JobUnit.among(jobs.open_units(db, job))


def unit_outcomes(db: Database, job: str) -> list[UnitOutcome]:
    """Return the outcome of each unit of work in a job, in order."""
    return UnitOutcome.among(jobs.unit_outcomes(db, job).to_dict("records"))
