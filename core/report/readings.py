"""What the studies left, as the report asks for it: rows as records, picked, grouped and averaged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..store.rows import Row
from ..studies.ablation.records import (
    MeanOverHeads,
    PruneStep,
    RankCorrelation,
    SeparatorLayer,
    SplitHalf,
    SweptVariant,
)
from ..studies.attention.records import Score
from ..studies.estimate import Estimate
from ..studies.frames.records import FrameHead, FrameSummary
from ..studies.patterns.records import ClassShare, MovedShare
from ..studies.records import Result, picked
from .estimates import mean_over

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Counted(Result):
    """A row of any study that says of how many."""

    n: int


def over_heads(scores: Iterable[Score]) -> Estimate | None:
    """`mean_over` of the scores that have a value."""
    return mean_over(score.estimate for score in scores if score.value is not None)


def by_layer(scores: Sequence[Score]) -> list[Estimate | None]:
    """`over_heads` of each layer, first to last; [] where no row has a layer."""
    layers = [score.layer for score in scores if score.layer is not None]
    return [over_heads(picked(scores, layer=layer)) for layer in range(max(layers, default=-1) + 1)]


def separator_layers(rows: Sequence[Row]) -> list[SeparatorLayer]:
    """The layers of `separators`, without the row of all together."""
    return [layer for layer in SeparatorLayer.among(rows) if layer.layer is not None]


# ---------------------------------------------------------------- frames


@dataclass(frozen=True)
class Frames:
    """What `frame-heads` says: the summary, and every head."""

    summary: FrameSummary
    heads: list[FrameHead]


def frames(rows: Sequence[Row]) -> Frames:
    """The rows of `frame-heads`."""
    return Frames(FrameSummary.of(rows[0]), FrameHead.among(rows))


# ---------------------------------------------------------------- class shares


def class_shares(rows: Iterable[Row]) -> list[ClassShare]:
    """The shares that `pattern-shares` counted, uncorrected."""
    return picked(ClassShare.among(rows), part="share")


def moved_shares(rows: Iterable[Row]) -> list[MovedShare]:
    """The changes that `pattern-shares` counted; none of a single checkpoint."""
    return [moved for moved in MovedShare.among(rows) if moved.share is not None]


# ---------------------------------------------------------------- disabling


@dataclass(frozen=True)
class Sweep:
    """What `disable` says.

    Attributes:
        variants: all, in order.
        held_out: the one that is best on half of the rows; None where its gain on the others is not known.
        mean: change over heads; None in rows of before it had an interval.
    """

    metric: str
    variants: list[SweptVariant]
    held_out: SplitHalf | None
    mean: Estimate | None = None

    def change_of(self, variant: SweptVariant) -> Estimate | None:
        """The change of the sweep's metric; None where it is undefined."""
        measured = variant.metrics.of(self.metric)
        return measured.change if measured else None

    @property
    def known(self) -> list[tuple[SweptVariant, Estimate]]:
        """Variants whose change is defined, each with it."""
        changes = [(variant, self.change_of(variant)) for variant in self.variants]
        return [(variant, change) for variant, change in changes if change is not None]


def sweep(rows: Sequence[Row]) -> Sweep:
    """The rows of `disable`."""
    swept = SweptVariant.among(rows)
    metric = swept[0].metrics.first.name
    mean = next((result.estimate for result in MeanOverHeads.among(rows) if result.metric == metric), None)
    half = next((half for half in SplitHalf.among(rows) if half.held_out is not None), None)
    return Sweep(metric, swept, half, mean)


# ---------------------------------------------------------------- pruning, importance, effective attention


def prune_curves(rows: Iterable[Row]) -> dict[str, list[PruneStep]]:
    """The curves of `prune` by order, each from the fewest heads removed to the most."""
    steps = PruneStep.among(rows)
    orders = dict.fromkeys(step.order for step in steps)
    return {order: sorted(picked(steps, order=order), key=lambda step: step.removed) for order in orders}


def agreements(rows: Iterable[Row]) -> list[tuple[RankCorrelation, float]]:
    """The correlations of `importance` that are defined, each with its Spearman's rho."""
    return [(result, result.spearman) for result in RankCorrelation.among(rows) if result.spearman is not None]
