"""Differences of two checkpoints as pages show them: second less first, everywhere."""

from collections.abc import Sequence

from core.store.rows import Row

DIFFERENCE = "difference"  # what the study of features calls it; its rows hold the first checkpoint less the second


def rows_second_less_first(rows: Sequence[Row]) -> list[Row]:
    """Rows of a difference with their sign turned; the others as they are."""
    return [_turned_row(row) if row.get("checkpoint") == DIFFERENCE else row for row in rows]


def _turned_row(row: Row) -> Row:
    value, low, high = (None if row.get(name) is None else -row[name] for name in ("value", "high", "low"))
    return row | {"value": value, "low": low, "high": high}
