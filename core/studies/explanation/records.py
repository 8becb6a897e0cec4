"""Result records of studies that explain attention scores."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from ..records import Figure, Result, stated


@dataclass(frozen=True, kw_only=True)
class ScoreShare(Result):
    """The share of a head's attention scores due to one contribution, such as positions or an earlier head.

    Attributes:
        level: "pair" of groups; "query" or "key" (a group on this side, summed over the other side: "any"); "query
            head" or "key head" (a single earlier head); "sort" (mean of both sides, named in query_part).
        weighting: of keys: "even", or "attention" (by their weight).
        share: of the variance of the scores over keys; may be negative. A level without single heads sums to 1.
        null: the same share with random weights, mean over the heads of the layer.
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
    """The rank correlation over removed contributions between predicted and measured changes of a head's maps.

    Attributes:
        layer, head: None in the row with the median over heads.
        scale: of the LayerNorm before the head: "held" or "recomputed"; "held to recomputed" compares both.
        agreement: Spearman's correlation.
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
    """The share of a head's attention scores that comes from one kind of contribution, stored as a head score.

    Attributes:
        statistic: "score share" of a kind of contribution, or "composition" with the earlier head of the largest share.
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
    """The change of the attention maps in a layer when a contribution to queries or keys is removed.

    Attributes:
        names: groups of contributions to queries, then to keys.
        foretold: predicted by leaving out terms. *Shape:* (part, head), like the next two.
        held: contribution replaced by its mean over inputs and positions, with a fixed LayerNorm scale.
        recomputed: likewise with a recomputed scale; NaN without a LayerNorm.
    """

    layer: int
    names: tuple[str, ...]
    foretold: Float[np.ndarray, "part head"]
    held: Float[np.ndarray, "part head"]
    recomputed: Float[np.ndarray, "part head"]
    n: int
