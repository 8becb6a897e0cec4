"""What is known of a stored run, as pages say it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from core.store import runs
from core.store.rows import Row, from_json
from core.studies.imports import read_rows
from core.studies.lookup import find_study
from core.studies.records import Result, record_of
from core.studies.stored_runs import Standing, standing
from core.tasks.glue import sampled
from pages.parts.shell import resources
from pages.parts.shell.short_names import short_names
from pages.parts.widgets.pickers import rows_name, task_name

K = TypeVar("K", bound=Result)
ORIGINS = {"yours": "your result", "shipped": "bundled", "imported": "imported, not measured here"}


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A run: of which study, of what, when, and whose. source: a key of ORIGINS. rows: how many it has."""

    run: str
    study: str
    title: str
    checkpoint: str | None = None
    weights_hash: str | None = None
    task: str | None = None
    split: str | None = None
    seed: int | None = None
    dtype: str | None = None
    operator: str | None = None
    row_ids: Any = None
    options: Any = None
    created: datetime
    rows: int = 0
    source: str = "yours"

    @property
    def told(self) -> Mapping[str, Any]:
        """Its options as they are stored."""
        return (from_json(self.options) if isinstance(self.options, str) else self.options) or {}

    @property
    def standing(self) -> Standing:
        """Whether it is of the weights that its checkpoint's name leads to now. What ships says nothing else."""
        about = {"checkpoint": self.checkpoint, "weights_hash": self.weights_hash, "options": self.told}
        now = standing(about | {"study": self.study})
        return "present" if now == "unrecorded" and self.source == "shipped" else now

    @property
    def is_outdated(self) -> bool:
        """Whether it is of other weights than its checkpoint's name leads to now, or does not say of which."""
        return self.standing in ("earlier", "unrecorded")

    @property
    def origin(self) -> str:
        """Whose it is, and of which weights where those are not the present ones."""
        whose = ORIGINS[self.source]
        if self.standing == "earlier":
            return f"{whose}, measured on earlier weights ({str(self.weights_hash)[:8]}) of this checkpoint"
        return f"{whose}, measured on unknown weights" if self.is_outdated else whose

    @property
    def settings(self) -> Any:
        """Its options as its study reads them. Raises InputError where an earlier version left what it cannot read."""
        return find_study(self.study).read(dict(self.told))

    @cached_property
    def result_rows(self) -> list[Row]:
        """The rows that its study left, without those that cannot be read, which the page reports."""
        return read_rows(resources.database(), self.run)

    def among(self, kind: type[K]) -> list[K]:
        """Its rows of one kind. Raises StoreError where one lacks a column."""
        return kind.among(self.result_rows)

    @property
    def inputs(self) -> int:
        """How many rows of a task it used; 0 of several tasks."""
        return len((from_json(self.row_ids) if isinstance(self.row_ids, str) else self.row_ids) or ())

    @property
    def sampled(self) -> bool:
        """Whether its rows are of the bundled samples, which are only like a task's."""
        return not self.told.get("data")

    @property
    def task_said(self) -> str:
        """Its tasks as people read them: "SST-2-like" of the bundled samples; "" without any."""
        names = ", ".join(task_name(task) for task in self.task.split(", ")) if self.task else ""
        return sampled(names) if self.sampled else names

    @property
    def checkpoint_said(self) -> str:
        """Its checkpoints by the last parts of their paths that tell them apart."""
        if not self.checkpoint:
            return ""
        between = " and " if " and " in self.checkpoint else ", "
        return between.join(short_names(self.checkpoint.split(between)).values())

    @property
    def of(self) -> str:
        """Its checkpoint, as pickers of checkpoints name it."""
        return str(self.checkpoint)

    @property
    def date(self) -> str:
        """The day it was made."""
        return f"{self.created:%d %B %Y}"


def known_runs(study: str) -> list[StoredRun]:
    """The runs of a study that have rows: the user's own, newest first, then those that ship, then those imported;
    after them those of weights that their checkpoints' names no longer lead to."""
    stored_runs = [record_of(StoredRun, row) for row in runs.known_runs(resources.database(), study).to_dict("records")]
    return sorted((stored for stored in stored_runs if stored.rows > 0), key=lambda stored: stored.is_outdated)


def present_runs(study: str) -> list[StoredRun]:
    """Those of the weights that are there now: what is looked up by a checkpoint's name."""
    return [stored for stored in known_runs(study) if not stored.is_outdated]


def rows_said(checkpoint: str, task: str) -> str:
    """A task as people read it beside stored scores of a checkpoint: "MRPC" where they are of its real rows alone."""
    run_rows = runs.known_runs(resources.database(), None).to_dict("records")
    task_runs = [
        stored
        for stored in (record_of(StoredRun, row) for row in run_rows)
        if checkpoint in (stored.checkpoint or "") and task in (stored.task or "").split(", ")
    ]
    return task_name(task) if task_runs and not any(stored.sampled for stored in task_runs) else rows_name(task)


def stored_run(run: str) -> StoredRun:
    """One run. Raises StoreError if unknown."""
    return record_of(StoredRun, runs.one_run(resources.database(), run) | {"run": run})
