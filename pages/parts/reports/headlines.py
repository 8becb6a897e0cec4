"""Summaries of results, computed once, because the rows of a stored run do not change."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core.findings import figures
from core.report.headlines import headline
from core.report.report import STUDY_NAME
from core.store import runs
from core.store.rows import Row
from core.studies.attention.records import Score
from core.studies.headline import Headline
from core.tasks.glue import sampled
from pages.parts.reports.provenance import stored_run
from pages.parts.shell import resources

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
    run_headline = headline(stored.study, rows if stored.study == STUDY_NAME else _on(task, rows))
    return replace(run_headline, sentence=sampled(run_headline.sentence)) if stored.sampled else run_headline


def _on(task: str | None, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows of one task, if the rows are of several tasks."""
    tasks = {row.get("task") for row in rows} - {None}
    return [row for row in rows if row.get("task") in (None, task)] if task in tasks and len(tasks) > 1 else rows


@st.cache_resource(show_spinner=False, max_entries=400)
def _has_picture(run: str, holder: str) -> bool:
    stored = stored_run(run)
    return bool(heads_of(stored.result_rows)) or figures.has_numbers(stored.study, stored.result_rows)
