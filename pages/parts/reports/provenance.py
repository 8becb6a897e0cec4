"""Facts about a stored run, as pages show them."""

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
from pages.parts.shell.messages import short_names
from pages.parts.widgets.pickers import rows_name, task_name

K = TypeVar("K", bound=Result)
ORIGINS = {"yours": "your result", "shipped": "bundled", "imported": "imported, not measured here"}


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A stored run. `source` is a key of ORIGINS, and `rows` the number of its rows."""

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
        return (from_json(self.options) if isinstance(self.options, str) else self.options) or {}

    @property
    def standing(self) -> Standing:
        """Return whether it used the current weights of its checkpoints; bundled runs always did."""
        about = {"checkpoint": self.checkpoint, "weights_hash": self.weights_hash, "options": self.told}
        now = standing(about | {"study": self.study})
        return "present" if now == "unrecorded" and self.source == "shipped" else now

    @property
    def is_outdated(self) -> bool:
        """Return whether it used other weights than the checkpoints have now, or does not record them."""
        return self.standing in ("earlier", "unrecorded")

    @property
    def origin(self) -> str:
        """Return the origin of the run, with a remark if it used other weights."""
        whose = ORIGINS[self.source]
        if self.standing == "earlier":
            return f"{whose}, measured on earlier weights ({str(self.weights_hash)[:8]}) of this checkpoint"
        return f"{whose}, measured on unknown weights" if self.is_outdated else whose

    @property
    def settings(self) -> Any:
        """Return its validated options. Raises InputError if an earlier version stored invalid ones."""
        return find_study(self.study).read(dict(self.told))

    @cached_property
    def result_rows(self) -> list[Row]:
        """Return its rows, without unreadable ones, which the page reports."""
        return read_rows(resources.database(), self.run)

    def among(self, kind: type[K]) -> list[K]:
        """Return its rows of one kind. Raises StoreError if a column is missing."""
        return kind.among(self.result_rows)

    @property
    def inputs(self) -> int:
        """Return how many examples of a task it used; 0 for several tasks."""
        return len((from_json(self.row_ids) if isinstance(self.row_ids, str) else self.row_ids) or ())

    @property
    def sampled(self) -> bool:
        """Return whether its examples are bundled samples, which only imitate the task."""
        return not self.told.get("data")

    @property
    def task_said(self) -> str:
        """Return the names of its tasks, "SST-2-like" for bundled samples; "" without tasks."""
        names = ", ".join(task_name(task) for task in self.task.split(", ")) if self.task else ""
        return sampled(names) if self.sampled else names

    @property
    def checkpoint_said(self) -> str:
        """Return its checkpoints by the shortest distinct parts of their paths."""
        if not self.checkpoint:
            return ""
        between = " and " if " and " in self.checkpoint else ", "
        return between.join(short_names(self.checkpoint.split(between)).values())

    @property
    def of(self) -> str:
        """Return its checkpoint, as pickers name it."""
        return str(self.checkpoint)

    @property
    def date(self) -> str:
        return f"{self.created:%d %B %Y}"


def known_runs(study: str) -> list[StoredRun]:
    """Return the runs of a study that have rows: the user's, newest first, then bundled, then imported ones, and last
    those of other weights."""
    stored_runs = [record_of(StoredRun, row) for row in runs.known_runs(resources.database(), study).to_dict("records")]
    return sorted((stored for stored in stored_runs if stored.rows > 0), key=lambda stored: stored.is_outdated)


def present_runs(study: str) -> list[StoredRun]:
    return [stored for stored in known_runs(study) if not stored.is_outdated]


def rows_said(checkpoint: str, task: str) -> str:
    """Return the name of the task of stored scores: "MRPC" only if all are from original examples."""
    run_rows = runs.known_runs(resources.database(), None).to_dict("records")
    task_runs = [
        stored
        for stored in (record_of(StoredRun, row) for row in run_rows)
        if checkpoint in (stored.checkpoint or "") and task in (stored.task or "").split(", ")
    ]
    return task_name(task) if task_runs and not any(stored.sampled for stored in task_runs) else rows_name(task)


def stored_run(run: str) -> StoredRun:
    """Return one run. Raises StoreError if unknown."""
    return record_of(StoredRun, runs.one_run(resources.database(), run) | {"run": run})
