"""Result records of studies that compare heads across checkpoints."""

from dataclasses import dataclass
from typing import ClassVar

from ...attention import Head
from ..records import Figure, Result, stated


@dataclass(frozen=True, kw_only=True)
class Counterpart(Result):
    """A head, the head that one-to-one matching assigns to it in another checkpoint, and their similarity.

    Attributes:
        match_layer, match_head: one to one; None if the other checkpoint has no head left.
        similarity: to the match: 1 - mean Jensen-Shannon distance of rows, 0 to 1.
        best_layer, best_head, best: the most similar head, even if it is matched with another head.
        margin: similarity minus the largest that either head has to another head; negative if another head is more
            similar.
        p: p-value of the similarity under random weights of equal entropy, corrected over all heads.
        agrees: whether both halves of the inputs yield this match.
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
        return str(Head(self.layer, self.head))

    @property
    def match(self) -> str:
        """Return the name of the matched head in the other checkpoint, or "" if there is none."""
        return "" if self.match_layer is None else str(Head(self.match_layer, self.match_head or 0))


@dataclass(frozen=True, kw_only=True)
class CounterpartsSummary(Result):
    """A summary of the comparison of two checkpoints: how maps are compared, and how many heads have a counterpart.

    Attributes:
        keys: "tokens", or "words" if the tokenizers differ.
        visible: "all", or "up to the query" if only one checkpoint is causal.
        identical: whether both have the same weights.
        same_place: number of heads matched with the head of the same layer and number.
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
    """The number of other checkpoints in which a head has a counterpart, and the number in which this counterpart has
    the same layer and head number."""

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
    """The fraction of heads with a counterpart in another checkpoint, averaged over checkpoints, with a t interval."""

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
    """The score of one head in one snapshot of training.

    Attributes:
        layer, head: in the last snapshot if heads are tracked, otherwise in this snapshot.
        at_layer, at_head: the head that was measured: the matching head, or the same layer and number.
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
    """The training snapshot from which a head keeps a role until the end of training.

    Attributes:
        score, bound: the head has the role while the score is above the bound.
        after, by: the role began between these snapshots; after is None if it began in the first one.
        earliest, latest: the same according to the upper and lower ends of the intervals; latest is None if the lower
            end is not above the bound at the end.
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
    """The times in training at which heads acquired a given role.

    Attributes:
        median, low, high: the first snapshot at which half of the heads have the role, with a bootstrap interval over
            heads.
        place: the median as a number, from 0.
        first: fraction of the draws over heads in which no other role is earlier.
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
