"""Result records of studies that fit probes, prune weights or predict trees."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...interval import Estimate
from ..records import Figure, Result, Valued, column

# ---------------------------------------------------------------- the rows of subnetworks


@dataclass(frozen=True, kw_only=True)
class Subnetwork(Valued):
    """The score of a checkpoint after weights or components were pruned.

    Attributes:
        kind: "curve", a point of magnitude pruning; "subnetwork" (full, good, bad, random); "difference" between two
            subnetworks; "baseline", the constant prediction.
        share: fraction of pruned weights or components.
        change, change_low, change_high: compared with the unpruned model.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("curve", "subnetwork", "difference", "baseline")
    FIGURE = Figure("value", "{kind}|{metric}")
    kind: str
    metric: str | None = None
    seeds: int | None = None
    scope: str | None = None
    moment: str | None = None
    share: float | None = None
    change: float | None = None
    change_low: float | None = None
    change_high: float | None = None
    constant: float | None = None

    @property
    def change_estimate(self) -> Estimate:
        """Return the change in score relative to the unpruned model. If it is unknown, return 0 without an interval."""
        return Estimate(float(self.change or 0.0), self.change_low, self.change_high)


@dataclass(frozen=True, kw_only=True)
class SubnetworkComponent(Result):
    """The fraction of n seeds in which a head or sublayer survives pruning, and its mean rank in the pruning order."""

    KINDS: ClassVar[tuple[str, ...]] = ("component",)
    FIGURE = Figure("value", "share of seeds that it survives")
    name: str
    value: float
    n: int
    place: float
    of_components: int = column("of")


@dataclass(frozen=True, kw_only=True)
class SurvivorClass(Valued):
    """The share of a pattern class among maps of heads that survive pruning, compared with maps of pruned heads."""

    KINDS: ClassVar[tuple[str, ...]] = ("survivor class",)
    FIGURE = Figure("value", "share among survivors beyond the others")
    share: float


@dataclass(frozen=True, kw_only=True)
class ProbedLayer(Valued):
    """The accuracy of a probe on one layer, compared with a control task and with random weights. `n` counts words."""

    KINDS: ClassVar[tuple[str, ...]] = ("probe",)
    FIGURE = Figure("value", "{probe} probe of {property}")
    property: str
    probe: str
    layer: int
    control: float | None = None
    selectivity: float | None = None
    selectivity_low: float | None = None
    selectivity_high: float | None = None
    random_weights: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    word_alone: float | None = None
    majority: float | None = None
    classes: int | None = None
    linear_rule: float | None = None


@dataclass(frozen=True, kw_only=True)
class MixingWeight(Result):
    """The weight of one layer in a probe on a weighted sum of layers, or the centre of gravity of these weights."""

    KINDS: ClassVar[tuple[str, ...]] = ("mixing", "centre")
    FIGURE = Figure("value", "{kind} of {property}")
    kind: str
    property: str
    name: str
    value: float
    uniform: float
    layer: int | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None


# ---------------------------------------------------------------- syntax


@dataclass(frozen=True, kw_only=True)
class ParsedScore(Valued):
    """The unlabelled attachment score (UAS) of a probe or baseline over n words."""

    KINDS: ClassVar[tuple[str, ...]] = ("probe", "baseline")
    FIGURE = Figure("value", "UAS|{kind}")
    kind: str
    undirected: float | None = None
    undirected_low: float | None = None
    undirected_high: float | None = None
    whole_trees: float | None = None
    train: int | None = None
    dev: int | None = None
    test: int | None = None


@dataclass(frozen=True, kw_only=True)
class HeadTree(Valued):
    """The undirected unlabelled attachment score (UAS) of a single head, on the test and dev splits."""

    KINDS: ClassVar[tuple[str, ...]] = ("head",)
    FIGURE = Figure("value", "undirected UAS")
    layer: int
    head: int
    dev: float
    whole_trees: float
    statistic: str | None = None


@dataclass(frozen=True, kw_only=True)
class BestHeadTree(Valued):
    """The unlabelled attachment scores (UAS) on test for the head with the highest score on dev."""

    KINDS: ClassVar[tuple[str, ...]] = ("best head",)
    FIGURE = Figure("value", "undirected UAS of the best head")
    whole_trees: float
    rooted: float | None = None
    rooted_low: float | None = None
    rooted_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class TreeDifference(Valued):
    """The undirected UAS of trees from all heads minus that of trees from the best head, paired by sentence."""

    KINDS: ClassVar[tuple[str, ...]] = ("difference",)
    FIGURE = Figure("value", "difference in undirected UAS")


@dataclass(frozen=True, kw_only=True)
class LeftOutSentences(Result):
    """The number of sentences that were left out of a split, the reason, and some of these sentences."""

    KINDS: ClassVar[tuple[str, ...]] = ("left out",)
    name: str
    n: int
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class DrawnTree(Result):
    """A sentence with its gold tree and its predicted tree, each as a list in the order of the words."""

    KINDS: ClassVar[tuple[str, ...]] = ("tree",)
    name: str
    n: int
    words: Sequence[str]
    relations: Sequence[str]
    gold: Sequence[int]
    drawn: Sequence[int]
    probability: Sequence[float]
