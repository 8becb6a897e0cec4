"""Result records of ablation studies and of studies that patch or perturb inputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...interval import Estimate, or_nan
from ...scoring import effects
from ...scoring.effects import FEW_FLIPS, rows_for_flips
from ...scoring.registry import KOVALEVA, HeadScore
from ...store.findings import Number
from ...store.rows import Row
from ..headline import (
    SIGNIFICANT,
    Fact,
    Headline,
    HeadScores,
    defined,
    each,
    head_interval,
    number,
    percent,
    plural,
)
from ..outcomes import CHANGES, CHANGES_ALONE, METRICS, Metrics
from ..records import Figure, Result, column, stated

# ---------------------------------------------------------------- scores of heads


MICHEL = "Michel et al. 2019"
OPERATORS = ("disable", "zero", "previous", "current", "next", "first", "mean", "resample", "constant")


def effect_scores(*templates: tuple[str, str, str]) -> tuple[HeadScore, ...]:
    """Define one head score per method and template. In a template (name, label, formula), {} stands for the method."""
    return tuple(
        HeadScore(name.format(operator), label.format(operator), formula.format(operator), ("classifier", "labels"),
                  None, None, MICHEL if operator == "zero" else KOVALEVA, about="task")
        for operator in OPERATORS for name, label, formula in templates
    )  # fmt: skip


EFFECTS_ON_METRIC = effect_scores(
    ("{} heads", "effect on the metric: {}", "change of the metric if the head is ablated: {}"),
    (
        "{} all-but-one",
        "effect of its layer's other heads: {}",
        "change of the metric if the other heads of the layer are ablated: {}",
    ),
)


# ---------------------------------------------------------------- seeds and cross-fitting


SEED_WORDS = {
    "head": "initial weights of the classifier",
    "rows": "sample of rows",
    "order": "order of batches",
    "rest": "rest",
}


@dataclass(frozen=True, kw_only=True)
class SeededRun(Result):
    """One fine-tuning run in a Latin square of seeds, with its seeds, its score and its most important heads."""

    KINDS: ClassVar[tuple[str, ...]] = ("run",)
    task: str
    metric: str
    name: str
    head_seed: int
    rows_seed: int
    order_seed: int
    score: float | None
    constant: bool
    train_rows: int
    dev_rows: int
    baseline: float | None
    heads: str
    folder: str | None


@dataclass(frozen=True, kw_only=True)
class SeedSource(Result):
    """The fraction of variance in scores between fine-tuning runs that one source of randomness explains."""

    KINDS: ClassVar[tuple[str, ...]] = ("source",)
    FIGURE = Figure("share", "share of the spread|{task}|{metric}")
    name: str
    task: str | None = None
    metric: str
    n: int
    share: float | None
    by_chance: float
    deviation: float | None
    variance: float | None
    low: float | None
    high: float | None
    p: float | None


@dataclass(frozen=True, kw_only=True)
class SeedSpread(Result):
    """How much scores vary between fine-tuning runs, and the standard error due to the limited number of dev
    examples."""

    KINDS: ClassVar[tuple[str, ...]] = ("spread",)
    task: str
    metric: str
    n: int
    mean: float | None
    deviation: float | None
    least: float | None
    most: float | None
    dev_error: float | None
    dev_rows: int
    constant: int

    @property
    def ends(self) -> str:
        """Format the lowest and the highest score of fine-tuning runs as text."""
        if self.least is None or self.most is None:
            return "is undefined in at least one run"
        return f"ranges from {100 * self.least:.1f} to {100 * self.most:.1f}"


@dataclass(frozen=True, kw_only=True)
class HeadOverlap(Result):
    """The mean overlap of the most important heads between two runs, or between halves of the examples in one run."""

    KINDS: ClassVar[tuple[str, ...]] = ("overlap",)
    FIGURE = Figure("value", "overlap of the most important heads|{task}")
    name: str
    top: int
    value: float
    low: float | None
    high: float | None
    pairs: int
    by_chance: float
    task: str | None = None
    metric: str | None = None
    n: int | None = None


@dataclass(frozen=True, kw_only=True)
class StableHead(Result):
    """The number of fine-tuning runs, out of n, in which a head is among the most important heads."""

    KINDS: ClassVar[tuple[str, ...]] = ("head",)
    name: str
    layer: int
    head: int
    runs: int
    n: int
    top: int | None = None
    task: str | None = None
    metric: str | None = None


@dataclass(frozen=True, kw_only=True)
class CrossFittedPart(Result):
    """The score of a model on the cross-fitting fold that it was not trained on."""

    KINDS: ClassVar[tuple[str, ...]] = ("fold",)
    name: str
    task: str | None = None
    metric: str
    n: int
    score: float | None
    baseline: float | None
    train_rows: int
    constant: bool
    folder: str | None = None


# ---------------------------------------------------------------- ranking and pruning


@dataclass(frozen=True, kw_only=True)
class ImportantHead(Result):
    """The gradient-based importance of a head, with and without normalisation. Rank 1 is the most important head."""

    KINDS: ClassVar[tuple[str, ...]] = ("head",)
    FIGURE = Figure("gradient", "gradient of the loss|{task}")  # `value` may be normalised within each layer
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
    """The rank correlation between two measures of n targets, such as the importance and ablation effects of heads."""

    KINDS: ClassVar[tuple[str, ...]] = ("correlation",)
    name: str
    spearman: float | None
    kendall: float | None = stated()
    p: float | None
    n: int
    operator: str | None = None


@dataclass(frozen=True, kw_only=True)
class PruneStep(Result):
    """The metric after pruning `removed` heads. `low` and `high` are the bounds of the change, added to `baseline`."""

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


# ---------------------------------------------------------------- two runs compared


@dataclass(frozen=True)
class SharedEffect:
    """The change in the main metric when the same target is ablated, in each of two runs."""

    name: str
    this: float | None
    other: float | None


def shared_effects(rows: Sequence[Row], others: Sequence[Row]) -> tuple[list[SharedEffect], effects.Agreement]:
    """Match the ablation targets of two runs, and compute the rank correlation between their effects."""
    first, second = _shared_effects_changes(rows), _shared_effects_changes(others)
    pairs = [SharedEffect(name, first[name], second[name]) for name in first if name in second]
    columns = [np.array([getattr(pair, side) for pair in pairs], dtype=float) for side in ("this", "other")]
    return pairs, effects.rank_agreement(*columns)


def _shared_effects_changes(rows: Sequence[Row]) -> dict[str, float | None]:
    """Return the change of the first metric by name of the ablation target."""
    changes = [(variant.name, variant.metrics.first.change) for variant in AblatedTarget.among(rows)]
    return {name: None if change is None else change.value for name, change in changes}


@dataclass(frozen=True, kw_only=True)
class Unmodified(Result):
    """The scores of the unmodified model, and the numerical precision with which ablation effects were computed."""

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
    logits_move: float | None = None


@dataclass(frozen=True, kw_only=True)
class TargetResult(Result):
    """A result for a head, sublayer, layer or group of heads. Indices count from 0 and are None for a group."""

    name: str
    layer: int | None = stated()
    head: int | None = stated()
    heads: str = stated("")
    parts: str = ""
    role: str | None = None
    group: int | None = None
    distance: float | None = None


def too_few_flips(flipped: int | None, n: int) -> str:
    """Explain why a change in accuracy has no confidence interval, or return "" if enough predictions changed."""
    if flipped is None or flipped >= FEW_FLIPS:
        return ""
    least = "at least " if not flipped else "about "
    return (
        f"no CI, because {flipped or 'none'} of {n:,} predictions changed: a CI needs {FEW_FLIPS} changed predictions, "
        f"so {least}{rows_for_flips(flipped, n):,} examples"
    )


def _changes(record: Result, metrics: Metrics) -> list[Number]:
    changes = [(metric.name, metric.change) for metric in metrics.every if metric.change is not None]
    return [record.number(change.value, f"change of {name}", change.low, change.high) for name, change in changes]


@dataclass(frozen=True, kw_only=True)
class AblatedTarget(TargetResult):
    """The effect of ablating one target on the metrics, with a p-value corrected for the number of targets.

    `flipped` counts changed predictions and `mcnemar` is McNemar's p; both are None for scores. For a head, `value`,
    `low` and `high` are the change of the main metric. After cross-fitting, `folds_agree` of `folds` folds have its
    sign.
    """

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
        return super().numbers() if self.value is not None else _changes(self, self.metrics)


@dataclass(frozen=True, kw_only=True)
class SplitHalf(Result):
    """The mean gain of the best ablation target, on the examples used to select it and on held-out examples."""

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
        """Return the mean gain of the selected targets on held-out examples, with its interval. NaN if unknown."""
        return Estimate(or_nan(self.held_out), self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class MeanOverHeads(Result):
    """The mean change in a metric over all ablated heads, which is the expected effect of ablating a random head."""

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
        return None if self.value is None else Estimate(self.value, self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class OperatorEffect(Result):
    """The effect of ablating one head by one method. The method "constant" adds the mean losses with the head output
    set to its mean (`fit_mean`), to zero (`fit_zero`) and to the fitted constant (`fit_constant`)."""

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
    """The agreement (Kendall's tau) between the head rankings of two ablation methods on different examples."""

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
class SequentialTestSummary(Result):
    """The summary of a sequential test: how many targets have each verdict, and how many forward passes were needed."""

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
class SequentialTestVerdict(TargetResult):
    """The verdict of a sequential test on one ablation target, and the target's mean effect on the clipped loss."""

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
class InterimAnalysis(Result):
    """One interim analysis of a sequential test: how many targets were undecided before it, and how many it decided."""

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
    """How an intervention changes the predictions, with a p-value corrected for the number of interventions."""

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
        return _changes(self, self.metrics)


@dataclass(frozen=True, kw_only=True)
class EdgeCut(Changed):
    """The effect of removing one kind of attention edge in one layer, or in all layers if `layer` is None."""

    KINDS: ClassVar[tuple[str, ...]] = ("cut",)
    edges: str
    layer: int | None
    with_edges: int | None = None
    operator: str | None = None


@dataclass(frozen=True, kw_only=True)
class LinkContrast(Result):
    """The effect of cutting one kind of word link (attention between two words) minus that of another kind. Links are
    cut in all layers, with the same number of both kinds at each distance.

    Attributes:
        first, other: kinds of links, such as "noun-adjective".
        value: how much more cutting the first kind changes the logit difference, its margin or the score; mean over
            examples. None without examples.
        first_moves, other_moves: mean absolute effect of each kind.
        links: number of cut links of each kind.
        n: number of examples that have both kinds.
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
    """Attention to separators in one layer, or in all layers if `layer` is None, and the effect of removing this
    attention.

    `ratio` is the gradient of the loss with respect to attention to separators, divided by that to other tokens.
    `weight_on_separators` and `norm_on_separators` are fractions (None in earlier runs). `separators_of_pieces` is the
    fraction of tokens that are separators.
    """

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
class Patched(TargetResult):
    """The effect of patching one component: the fraction of the logit difference that it recovers, with a corrected
    p-value."""

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
    """The effect of one input perturbation on the predictions for the n examples to which it applies."""

    KINDS: ClassVar[tuple[str, ...]] = ("perturbation", "partial input")
    kind: str
    meaning: str
    of_rows: int = column("of")
    probability_change: float | None = None
    constant: float | None = None
    note: str | None = None

    def numbers(self) -> list[Number]:
        of_class = [self.number(self.probability_change, "change of probability", None, None)]
        return super().numbers() + (of_class if self.probability_change is not None else [])


# ---------------------------------------------------------------- sentences and tables


def ablation_headline(rows: Sequence[Row]) -> Headline:
    """Summarise an ablation in a headline: the largest change in the metric and the number of significant changes."""
    untouched, variants = Unmodified.among(rows)[0], AblatedTarget.among(rows)
    changes = [(variant, variant.metrics.first.change) for variant in variants]
    told = [(variant, change) for variant, change in changes if change]
    largest, change = max(told, key=lambda pair: abs(pair[1].value))
    metric = largest.metrics.first.name
    significant = sum(variant.p < SIGNIFICANT for variant in variants)
    if not any(variant.flipped != 0 for variant in variants):
        moved = untouched.logits_move
        logits = "" if moved is None else f", although logits change by up to {moved:.2g}"
        sentence = f"No ablation changes a prediction{logits}, so all {len(told)} changes of {metric} are 0."
    elif not change.value:
        sentence = f"No ablation changes {metric}: all {len(told)} changes are 0."
    elif not significant:
        sentence = (
            f"No ablation changes {metric} significantly. Ablating {largest.name} changes {metric} most, by "
            f"{100 * change.value:+.1f} points."
        )
    else:
        sentence = (
            f"Ablating {largest.name} changes {metric} most, by {100 * change.value:+.1f} points. "
            f"{plural(significant, len(variants), 'changes')} are significant after correction."
        )
    interval = interval_of(change, largest.flipped, untouched.n)
    if interval.startswith("95") and len(variants) > 1:
        interval = head_interval(largest.name, change.low, change.high, "{:+.1f}", 100).removesuffix(".")
        interval += f", not corrected for the {len(variants)} ablations."
    return Headline(sentence, untouched.n, "examples", interval, score_of(untouched))


def interval_of(change: Estimate, flipped: int | None, n: int) -> str:
    """Format the confidence interval of the change in a metric, or explain why there is none."""
    few = too_few_flips(flipped, n)
    return f"{few[:1].upper()}{few[1:]}." if few else percent(change.low, change.high)


def score_of(untouched: Unmodified) -> str:
    """State the score of the unmodified model in a sentence."""
    return f"The unmodified model scores {100 * defined(untouched.metrics.first.value):.1f}."


def cut_headline(rows: Sequence[Row], cuts: Sequence[tuple[str, Changed]]) -> Headline:
    """State in one sentence which kind of attention edge changes the metric most when it is removed."""
    untouched = Unmodified.among(rows)[0]
    told = [(name, change, cut) for name, cut in cuts if (change := cut.metrics.first.change)]
    name, most, cut = max(told, key=lambda one: abs(one[1].value))
    metric = untouched.metrics.first.name
    verdict = "" if cut.p is None else f", which is {'' if cut.p < SIGNIFICANT else 'not '}significant"
    flips = [cut.flipped != 0 for _, _, cut in told]
    return Headline(
        f"Removing {name} changes {metric} most, by {100 * most.value:+.1f} points{verdict}."
        if most.value
        else f"None of the {len(told)} ablations changes {metric if any(flips) else 'a prediction'}.",
        untouched.n,
        "examples",
        interval_of(most, cut.flipped, untouched.n),
        score_of(untouched),
    )


def effect_facts(scores: HeadScores) -> list[Fact]:
    """Describe in sentences how ablating one head changes each metric, and whether each change is significant."""
    told = []
    for row in each(scores.own[scores.own["score"].str.match(r"\S+ heads")]):
        operator, metric = row["score"].split()[0], row["score"].rpartition("/")[2].split()[-1]
        percent = row.copy()
        percent[["value", "low", "high"]] = row[["value", "low", "high"]].astype(float) * 100
        said = (
            f"Ablating this head ({operator}) changes {metric} by {number(percent, 1)} points, which is "
            f"{_significance(row)}."
        )
        told.append(Fact("effect", said, row["source"]))
    return told


def _significance(row: Any) -> str:
    q, low, high = row["q"], row["low"], row["high"]
    if q is not None and q == q:  # over all heads
        return "significant" if q < SIGNIFICANT else "not significant"
    is_open = low is None or low != low or low <= 0 <= high
    return "not significant" if is_open else "significant without correction"


def ablation_table(rows: Sequence[Row]) -> list[Row]:
    """Create a table of ablation results for the terminal: the unmodified model, then one row per ablation target."""
    variants = [_variant_row(variant) for variant in AblatedTarget.among(rows)]
    blank = dict.fromkeys(variants[0] if variants else ())
    untouched = [blank | {"name": model.name} | model.metrics.values() for model in Unmodified.among(rows)]
    return [*untouched, *variants]


def _variant_row(variant: AblatedTarget) -> Row:
    metric, nothing = variant.metrics.first, Estimate(float("nan"))
    shown: Row = {"name": variant.name, **variant.metrics.values()}
    shown |= {f"{metric.name}_change": metric.change and metric.change.value, "p corrected": variant.p}  # the claim
    alone = metric.change or nothing
    shown |= {"alone_low": alone.low, "alone_high": alone.high}  # no claim of one of many
    shown |= {"flipped": variant.flipped, "mcnemar": variant.mcnemar}
    if variant.what == "duplicates":
        beyond_apart = metric.beyond_apart or nothing
        shown |= {"heads": variant.heads or None, "distance": variant.distance}
        shown |= {
            f"{metric.name}_apart": metric.apart and metric.apart.value,
            f"{metric.name}_control": metric.control and metric.control.value,
            f"{metric.name}_beyond_apart": metric.beyond_apart and metric.beyond_apart.value,
            f"{metric.name}_beyond_apart_low": beyond_apart.low,
            f"{metric.name}_beyond_apart_high": beyond_apart.high,
        }
    return shown


def ablation_sentence(rows: Sequence[Row]) -> str:
    """Describe which effects of an ablation are significant, and the gain of the best target on held-out examples."""
    variants = AblatedTarget.among(rows)
    significant = ", ".join(variant.name for variant in variants if variant.p < SIGNIFICANT)
    effects = f"the effects of ablating {significant} are significant" if significant else "no effect is significant"
    sentence = f"After correction for {len(variants)} ablations, {effects} (p < {SIGNIFICANT})."
    for untouched in Unmodified.among(rows):
        if untouched.effect_within is not None:
            sentence += (
                f" {untouched.in_float32} of {len(variants)} effects, including every significant effect, were "
                "computed again in float32. The other effects differ from float32 by at most "
                f"{100 * untouched.effect_within:.2f} points."
            )
    for half in SplitHalf.among(rows):
        if half.chosen is None or half.held_out is None:
            continue
        sentence += (
            f" The best ablation on one half of the examples changes the score by {100 * half.chosen:+.1f} points on "
            f"this half and by {100 * half.held_out:+.1f} points on the other half. In {half.same:.0%} of the random "
            f"splits, the best ablation is that of {half.name}."
        )
    return sentence
