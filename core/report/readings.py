"""Results of studies as records, selected, grouped and averaged for the report."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..interval import Estimate
from ..store.rows import Row
from ..studies.ablation.records import (
    AblatedTarget,
    MeanOverHeads,
    PruneStep,
    RankCorrelation,
    SeparatorLayer,
    SplitHalf,
)
from ..studies.attention.records import Score
from ..studies.frames.records import FrameHead, FrameSummary
from ..studies.patterns.records import ClassShare, MovedShare
from ..studies.records import Result, picked
from .estimates import mean_over

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Counted(Result):
    """A result row of any study, reduced to its sample size."""

    n: int


def over_heads(scores: Iterable[Score]) -> Estimate | None:
    """Average the scores of the heads whose score is known. Returns None if no score is known."""
    return mean_over(score.estimate for score in scores if score.value is not None)


def by_layer(scores: Sequence[Score]) -> list[Estimate | None]:
    """Average the scores of heads in each layer, from first to last. The result is empty if no score has a layer."""
    layers = [score.layer for score in scores if score.layer is not None]
    return [over_heads(picked(scores, layer=layer)) for layer in range(max(layers, default=-1) + 1)]


def separator_layers(rows: Sequence[Row]) -> list[SeparatorLayer]:
    """Convert the results of the study of separators to one record per layer."""
    return [layer for layer in SeparatorLayer.among(rows) if layer.layer is not None]


# ---------------------------------------------------------------- frames


@dataclass(frozen=True)
class Frames:
    """The results of the study of frame links: one summary, and one record per head."""

    summary: FrameSummary
    heads: list[FrameHead]


def frames(rows: Sequence[Row]) -> Frames:
    """Convert the result rows of the study of frame links to records."""
    return Frames(FrameSummary.of(rows[0]), FrameHead.among(rows))


# ---------------------------------------------------------------- class shares


def class_shares(rows: Iterable[Row]) -> list[ClassShare]:
    """Return the shares of attention patterns from result rows, without correction for classifier errors."""
    return picked(ClassShare.among(rows), part="share")


def moved_shares(rows: Iterable[Row]) -> list[MovedShare]:
    """Return how the share of each attention pattern changes between checkpoints, or [] if there is only one
    checkpoint."""
    return [moved for moved in MovedShare.among(rows) if moved.share is not None]


# ---------------------------------------------------------------- disabling


@dataclass(frozen=True)
class Sweep:
    """The results of a study that ablates every head or layer in turn.

    Attributes:
        variants: all targets, in order.
        held_out: the best target on half of the examples; None if its gain on the other half is unknown.
        mean: change over heads; None in earlier rows without an interval.
    """

    metric: str
    variants: list[AblatedTarget]
    held_out: SplitHalf | None
    mean: Estimate | None = None

    def change_of(self, variant: AblatedTarget) -> Estimate | None:
        measured = variant.metrics.of(self.metric)
        return measured.change if measured else None

    @property
    def known(self) -> list[tuple[AblatedTarget, Estimate]]:
        changes = [(variant, self.change_of(variant)) for variant in self.variants]
        return [(variant, change) for variant, change in changes if change is not None]


def sweep(rows: Sequence[Row]) -> Sweep:
    """Convert the result rows of an ablation study to records."""
    swept = AblatedTarget.among(rows)
    metric = swept[0].metrics.first.name
    mean = next((result.estimate for result in MeanOverHeads.among(rows) if result.metric == metric), None)
    half = next((half for half in SplitHalf.among(rows) if half.held_out is not None), None)
    return Sweep(metric, swept, half, mean)


# ---------------------------------------------------------------- pruning, importance, effective attention


def prune_curves(rows: Iterable[Row]) -> dict[str, list[PruneStep]]:
    """Group the steps of pruning curves by pruning order. Each group starts with the fewest removed heads."""
    steps = PruneStep.among(rows)
    orders = dict.fromkeys(step.order for step in steps)
    return {order: sorted(picked(steps, order=order), key=lambda step: step.removed) for order in orders}


def agreements(rows: Iterable[Row]) -> list[tuple[RankCorrelation, float]]:
    """Return Spearman's rank correlations between head importance and other scores. Undefined correlations are left
    out."""
    return [(result, result.spearman) for result in RankCorrelation.among(rows) if result.spearman is not None]
