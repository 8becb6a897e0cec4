"""The rows of studies that take something away or change the input: disable, operators, race, knockout, separators,
patch, perturb."""

from dataclasses import dataclass, field
from typing import ClassVar

from ...scoring.effects import FEW_FLIPS, rows_for_flips
from ...store.findings import Number
from ..estimate import Estimate
from ..metric_columns import CHANGES, CHANGES_ALONE, METRICS, Metrics
from ..records import Figure, Result, column, stated


@dataclass(frozen=True, kw_only=True)
class Untouched(Result):
    """The model as it is. constant: the best constant prediction's score, of `perturb`; loss: of `operators`.

    Of sweeps that tried the worst heads again in float32: effect_within, the furthest that an effect moved, and
    in_float32, how many were tried.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("baseline",)
    name: str = stated("untouched")
    operator: str | None = None
    what: str | None = None
    task: str | None = None
    n: int
    metrics: Metrics = field(metadata=METRICS)
    loss: float | None = None
    constant: float | None = None
    effect_within: float | None = None
    in_float32: int | None = None


@dataclass(frozen=True, kw_only=True)
class Component(Result):
    """A head, block, layer or group. layer, head: zero-based, None of what is not one; heads: names of those of a
    group. role, group, distance: of near-duplicates, how far the heads are from each other."""

    name: str
    layer: int | None = stated()
    head: int | None = stated()
    heads: str = stated("")
    parts: str = ""
    role: str | None = None
    group: int | None = None
    distance: float | None = None


def too_few_flips(flipped: int | None, n: int) -> str:
    """Why no interval of a change of accuracy or F1 is shown; "" where one is. flipped: None of scores."""
    if flipped is None or flipped >= FEW_FLIPS:
        return ""
    least = "at least " if not flipped else "about "
    return (
        f"{flipped or 'none'} of {n:,} predictions changed, too few flips to say how far it reaches: an interval takes "
        f"{FEW_FLIPS}, {least}{rows_for_flips(flipped, n):,} rows"
    )


def _changes(record: Result, metrics: Metrics) -> list[Number]:
    changes = [(metric.name, metric.change) for metric in metrics.every if metric.change is not None]
    return [record.number(change.value, f"change of {name}", change.low, change.high) for name, change in changes]


@dataclass(frozen=True, kw_only=True)
class SweptVariant(Component):
    """What `disable` says of one variant. p: corrected over all; flipped: predictions that changed, mcnemar: its p,
    both None of scores; value, low, high: the change that ranks, where the variant is a head. Of a cross-fitted sweep
    folds, its parts, and folds_agree, those in which the change has the sign of the whole."""

    KINDS: ClassVar[tuple[str, ...]] = ("variant",)
    FIGURE = Figure("value", "{statistic}|{feature}|{task}")
    operator: str | None = None
    what: str | None = None
    task: str | None = None
    n: int
    metrics: Metrics = field(metadata=CHANGES)
    flipped: int | None = stated()
    mcnemar: float | None = stated()
    p: float
    float32: bool | None = None
    statistic: str | None = None
    feature: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    folds: int | None = None
    folds_agree: int | None = None

    def numbers(self) -> list[Number]:
        """A head's change by the metric that ranks; of anything else the changes of all metrics."""
        return super().numbers() if self.value is not None else _changes(self, self.metrics)


@dataclass(frozen=True, kw_only=True)
class SplitHalf(Result):
    """The variant that is best on one half of the rows: its gain there (chosen) and, with the interval, on the other
    half (held_out). same: how often both halves choose it."""

    KINDS: ClassVar[tuple[str, ...]] = ("split half",)
    name: str
    operator: str | None = None
    what: str | None = None
    task: str | None = None
    n: int
    chosen: float | None = stated()
    held_out: float | None
    low: float | None
    high: float | None
    same: float | None = stated()

    @property
    def gain(self) -> Estimate:
        """On the other half, with its interval; NaN where it is undefined."""
        return Estimate(float("nan") if self.held_out is None else self.held_out, self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class MeanOverHeads(Result):
    """The mean change over all of a sweep's heads: what disabling one drawn at random does. low, high: by a bootstrap
    of the n rows, which keeps what heads have in common; heads: how many."""

    KINDS: ClassVar[tuple[str, ...]] = ("mean over heads",)
    FIGURE = Figure("value", "mean change of {metric}|{task}")
    name: str = stated("mean over heads")
    operator: str | None = None
    what: str | None = None
    task: str | None = None
    metric: str = stated("accuracy")
    value: float | None
    low: float | None
    high: float | None
    heads: int
    n: int

    @property
    def estimate(self) -> Estimate | None:
        """The mean with its interval; None where it is undefined."""
        return None if self.value is None else Estimate(self.value, self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class OperatorEffect(Result):
    """A head under one operator: mean change of the loss over n rows, p corrected over all. fit_...: of `constant`,
    squared errors of the mean, of zero and of the optimal constant."""

    KINDS: ClassVar[tuple[str, ...]] = ("effect",)
    FIGURE = Figure("value", "{statistic}|{feature}|{task}")
    name: str
    layer: int
    head: int
    operator: str
    value: float
    low: float | None
    high: float | None
    p: float
    n: int
    task: str
    baseline: float = stated(0.0)
    statistic: str | None = None
    feature: str | None = None
    fit_mean: float | None = None
    fit_zero: float | None = None
    fit_constant: float | None = None


@dataclass(frozen=True, kw_only=True)
class OperatorAgreement(Result):
    """Whether two operators rank the heads alike: Kendall's tau with its interval, on the same rows, and of an operator
    with itself on other rows."""

    KINDS: ClassVar[tuple[str, ...]] = ("agreement",)
    name: str
    kendall: float | None
    low: float | None
    high: float | None
    same_rows: float | None
    itself: float | None
    n: int
    task: str
    heads: int


# ---------------------------------------------------------------- race


@dataclass(frozen=True, kw_only=True)
class RaceSummary(Result):
    """How a race went: its margin and alpha, the most that a row's loss counts (clip) and the rows below which no head
    can be found not to matter (both None of races of before), how many have which verdict, how many of the open ones
    take no more rows since a verdict is unlikely (None of races of before), what it took against a full sweep, and how
    far gradients alone would lead."""

    KINDS: ClassVar[tuple[str, ...]] = ("race",)
    name: str = stated("race")
    task: str
    what: str
    operator: str
    n: int
    loss: str
    margin: float
    clip: float | None = stated()
    fewest: int | None = stated()
    alpha: float
    matters: int
    does_not_matter: int = column("does not matter")
    open: int
    hopeless: int | None = stated()
    looks: str
    intervals: str
    over: bool
    evaluations: int
    evaluations_full: int
    passes: float
    passes_full: float
    forward_ratio: float | None
    gradient_spearman: float | None
    gradient_wrong_signs: int | None


@dataclass(frozen=True, kw_only=True)
class RaceVerdict(Component):
    """What a race says of one variant. rows: taken; effect: mean on the clipped loss over these rows, with the interval
    that holds for all heads and looks together; exact_first, gradient_first: on the rows of the first look."""

    KINDS: ClassVar[tuple[str, ...]] = ("verdict",)
    FIGURE = Figure("value", "{statistic}|{feature}|{task}")
    task: str
    what: str
    operator: str
    n: int
    margin: float
    verdict: str
    rows: int
    effect: float | None
    effect_low: float | None
    effect_high: float | None
    exact_first: float | None
    gradient_first: float | None
    metrics: Metrics = field(metadata=CHANGES_ALONE)
    statistic: str | None = None
    feature: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class RaceLook(Result):
    """One look of a race: variants open before it, those it settled, and how many of them matter."""

    KINDS: ClassVar[tuple[str, ...]] = ("look",)
    name: str
    rows: int
    open: int
    settled: int
    matters: int
    n: int
    task: str
    what: str
    operator: str


# ---------------------------------------------------------------- edges, patches, inputs


@dataclass(frozen=True, kw_only=True)
class Changed(Result):
    """Predictions under a change. changed_rate: share that changed, with Wilson's interval; p: corrected over all."""

    name: str
    task: str | None = None
    n: int
    metrics: Metrics = field(metadata=CHANGES)
    flipped: int | None = stated()
    changed_rate: float | None = None
    changed_low: float | None = None
    changed_high: float | None = None
    mcnemar: float | None = stated()
    p: float | None = stated()

    def numbers(self) -> list[Number]:
        """The changes of all metrics."""
        return _changes(self, self.metrics)


@dataclass(frozen=True, kw_only=True)
class EdgeCut(Changed):
    """Edges cut in one layer, or (layer None) in all. with_edges: rows that have such edges."""

    KINDS: ClassVar[tuple[str, ...]] = ("cut",)
    edges: str
    layer: int | None
    with_edges: int | None = None
    operator: str | None = None


@dataclass(frozen=True, kw_only=True)
class LinkContrast(Result):
    """Links between one sort of words cut in all layers beside as many between another at the same distances.

    Attributes:
        first, other: the sorts, "noun-adjective".
        value: how much more cutting the first moves the logits than cutting the other, mean over rows; of two labels
            the difference of their logits, of more the largest logit's lead, of a score the score. None without rows.
        low, high: its 95 % interval (Student's t over rows).
        first_moves, other_moves: mean size of what each does. links: cut, of each. n: rows that have both.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("link contrast",)
    FIGURE = Figure("value", "link contrast|{task}", "{first}, {other}")
    task: str
    first: str
    other: str
    value: float | None
    low: float | None
    high: float | None
    first_moves: float | None
    other_moves: float | None
    links: int
    n: int


@dataclass(frozen=True, kw_only=True)
class SeparatorLayer(Changed):
    """One layer of `separators`, or (layer None) all. ratio: the loss's gradient by attention to separators over that
    to other tokens; weight_on_separators, norm_on_separators: their share of each, None of norms in runs from before
    they were measured; separators_of_pieces: their share of the pieces. n: rows."""

    KINDS: ClassVar[tuple[str, ...]] = ("layer",)
    layer: int | None
    gradient_separator: float | None = stated()
    gradient_other: float | None = stated()
    ratio: float | None = stated()
    ratio_low: float | None = stated()
    ratio_high: float | None = stated()
    weight_on_separators: float | None = stated()
    weight_on_separators_low: float | None = stated()
    weight_on_separators_high: float | None = stated()
    norm_on_separators: float | None = stated()
    norm_on_separators_low: float | None = stated()
    norm_on_separators_high: float | None = stated()
    separators_of_pieces: float | None = stated()
    with_separators: int | None = stated()


@dataclass(frozen=True, kw_only=True)
class Patched(Component):
    """A component patched alone. recovered: the share of the first answer that it brings back, over n pairs; p:
    corrected; under_floor, not_made: pairs left out."""

    KINDS: ClassVar[tuple[str, ...]] = ("component",)
    FIGURE = Figure("recovered", "share recovered|{task}")
    recovered: float
    low: float | None
    high: float | None
    p: float | None
    n: int
    what: str | None = None
    made_by: str | None = None
    task: str | None = None
    under_floor: int | None = None
    not_made: int | None = None
    operator: str | None = None
    statistic: str | None = None
    feature: str | None = None
    value: float | None = None
    baseline: float | None = None


@dataclass(frozen=True, kw_only=True)
class Perturbation(Changed):
    """One kind of change to the input, on the n rows (of all) that it could change. A metric's `full` is of the whole
    inputs; probability_change: of the predicted class; constant: the best constant prediction's score."""

    KINDS: ClassVar[tuple[str, ...]] = ("perturbation", "partial input")
    kind: str
    meaning: str
    of_rows: int = column("of")
    probability_change: float | None = None
    constant: float | None = None
    note: str | None = None

    def numbers(self) -> list[Number]:
        """The changes of all metrics, and that of the predicted class's probability."""
        of_class = [self.number(self.probability_change, "change of probability", None, None)]
        return super().numbers() + (of_class if self.probability_change is not None else [])
