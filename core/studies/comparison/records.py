"""The rows of the studies that compare heads across checkpoints."""

from dataclasses import dataclass
from typing import ClassVar

from ..records import Figure, Result, stated


@dataclass(frozen=True, kw_only=True)
class Counterpart(Result):
    """The head of another checkpoint that a head is matched with.

    Attributes:
        match_layer, match_head: one to one; None where the other has fewer heads and none is left.
        similarity: to the match; 1 - mean Jensen-Shannon distance of rows. Range 0 to 1.
        low, high: its 95 % interval over n inputs.
        best_layer, best_head, best: the most similar head, whichever other head has it too.
        margin: similarity less the largest that either of the two has to another head of the other checkpoint;
            negative where another is more alike.
        margin_low, margin_high: its 95 % interval; None in rows of before it was asked for.
        p: of being as similar to a head of random weights of the other's shape that spread as much, corrected over all
            heads.
        agrees: whether both halves of the inputs give this match.
        matched: whether the match is a counterpart (`core.scoring.counterparts.counterparts`).
    """

    KINDS: ClassVar[tuple[str, ...]] = ("counterpart",)
    FIGURE = Figure("similarity", "similarity to the counterpart in {compare}")
    checkpoint: str
    compare: str
    layer: int
    head: int
    match_layer: int | None = stated()
    match_head: int | None = stated()
    similarity: float | None = stated()
    low: float | None = stated()
    high: float | None = stated()
    margin: float | None = stated()
    margin_low: float | None = None
    margin_high: float | None = None
    p: float | None = stated()
    agrees: bool = stated(default=False)
    matched: bool = stated(default=False)
    best_layer: int
    best_head: int
    best: float
    n: int

    @property
    def name(self) -> str:
        """The head as people write it, from 1."""
        return f"L{self.layer + 1}H{self.head + 1}"

    @property
    def match(self) -> str:
        """The matched head as people write it; "" without one."""
        return "" if self.match_layer is None else f"L{self.match_layer + 1}H{(self.match_head or 0) + 1}"


@dataclass(frozen=True, kw_only=True)
class CounterpartsSummary(Result):
    """What was compared, and how many heads have a counterpart.

    Attributes:
        keys: "tokens", or "words" where the two split texts into other tokens.
        visible: "all", or "up to the query" where one of the two looks back only.
        identical: whether both have the same weights.
        same_place: matched with the head of the same layer and number.
        weights_hash, compare_hash: of both checkpoints' weights.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("match",)
    checkpoint: str
    compare: str
    keys: str
    visible: str
    identical: bool
    matched: int
    same_place: int
    heads: int
    others: int
    draws: int
    rows: int
    n: int
    weights_hash: str
    compare_hash: str


@dataclass(frozen=True, kw_only=True)
class Recurrence(Result):
    """In how many other checkpoints a head has a counterpart.

    Attributes:
        runs: the other checkpoints: seeds, say. found: those in which it is matched. same_place: at its own place.
        share, low, high: found of runs, with its 95 % interval (Wilson).
        similarity: mean over runs; None without any match.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("recurrence",)
    checkpoint: str
    layer: int
    head: int
    runs: int
    found: int
    same_place: int
    share: float
    low: float
    high: float
    similarity: float | None = stated()
    n: int


@dataclass(frozen=True, kw_only=True)
class RecurrenceSummary(Result):
    """How many heads recur in all of the other checkpoints.

    Attributes:
        everywhere, nowhere: heads matched in all of the runs, in none.
        share, low, high: mean share of heads that a run has again, with its 95 % t interval over runs.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("recurring",)
    checkpoint: str
    runs: int
    heads: int
    everywhere: int
    nowhere: int
    share: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, kw_only=True)
class CurvePoint(Result):
    """A score of a head at one snapshot of training.

    Attributes:
        snapshot: as it was named. order: from 0.
        score: of `core.scoring.registry.MAP_SCORES`.
        layer, head: of the last snapshot where heads are followed; else the place.
        at_layer, at_head: whose score this is: the matched head, or the same place.
        value, low, high: with its 95 % interval over n inputs; None where undefined or not measured.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("curve",)
    FIGURE = Figure("value", "{score} at {snapshot}")
    snapshot: str
    order: int
    score: str
    layer: int
    head: int
    value: float | None = stated()
    low: float | None = stated()
    high: float | None = stated()
    at_layer: int
    at_head: int
    n: int
    weights_hash: str = ""


@dataclass(frozen=True, kw_only=True)
class Beginning(Result):
    """When a head began to look somewhere, and kept to it.

    Attributes:
        score, bound: it looks there while the score is above the bound.
        after, by: it began between these two snapshots; after is None where it did so in the first already.
        earliest, latest: by which snapshot, with the upper and the lower end of the scores' intervals; latest is None
            where the lower end is not above the bound in the end.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("beginning",)
    score: str
    bound: float
    layer: int
    head: int
    after: str | None = stated()
    by: str
    order: int
    earliest: str
    latest: str | None = stated()


@dataclass(frozen=True, kw_only=True)
class RoleBeginnings(Result):
    """When the heads of one role began.

    Attributes:
        median, low, high: the first snapshot by which half of them have begun, by name, with its 95 % bootstrap
            interval over heads.
        place: the median as a number, from 0.
        first: share of the draws over heads in which no other role is earlier.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("order",)
    score: str
    heads: int
    earliest: str | None = stated()
    median: str | None = stated()
    low: str | None = stated()
    high: str | None = stated()
    place: float | None = stated()
    first: float
    snapshots: int
