"""Comparison of a published and a measured number: agrees, differs, or cannot be compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ..interval import Estimate
from .ids import Condition, ExhibitId, Item
from .published_values import Figure
from .records import ValueRecord

ALIASES = {"bert-base-uncased": {"bert-base-uncased"}, "gpt2": {"gpt2", "gpt2-small"}}


class Verdict(StrEnum):
    """The result of comparing a measured number with a published number."""

    AGREES = "agrees"
    DIFFERS = "differs"
    CANNOT = "cannot be compared"
    NONE = ""


AGREES, DIFFERS, CANNOT = Verdict.AGREES, Verdict.DIFFERS, Verdict.CANNOT


@dataclass(frozen=True)
class Measured:
    """A number that was measured for a figure or table of the report."""

    exhibit: ExhibitId
    task: str | None
    item: Item
    condition: Condition
    estimate: Estimate
    n: int
    of: str
    run: str | None
    note: str = ""
    x: float | None = None

    @property
    def position(self) -> float | None:
        """Return the x coordinate at which this number is plotted. For a layer, this is its depth from 0 to 1."""
        return self.item.position if self.x is None else self.x


@dataclass(frozen=True)
class MeasurementContext:
    """The checkpoint and data from which numbers were measured. `official` lists the tasks that were measured on the
    dev examples of GLUE, and `missing` states why a number is missing."""

    checkpoint: str
    official: tuple[str, ...] = ()
    missing: str = "not measured"


def is_checkpoint(name: str, published: str) -> bool:
    """Return True if a name, folder or Hub ID refers to the checkpoint named `published`."""
    last = Path(name.partition("@")[0].rstrip("/")).name.lower()
    return last in ALIASES.get(published, {published})


def verdict(figure: Figure | None, measured: Measured | None, place: MeasurementContext) -> tuple[Verdict, str]:
    """Decide whether a published number lies in the measured interval, and explain why. If the number was read from a
    figure, the interval is widened by the reading error."""
    if figure is None:
        return Verdict.NONE, ""
    if figure.flaw:
        return CANNOT, figure.flaw
    if not is_checkpoint(place.checkpoint, figure.checkpoint):
        name = Path(place.checkpoint).name
        return CANNOT, f"the checkpoints differ: ours is {name}, and the number was published for {figure.checkpoint}"
    if measured is None:
        return CANNOT, place.missing
    if figure.task is not None and figure.task not in place.official:
        return CANNOT, "the examples differ: ours are not the dev examples of GLUE"
    low, high = measured.estimate.low, measured.estimate.high
    if low is None or high is None:
        return CANNOT, "our number has no interval"
    if low - figure.error <= figure.value <= high + figure.error:
        return AGREES, f"{figure.value:.3g} is within our interval, {low:.3g} to {high:.3g}"
    side = "above" if measured.estimate.value > figure.value else "below"
    return (
        DIFFERS,
        f"our number is {abs(measured.estimate.value - figure.value):.3g} {side} it, and our interval excludes it",
    )


def paired(
    figures: Sequence[Figure],
    measured: Sequence[Measured],
    place: MeasurementContext,
    missing: Mapping[str | None, str],
) -> list[ValueRecord]:
    """Pair each measured number with the published number for the same task, item and condition. `missing` maps tasks
    to the reason why published numbers were not measured."""
    values: list[ValueRecord] = []
    used: set[Figure] = set()
    for ours in measured:
        key = (ours.task, ours.item, ours.condition)
        matching = [figure for figure in figures if (figure.task, figure.item, figure.condition) == key]
        used.update(matching)
        values += [_value(figure, ours, place) for figure in matching] or [_value(None, ours, place)]
    for figure in figures:
        if figure not in used:
            why = missing.get(figure.task, place.missing)
            values.append(_value(figure, None, MeasurementContext(place.checkpoint, place.official, why)))
    return values


def _value(figure: Figure | None, ours: Measured | None, context: MeasurementContext) -> ValueRecord:
    shown = ours or figure
    assert shown is not None  # noqa: S101 - one of both is always there
    word, why = verdict(figure, ours, context)
    return ValueRecord(
        exhibit=shown.exhibit, checkpoint=context.checkpoint, task=shown.task, item=shown.item.text,
        condition=shown.condition,
        source=figure.source if figure else None, published=figure.value if figure else None,
        reading_error=figure.error if figure else None,
        value=ours.estimate.value if ours else None, low=ours.estimate.low if ours else None,
        high=ours.estimate.high if ours else None, n=ours.n if ours else None, of=ours.of if ours else None,
        run=ours.run if ours else None, note=ours.note if ours else None,
        position=ours.position if ours else shown.item.position,
        verdict=word, why=why,
    )  # fmt: skip
