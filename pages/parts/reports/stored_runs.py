"""Stored runs as pages show them: their facts, and their summaries, computed once because stored rows do not change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import streamlit as st

from core.findings import figures
from core.report.headlines import headline
from core.report.records import REPORT
from core.store import runs
from core.store.rows import Row, from_json
from core.studies.attention.records import Score
from core.studies.headline import Headline
from core.studies.imports import result_rows
from core.studies.lookup import find_study
from core.studies.records import Result, record_of
from core.studies.stored_runs import RunRecord, Standing, standing
from core.tasks.glue import sampled
from pages.parts.shell import resources
from pages.parts.shell.messages import short_names
from pages.parts.widgets.pickers import rows_name, task_name

K = TypeVar("K", bound=Result)
ORIGINS = {"yours": "your result", "shipped": "bundled", "imported": "imported, not measured here"}


@dataclass(frozen=True, kw_only=True)
class StoredRun(RunRecord):
    """A stored run. `source` is a key of ORIGINS, and `rows` the number of its rows."""

    options: Any = None
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
        return result_rows(resources.database(), self.run)

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
    def checkpoints(self) -> list[str]:
        """Return the names of all checkpoints that it is about."""
        return [name.rstrip("/") for part in (self.checkpoint or "").split(" and ") for name in part.split(", ")]

    @property
    def date(self) -> str:
        return f"{self.created:%d %B %Y}"


def known_runs(study: str) -> list[StoredRun]:
    """Return the runs of a study that have rows: the user's, newest first, then bundled, then imported ones, and last
    those of other weights."""
    return sorted(every_run(study), key=lambda stored: stored.is_outdated)


def every_run(study: str | None = None) -> list[StoredRun]:
    """Return the runs of a study (None: of all studies) that have rows: the user's, newest first, then bundled ones."""
    stored_runs = [record_of(StoredRun, row) for row in runs.known_runs(resources.database(), study).to_dict("records")]
    return [stored for stored in stored_runs if stored.rows > 0]


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


# ---------------------------------------------------------------- summaries


DIFFERENCE = "difference"  # what the study of features calls it; its rows hold the first checkpoint less the second


def rows_second_less_first(rows: Sequence[Row]) -> list[Row]:
    """Reverse the sign of rows that are differences."""
    return [_turned_row(row) if row.get("checkpoint") == DIFFERENCE else row for row in rows]


def _turned_row(row: Row) -> Row:
    value, low, high = (None if row.get(name) is None else -row[name] for name in ("value", "high", "low"))
    return row | {"value": value, "low": low, "high": high}


def headline_of(run: str, *, rows: str | None = None) -> Headline:
    """Return a stored run in one sentence; for several tasks, that of the task in `rows` if it is one of them."""
    return _headline(run, rows, runs.holder(resources.database(), run))


def has_picture(run: str) -> bool:
    """Return whether a stored run has numbers to draw."""
    return _has_picture(run, runs.holder(resources.database(), run))


def heads_of(rows: Sequence[Row]) -> list[Score]:
    """Return the rows with one number per head, of the first statistic and feature (for importance the gradient, which
    can be compared across layers)."""
    rows = [
        row | {"value": row["gradient"], "statistic": "gradient importance (gradient of the loss)"}
        if row.get("statistic") == "importance" and row.get("gradient") is not None
        else row
        for row in rows
    ]
    head_rows = [row for row in rows_second_less_first(rows) if {"statistic", "layer", "head", "value"} <= row.keys()]
    scores = [score for score in Score.of_heads(head_rows) if score.head is not None]
    return [score for score in scores if (score.statistic, score.feature) == (scores[0].statistic, scores[0].feature)]


@st.cache_resource(show_spinner=False, max_entries=400)
def _headline(run: str, task: str | None, holder: str) -> Headline:
    stored = stored_run(run)
    rows = stored.result_rows
    run_headline = headline(stored.study, rows if stored.study == REPORT else _on(task, rows))
    return replace(run_headline, sentence=sampled(run_headline.sentence)) if stored.sampled else run_headline


def _on(task: str | None, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows of one task, if the rows are of several tasks."""
    tasks = {row.get("task") for row in rows} - {None}
    return [row for row in rows if row.get("task") in (None, task)] if task in tasks and len(tasks) > 1 else rows


@st.cache_resource(show_spinner=False, max_entries=400)
def _has_picture(run: str, holder: str) -> bool:
    stored = stored_run(run)
    return bool(heads_of(stored.result_rows)) or figures.has_numbers(stored.study, stored.result_rows)
