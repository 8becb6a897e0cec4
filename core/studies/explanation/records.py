"""The rows of the studies that explain where heads look."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from ..records import Figure, Result, stated


@dataclass(frozen=True, kw_only=True)
class ScoreShare(Result):
    """Which share of a head's scores a part has.

    Attributes:
        level: "pair" of groups, "query" or "key" (a group on this side, the other summed: "any"), "query head" or "key
            head" (a single earlier head), "sort" (mean of both sides; query_part names it).
        weighting: "even", every visible key counts the same, or "attention", as much as its weight.
        share: of the variance of the scores over keys; all of a level but single heads add up to 1; may be negative.
        low, high: its 95 % interval over n inputs; None where there is none.
        null: the same share in random weights, the mean over the layer's heads.
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
    """Whether taking contributions away changes a head's maps in the order that its terms foretell.

    Attributes:
        layer, head: of one head; None in the row of all, which is the median over heads.
        scale: "held", or "recomputed": the LayerNorm's before the head; "held to recomputed": not what terms foretell
            but what removal does with the scale held is compared with the scale recomputed.
        agreement: Spearman's correlation over contributions on either side, -1 to 1.
        low, high: 95 % interval of the median over heads (exact, by order statistics); None for one head.
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
    """A score share as a head score of the atlas.

    Attributes:
        statistic: "score share" of a sort of contributions, or "composition" with the earlier head that it reads most.
        feature: "position", "token", "earlier heads" or "feed-forward"; of "composition" the earlier head and the side
            that reads it: "L2H5 in the key".
        value, low, high: its score share, even, with its 95 % interval over n inputs.
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
    """Mean distance of maps (0 to 1) when a contribution is taken from one side of a layer's heads.

    Attributes:
        layer: zero-based.
        names: the groups, each on the side of the query, then of the key.
        foretold: from the scores less its terms. *Shape:* (part, head), likewise below.
        held: replaced by its mean over inputs and positions, LayerNorm's scale held.
        recomputed: likewise, the scale of the LayerNorm before the head computed again; NaN where there is none.
    """

    layer: int
    names: tuple[str, ...]
    foretold: Float[np.ndarray, "part head"]
    held: Float[np.ndarray, "part head"]
    recomputed: Float[np.ndarray, "part head"]
    n: int
