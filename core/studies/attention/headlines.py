"""The sentence of studies whose scores stand beside a null."""

from collections.abc import Callable, Sequence

from core.studies.attention.records import Score
from core.studies.headline import SURE, Headline, percent, plural


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
