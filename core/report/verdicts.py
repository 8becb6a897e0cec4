"""A published number beside ours: agrees, differs, or cannot be compared and why. Pure functions."""

from dataclasses import dataclass
from pathlib import Path

from core.report.evidence import Estimate
from core.report.published import Figure
from core.studies.study import Row

AGREES, DIFFERS, CANNOT = "agrees", "differs", "cannot be compared"
ALIASES = {"bert-base-uncased": {"bert-base-uncased"}, "gpt2": {"gpt2", "gpt2-small"}}


@dataclass(frozen=True)
class Ours:
    """One measured number. condition: of the checkpoint; n: what it was averaged over, in words of `of`; part: of the
    plan; note: one more fact about it. position: x in a picture of layers, 0 first to 1 last."""

    exhibit: str
    task: str | None
    item: str
    condition: str
    estimate: Estimate
    n: int
    of: str
    run: str | None
    note: str = ""
    position: float | None = None


@dataclass(frozen=True)
class Place:
    """Where ours was measured. checkpoint: the one before fine-tuning; official: tasks with GLUE's own dev rows;
    missing: why there is no number."""

    checkpoint: str
    official: tuple[str, ...] = ()
    missing: str = "not measured"


def is_checkpoint(name: str, published: str) -> bool:
    """Whether a name, folder or hub id (with or without a revision) is the checkpoint of a source."""
    last = Path(name.partition("@")[0].rstrip("/")).name.lower()
    return last in ALIASES.get(published, {published})


def verdict(figure: Figure | None, ours: Ours | None, place: Place) -> tuple[str, str]:
    """The word and why. A number agrees when its reading error reaches into our 95% interval.

    ("", "") for ours without a published number.
    """
    if figure is None:
        return "", ""
    if figure.flaw:
        return CANNOT, figure.flaw
    if not is_checkpoint(place.checkpoint, figure.checkpoint):
        return (
            CANNOT,
            f"another checkpoint: this is {Path(place.checkpoint).name}, it was printed for {figure.checkpoint}",
        )
    if ours is None:
        return CANNOT, place.missing
    if figure.task is not None and figure.task not in place.official:
        return CANNOT, "other rows: these are not GLUE's own dev rows"
    return _within(figure, ours)


def _within(figure: Figure, ours: Ours) -> tuple[str, str]:
    low, high = ours.estimate.low, ours.estimate.high
    if low is None or high is None:
        return CANNOT, "ours has no interval"
    if low - figure.error <= figure.value <= high + figure.error:
        return AGREES, f"{figure.value:.3g} lies within {low:.3g} to {high:.3g}"
    side = "above" if ours.estimate.value > figure.value else "below"
    return DIFFERS, f"ours is {abs(ours.estimate.value - figure.value):.3g} {side} it, beyond the interval"


def paired(figures: list[Figure], ours: list[Ours], place: Place, missing: dict[str | None, str]) -> list[Row]:
    """Rows of kind "value": every measured number with the published ones of the same task, item and condition, then
    the published ones that have no measured one. missing: by task, why there is none."""
    rows, used = [], set()
    for one in ours:
        key = (one.task, one.item, one.condition)
        mine = [figure for figure in figures if (figure.task, figure.item, figure.condition) == key]
        used.update(mine)
        rows += [_row(figure, one, place) for figure in mine] or [_row(None, one, place)]
    for figure in figures:
        if figure not in used:
            why = missing.get(figure.task, place.missing)
            rows.append(_row(figure, None, Place(place.checkpoint, place.official, why)))
    return rows


def _row(figure: Figure | None, ours: Ours | None, place: Place) -> Row:
    known = ours or figure
    assert known is not None  # noqa: S101 - one of both is always there
    word, why = verdict(figure, ours, place)
    row: Row = {
        "kind": "value", "exhibit": known.exhibit, "checkpoint": place.checkpoint, "task": known.task,
        "item": known.item, "condition": known.condition,
        "source": figure.source if figure else None, "published": figure.value if figure else None,
        "reading_error": figure.error if figure else None,
    }  # fmt: skip
    if ours is None:
        empty = dict.fromkeys(("value", "low", "high", "n", "of", "run", "note", "position"))
        return row | empty | {"position": figure.position if figure else None, "verdict": word, "why": why}
    estimate = {name: getattr(ours.estimate, name) for name in ("value", "low", "high")}
    facts = {name: getattr(ours, name) for name in ("n", "of", "run", "note", "position")}
    return row | estimate | facts | {"verdict": word, "why": why}
