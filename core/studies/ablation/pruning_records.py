"""The rows of studies that rank heads or weights and remove them: importance, prune, subnetworks."""

from dataclasses import dataclass
from typing import ClassVar

from ..records import Figure, Result, stated


@dataclass(frozen=True, kw_only=True)
class ImportantHead(Result):
    """A head's importance, normalised as asked, and the bare gradient. rank: 1 is the most important."""

    KINDS: ClassVar[tuple[str, ...]] = ("head",)
    FIGURE = Figure("value", "importance|{task}")
    name: str
    layer: int
    head: int
    rank: int
    value: float
    gradient: float
    task: str
    n: int
    statistic: str | None = None
    feature: str | None = None


@dataclass(frozen=True, kw_only=True)
class RankCorrelation(Result):
    """Rank correlations over n heads: of importance with another score, or of the changes of two sweeps."""

    KINDS: ClassVar[tuple[str, ...]] = ("correlation",)
    name: str
    spearman: float | None
    kendall: float | None = stated()
    p: float | None
    n: int
    operator: str | None = None


@dataclass(frozen=True, kw_only=True)
class PruneStep(Result):
    """One point of a curve: `removed` heads, a share of all, are gone. low, high: of the score, not of its change."""

    KINDS: ClassVar[tuple[str, ...]] = ("step",)
    FIGURE = Figure("score", "{metric}, heads removed by {order}", "{share:.0%} of heads")
    order: str
    task: str | None = None
    metric: str
    n: int
    baseline: float
    removed: int
    share: float
    heads: str = stated("")
    score: float | None
    change: float | None
    low: float | None
    high: float | None
