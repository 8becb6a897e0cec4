"""Jobs, their units and how far they are, as `core.store.jobs` tells of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..store import jobs
from ..store.database import Database
from ..store.rows import Row
from ..studies.records import Result

# ---------------------------------------------------------------- what a worker answers, as a record


@dataclass(frozen=True, kw_only=True)
class Answer(Result):
    """What a worker answers.

    Attributes:
        rows: of a unit, or of a summary.
        provenance: of a unit's rows.
        options: of a division, completed by the study's defaults.
        error: why there is nothing else, in a sentence; None where there is.
        deaths: workers that died in the unit before.
    """

    rows: Sequence[Row] | None = None
    provenance: Row | None = None
    options: Row | None = None
    units: Sequence[Row] = ()
    error: str | None = None
    seconds: float = 0.0
    worker: str = ""
    deaths: int = 0


# ----------------------------------------------------------------


ACTIVE = frozenset({"queued", "running"})


@dataclass(frozen=True, kw_only=True)
class BriefJob(Result):
    """A job of a study. options: with the study's defaults, once it is divided into units; run: None where it is
    gone."""

    job: str
    state: str
    options: Mapping[str, Any]
    run: str | None

    @property
    def active(self) -> bool:
        """Whether it runs or waits to run."""
        return self.state in ACTIVE


@dataclass(frozen=True, kw_only=True)
class Job(BriefJob):
    """All that is known of a job. asked: the options as given."""

    study: str
    title: str
    error: str | None
    created: datetime
    started: datetime | None
    finished: datetime | None
    asked: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class JobProgress(Result):
    """How far a job is.

    Attributes:
        size: tokens of all units.
        size_done: tokens of the units that are done.
        seconds: spent in units.
    """

    units: int
    done: int
    failed: int
    size: int
    size_done: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class DividedUnit(Result):
    """A piece of a job, as its study divides it. size: tokens; arguments: in JSON's own types."""

    key: str
    size: int
    arguments: Any


@dataclass(frozen=True, kw_only=True)
class JobUnit(DividedUnit):
    """A unit that still has to run. position: its place among all units of its job; attempts: how often it was
    tried."""

    position: int
    attempts: int


@dataclass(frozen=True, kw_only=True)
class UnitOutcome(Result):
    """What became of a unit; state None where nothing has yet. worker: host and process of the last attempt."""

    position: int
    key: str
    size: int
    state: str | None
    error: str | None
    seconds: float | None
    worker: str | None
    attempts: int


def one_job(db: Database, job: str) -> Job:
    """What is known of `job`. Raises JobError when there is no such job."""
    return Job.of(jobs.one_job(db, job))


def jobs_of(db: Database, study: str) -> list[BriefJob]:
    """Jobs of `study`, newest first."""
    return BriefJob.among(jobs.jobs_of(db, study))


def progress(db: Database, job: str) -> JobProgress:
    """How far `job` is."""
    return JobProgress.of(jobs.progress(db, job))


def open_units(db: Database, job: str) -> list[JobUnit]:
    """Units of `job` that still have to run, in order."""
    return JobUnit.among(jobs.open_units(db, job))


def unit_outcomes(db: Database, job: str) -> list[UnitOutcome]:
    """What became of each unit of `job`, in order."""
    return UnitOutcome.among(jobs.unit_outcomes(db, job).to_dict("records"))
