"""The rows of the studies that explain where heads look."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from ..records import Figure, Result, stated


@dataclass(frozen=True, kw_only=True)
class ScoreShare(Result):
    """The share of a head's attention scores that is due to one part, such as positions or an earlier head.

    Attributes:
        level: "pair" of groups, "query" or "key" (a group on this side, the other summed: "any"), "query head" or "key
            head" (a single earlier head), "sort" (mean of both sides; query_part names it).
        weighting: "even" (every visible key counts the same) or "attention" (by its weight).
        share: of the variance of the scores over keys; a level without single heads sums to 1; may be negative.
        null: the same share with random weights, mean over the layer's heads.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("score share",)
    kind: str = stated("score share")
    checkpoint: str
    task: str
    layer: int
    head: int
    level: str
    query_part: str
    key_part: str
    weighting: str
    share: float
    low: float | None = stated()
    high: float | None = stated()
    n: int
    null: float | None = stated()


@dataclass(frozen=True, kw_only=True)
class RemovalAgreement(Result):
    """How well the terms of the decomposition predict, by rank, which contributions change a head's maps most when
    removed.

    Attributes:
        layer, head: None in the row with the median over heads.
        scale: of the LayerNorm before the head, "held" or "recomputed"; "held to recomputed" compares both.
        agreement: Spearman's correlation over contributions.
        low, high: exact interval of the median; None for one head.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("removal", "removal, median")
    kind: str
    checkpoint: str
    task: str
    layer: int | None = stated()
    head: int | None = stated()
    scale: str
    agreement: float
    low: float | None = stated()
    high: float | None = stated()
    parts: int
    heads: int | None = stated()
    n: int


@dataclass(frozen=True, kw_only=True)
class SortScore(Result):
    """The share of one kind of contribution in a head's attention scores, stored as a score of the head.

    Attributes:
        statistic: "score share" of a kind of contribution, or "composition" with the earlier head that it reads most.
        feature: "position", "token", "earlier heads" or "feed-forward"; for "composition" such as "L2H5 in the key".
    """

    KINDS: ClassVar[tuple[str, ...]] = ("head score",)
    FIGURE = Figure("value", "{statistic}|{feature}|{task}")
    kind: str = stated("head score")
    statistic: str = stated("score share")
    checkpoint: str
    task: str
    layer: int
    head: int
    feature: str
    value: float
    low: float | None = stated()
    high: float | None = stated()
    n: int
    baseline: float | None = stated()


@dataclass(frozen=True)
class Removal:
    """How far the maps of a layer's heads move (mean distance, 0 to 1) if a contribution to queries or keys is removed.

    Attributes:
        names: groups on the side of the query, then of the key.
        foretold: from the scores minus its terms. *Shape:* (part, head), as the next two.
        held: replaced by its mean over inputs and positions, with the LayerNorm's scale unchanged.
        recomputed: likewise with the scale computed again; NaN without a LayerNorm.
    """

    layer: int
    names: tuple[str, ...]
    foretold: Float[np.ndarray, "part head"]
    held: Float[np.ndarray, "part head"]
    recomputed: Float[np.ndarray, "part head"]
    n: int
