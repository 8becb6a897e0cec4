"""Which map a person labels next: filters, orders, and what the chosen classifier suggests."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from ..codebook.measures import measured, sentences
from ..codebook.registry import dispute
from ..errors import InputError
from ..patterns.agreement import disputed
from ..patterns.raster import from_float16
from ..patterns.snapshot import standing_labels
from ..store import labels
from ..store.database import Database
from ..store.rows import Row

SURELY = 1.0  # a margin that no other exceeds
NEARLY_UNIFORM = 0.1  # largest weight; blank on the absolute scale
Hint = tuple[str, float, float]  # class, probability, margin to the second class
Hints = Callable[[Sequence[str]], dict[str, Hint]]


@dataclass(frozen=True)
class QueueOptions:
    """Which maps a person labels, and in what order. None is everything.

    Attributes:
        passing: 1 for the first pass, 2 for the maps of the first once more.
        seed: of the random order.
        layer: only this one, zero-based.
        review: show the maps that this person gave the class of this name, instead of undecided ones.
    """

    class_set: str
    annotator: str
    passing: int = 1
    order: str = "random"
    seed: int = 0
    checkpoint: str | None = None
    task: str | None = None
    layer: int | None = None
    review: str | None = None
    leave_out_uniform: bool = False


def queue(db: Database, options: QueueOptions, hints: Hints | None = None) -> list[str]:
    """Map ids in the order they are shown.

    random: by a hash of seed and map, so that the order holds when maps are added. uncertain: smallest margin of the
    classifier first. disagreement: maps whose raters differ first. adjudication: only those. codebook: maps first that
    somebody gave a class which the codebook's measurements dispute.

    Args:
        db: where maps and labels are stored.
        options: filters and order.
        hints: what a classifier says of maps; None where none suggests. A map that it leaves out comes last.

    Returns:
        The maps that this person has not decided on; for `review` those they gave that class; for adjudication all.

    Raises:
        InputError: the order is "uncertain" and no classifier suggests.
    """
    chosen = _undecided(db, options, _filtered(labels.map_facts(db), options))
    shuffled = sorted(chosen, key=lambda name: hashlib.sha256(f"{options.seed}:{name}".encode()).digest())
    if options.order == "uncertain":
        if hints is None:
            raise InputError(
                "The most uncertain maps come first only when a classifier suggests; none does: choose one "
                "on the Classifier page, or another order."
            )
        margins = hints(shuffled)
        return sorted(shuffled, key=lambda name: margins[name][2] if name in margins else SURELY)  # too small: last
    if options.order in ("disagreement", "adjudication"):
        differ = set(disputed(standing_labels(db, options.class_set)))
        first = [name for name in shuffled if name in differ]
        return first if options.order == "adjudication" else first + [name for name in shuffled if name not in differ]
    if options.order == "codebook":
        why = disputes(db, options.class_set, shuffled)
        return sorted(shuffled, key=lambda name: name not in why)
    return shuffled


def disputes(db: Database, class_set: str, names: Sequence[str]) -> dict[str, str]:
    """Why the codebook disputes a class that somebody gave, by map; maps without such a class are left out."""
    standing = standing_labels(db, class_set)
    classes = standing[standing["map_id"].isin(list(names))].groupby("map_id")["class"].unique()
    why: dict[str, str] = {}
    for row in labels.maps_of(db, list(classes.index)):
        reasons = (dispute_of(class_set, str(name), row) for name in sorted(classes[row["map_id"]]))
        if reason := next((reason for reason in reasons if reason), None):
            why[row["map_id"]] = reason
    return why


def dispute_of(class_set: str, name: str, row: Row) -> str | None:
    """Why the codebook disputes a class given to a stored map, None where it does not. row: as the store has it."""
    weights = from_float16(row["weights"], row["length"])
    measurements = measured(weights, separators=row["separators"], causal=row["causal"])
    return dispute(class_set, name, measurements, sentences=sentences(row["separators"], row["length"]))


class QueueProgress(NamedTuple):
    """How many maps of a choice this person has decided on, of how many."""

    done: int
    maps: int


def progress(db: Database, options: QueueOptions) -> QueueProgress:
    """How far a person is with what they asked for; what they look through again is all done."""
    names = _maps_of_choice(db, options, _filtered(labels.map_facts(db), options))
    decisions = labels.decided(db, options.class_set, options.annotator, passing=options.passing)
    if options.review is not None:
        reviewed = sum(decisions.get(name) == options.review for name in names)
        return QueueProgress(reviewed, reviewed)
    return QueueProgress(sum(name in decisions for name in names), len(names))


def _filtered(facts: pd.DataFrame, options: QueueOptions) -> pd.DataFrame:
    for column in ("checkpoint", "task", "layer"):
        choice = getattr(options, column)
        if choice is not None:
            facts = facts[facts[column] == choice]
    return facts[facts.maximum >= NEARLY_UNIFORM] if options.leave_out_uniform else facts


def _maps_of_choice(db: Database, options: QueueOptions, facts: pd.DataFrame) -> list[str]:
    """The maps of a choice, decided or not; in a second pass those of the first."""
    names = list(facts.map_id)
    if options.order == "adjudication":
        differ = set(disputed(standing_labels(db, options.class_set)))
        return [name for name in names if name in differ]
    if options.passing > 1 and options.review is None:
        before = labels.decided(db, options.class_set, options.annotator, passing=options.passing - 1)
        names = [name for name in names if before.get(name) is not None]
    return names


def _undecided(db: Database, options: QueueOptions, facts: pd.DataFrame) -> list[str]:
    names = _maps_of_choice(db, options, facts)
    if options.order == "adjudication" and options.review is None:
        return names
    decisions = labels.decided(db, options.class_set, options.annotator, passing=options.passing)
    if options.review is not None:
        return [name for name in names if decisions.get(name) == options.review]
    return [name for name in names if name not in decisions]
