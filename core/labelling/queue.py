"""The next map that a person labels outside a project: filters, orders, and suggestions of the classifier; and groups
of alike maps that a person can label together."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..codebook.measures import NEARLY_UNIFORM, measured, sentences
from ..codebook.registry import dispute
from ..errors import InputError
from ..patterns.agreement import disputed
from ..patterns.clusters import cluster_maps, components
from ..patterns.raster import from_float16
from ..patterns.shapes import shapes
from ..patterns.snapshot import current_labels
from ..store import labels
from ..store.database import Database
from ..store.rows import Row

SURELY = 1.0  # the largest possible margin


class Hint(NamedTuple):
    """A class that the classifier suggests, with its probability and its margin over the second most probable class."""

    name: str
    probability: float
    margin: float
    among: tuple[str, ...] = ()


Hints = Callable[[Sequence[str]], dict[str, Hint]]


@dataclass(frozen=True)
class QueueOptions:
    """Settings for labelling attention maps outside a project: which maps are selected, and in which order. A filter of
    None selects all maps.

    Attributes:
        passing: 1 for the first pass, 2 to label the maps of the first pass again. layer: zero-based. review: class
        name; select the maps that this person labelled so, instead of undecided maps.
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
    """Return the IDs of the maps that a person labels outside a project, in order.

    Maps without a decision by this person; with `review`, those labelled so; with "adjudication", all. Orders: "random"
    by a hash of seed and map, stable when maps are added; "uncertain" by smallest classifier margin, maps without a
    suggestion last; "disagreement", maps with differing labels first; "adjudication", only those; "codebook", maps
    first whose label contradicts the measurements of the codebook; "clusters" as "random", because
    `alike_maps` groups the maps that are shown. Raises InputError for "uncertain" without a classifier (`hints`).
    """
    chosen = _undecided(db, options, _filtered(labels.map_facts(db), options))
    shuffled = sorted(chosen, key=lambda name: hashlib.sha256(f"{options.seed}:{name}".encode()).digest())
    if options.order == "uncertain":
        if hints is None:
            raise InputError(
                'The order "uncertain" needs a classifier that suggests classes; none is chosen. Choose one on '
                "the Classifier page, or choose another order."
            )
        margins = hints(shuffled)
        # No suggestion for tiny maps: last
        return sorted(shuffled, key=lambda name: margins[name][2] if name in margins else SURELY)
    if options.order in ("disagreement", "adjudication"):
        differ = set(disputed(current_labels(db, options.class_set)))
        first = [name for name in shuffled if name in differ]
        return first if options.order == "adjudication" else first + [name for name in shuffled if name not in differ]
    if options.order == "codebook":
        why = disputes(db, options.class_set, shuffled)
        return sorted(shuffled, key=lambda name: name not in why)
    return shuffled


def disputes(db: Database, class_set: str, names: Sequence[str]) -> dict[str, str]:
    """Explain, for each attention map, why its label contradicts the labelling codebook. Maps whose labels agree with
    the codebook are left out."""
    current = current_labels(db, class_set)
    classes = current[current["map_id"].isin(list(names))].groupby("map_id")["class"].unique()
    why: dict[str, str] = {}
    for row in labels.maps_of(db, list(classes.index)):
        reasons = (dispute_of(class_set, str(name), row) for name in sorted(classes[row["map_id"]]))
        if reason := next((reason for reason in reasons if reason), None):
            why[row["map_id"]] = reason
    return why


def dispute_of(class_set: str, name: str, row: Row) -> str | None:
    """Explain why the labelling codebook contradicts a class for a stored attention map. Return None if there is no
    contradiction."""
    weights = from_float16(row["weights"], row["length"])
    measurements = measured(weights, separators=row["separators"], causal=row["causal"])
    return dispute(class_set, name, measurements, sentences=sentences(row["separators"], row["length"]))


class QueueProgress(NamedTuple):
    """How many of the selected maps a person has labelled or skipped, and the number of selected maps."""

    done: int
    maps: int


def progress(db: Database, options: QueueOptions, decisions: Mapping[str, str | None] | None = None) -> QueueProgress:
    """Count the selected maps that a person has labelled or skipped. A review counts only maps of the reviewed class.

    `decisions` is what `labels.decided` returns for the person and pass, if it has been read already.
    """
    names = _maps_of_choice(db, options, _filtered(labels.map_facts(db), options))
    if decisions is None:
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
    """Return the selected maps, decided or not; in a second pass, those decided in the first."""
    names = list(facts.map_id)
    if options.order == "adjudication":
        differ = set(disputed(current_labels(db, options.class_set)))
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


# ---------------------------------------------------------------- groups of alike maps


GROUP = 24  # maps, at most
SMALLEST = 3  # maps of a cluster
AT_ONCE = 1000  # maps; Ward's clustering needs memory for all pairs


def alike_maps(db: Database, names: Sequence[str]) -> list[list[str]]:
    """Group stored attention maps by similarity, with at most GROUP maps per group.

    More than AT_ONCE maps are clustered in random parts. Too few maps to cluster, and equal maps, are returned in
    groups of one.
    """
    shuffled = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    found: list[list[str]] = []
    for start in range(0, len(shuffled), AT_ONCE):
        rows = labels.maps_of(db, shuffled[start : start + AT_ONCE])
        statistics = shapes([from_float16(row["weights"], row["length"]) for row in rows])
        try:
            found += [[rows[k]["map_id"] for k in group] for group in groups(statistics)]
        except InputError:
            found += [[row["map_id"]] for row in rows]
    return found


def groups(statistics: np.ndarray) -> list[np.ndarray]:
    """Group attention maps by the similarity of their statistics, and return the indices in each group."""
    from scipy.cluster.hierarchy import leaves_list, ward  # 0.2 s of start-up

    nearest = cluster_maps(statistics, smallest=SMALLEST).nearest
    rank = np.argsort(leaves_list(ward(components(statistics))))
    found = []
    for cluster in range(nearest.max() + 1):
        members = np.flatnonzero(nearest == cluster)
        found += np.array_split(members[np.argsort(rank[members])], -(-len(members) // GROUP))
    return found
