"""The sentence of studies whose scores stand beside a null, and the heads that stand out in a terminal's table."""

from collections.abc import Callable, Sequence
from typing import Any

from ...store.rows import Row
from ..headline import SURE, Headline, percent, plural
from .records import Score

BEST = 3  # rows of each feature that a table shows
SHOWN = (
    "checkpoint", "task", "statistic", "feature", "head", "value", "low", "high", "n", "baseline", "q", "distance",
    "dev", "kind", "has", "length_from", "length_to", "mean",
)  # fmt: skip


def above_null(scores: Sequence[Score], what: str, look: Callable[[Score], str]) -> Headline:
    """Of heads beside a null: the one furthest above it, and how many are; where none is, that first."""
    effects = [(score, score.effect) for score in scores if score.layer is not None and score.effect is not None]
    if not effects:
        return Headline(f"No input has what is looked for: no {what} were measured.")
    sure = [(score, effect) for score, effect in effects if (score.q or 1) < SURE and effect > 0]
    best, _ = max(sure or effects, key=lambda pair: pair[1])
    numbers = f"{best.value:.2f} against {best.baseline:.2f}"
    many = f"{plural(len(sure), len(effects), what)} are above their null"
    none = f"None of {len(effects):,} {what} is above its null beyond luck; the largest difference has {best.name}"
    return Headline(
        f"{best.name} {look(best)}: {numbers}; {many}." if sure else f"{none}, {best.feature}: {numbers}.",
        best.n,
        "inputs",
        percent(best.low, best.high, "{:.2f}", 1),
        f"null {best.baseline:.2f}",
    )


def outstanding(rows: Sequence[Row], by: str) -> list[list[Row] | str]:
    """The rows of each checkpoint, task, statistic and feature that have most of the column `by`, heads by name; below
    them why there are no numbers of others.

    Differences of two checkpoints have no effect of their own and stand out by their size; every length stays.
    """
    groups: dict[tuple[Any, ...], list[tuple[float, Row]]] = {}
    for row in rows:
        score = Score.of(row)
        size = abs(score.value or 0.0) if score.checkpoint == "difference" else row.get(by, row.get("mean"))
        if size is not None and row.get("chosen", True):
            key = tuple(row.get(name) for name in ("checkpoint", "task", "statistic", "feature", "length_from"))
            named = row | {"head": None if score.layer is None else score.name}
            groups.setdefault(key, []).append((size, {column: named[column] for column in SHOWN if column in named}))
    best = [sorted(sized, key=lambda pair: -pair[0])[:BEST] for sized in groups.values()]
    notes = [f"{score.feature or score.statistic}: {score.note}" for score in Score.among(rows) if score.note]
    return [[row for sized in best for _, row in sized], *dict.fromkeys(notes)]
