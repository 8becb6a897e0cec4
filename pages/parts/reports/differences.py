"""Differences of two checkpoints as pages show them: second less first, everywhere."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from core.store.rows import Row
from core.studies.attention.records import Score

DIFFERENCE = "difference"  # what the study of features calls it; its rows hold the first checkpoint less the second
S = TypeVar("S", bound=Score)


def second_less_first(scores: Sequence[S]) -> list[S]:
    """Scores of a difference with their sign turned; the others as they are."""
    return [_turned(score) if score.checkpoint == DIFFERENCE else score for score in scores]


def rows_second_less_first(rows: Sequence[Row]) -> list[Row]:
    """The same of rows, for files."""
    return [_turned_row(row) if row.get("checkpoint") == DIFFERENCE else row for row in rows]


def _turned(score: S) -> S:
    value, low, high = (None if end is None else -end for end in (score.value, score.high, score.low))
    return replace(score, value=value, low=low, high=high)


def _turned_row(row: Row) -> Row:
    value, low, high = (None if row.get(name) is None else -row[name] for name in ("value", "high", "low"))
    return row | {"value": value, "low": low, "high": high}
