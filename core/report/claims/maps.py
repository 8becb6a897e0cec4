"""Tests of claims about attention maps: frames, features, token types."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...codebook.measures import NEARLY_UNIFORM
from ...interval import Estimate
from ...studies.ablation.records import SeparatorLayer
from ...studies.ablation.sinks import NOTHING, REMOVED, SinkScore
from ...studies.attention.records import RepeatedShare, Score
from ...studies.explanation.why import SortScore
from ...studies.frames.records import FrameHead
from ...studies.headline import SIGNIFICANT
from ...studies.records import picked
from .. import readings
from ..estimates import bonferroni_widened, mean_over
from ..evidence import Evidence, StepResult
from ..ids import Part
from ..measures.maps import LOOKED_AT, last_layer
from ..readings import by_layer, over_heads, separator_layers
from .disabling import MOST_HEADS
from .outcomes import (
    FAILS,
    HOLDS,
    KNOWN_ERROR,
    UNDECIDED,
    UNTESTED,
    Decision,
    Outcome,
    OutcomeWord,
    all_of,
    apart,
    decided,
    enough_heads,
    for_each,
    found_by,
    no_loss,
    points,
    said,
    times_until,
    untested,
)
from .seeds import apart_over_seeds, in_every_seed, mean_of_seeds, with_luck

# ---------------------------------------------------------------- [SEP] as a no-op


FROM = 4 / 12  # of the depth: layer 5 of 12
HARDLY = 0.5  # of how the loss moves with attention to other tokens: "hardly" is less than half of it
ANY_WEIGHT = 0.1  # fraction of all weight: below it, moving the separators' weight shows nothing
MOSTLY = 0.5  # of its weight on separators: a head that looks at them
ORIGIN_MARGIN = 0.1  # fraction of a score's variance by which feed-forward blocks must exceed words and positions


@for_each(Part.SEPARATORS)
def no_op(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether attention to separators hardly affects the loss from layer 5 of 12 upwards. The gradient of the loss
    with respect to this attention must be less than half of the gradient with respect to attention to other tokens.

    If these layers put less than a tenth of their weight on separators, the claim cannot be tested.
    """
    layers = separator_layers(result.rows)
    upper = [layer for layer in layers if layer.ratio is not None and (layer.layer or 0) / len(layers) >= FROM]
    mean = mean_over(_below(layer) for layer in upper)
    if mean is None:
        return None
    ratio = -mean + Estimate(HARDLY, HARDLY, HARDLY)
    weight = sum(layer.weight_on_separators or 0.0 for layer in upper) / len(upper)
    names = sorted((layer.layer or 0) + 1 for layer in upper)
    sentence = (
        f"In layers {names[0]} to {names[-1]}, the gradient of the loss by attention to separators is "
        f"{said(ratio, 2)} times that by attention to other tokens (the claim needs less than {HARDLY}). The weight "
        f"on separators in these layers is {weight:.2f}."
    )
    if weight < ANY_WEIGHT:
        return found_by(
            result, Decision(UNTESTED), f"{sentence} This weight is too small to test the claim.", upper[0].n
        )
    decision = decided(mean)
    norms = [layer.norm_on_separators for layer in upper if layer.norm_on_separators is not None]
    if norms:
        sentence += f" The share of separators in the norms is {sum(norms) / len(norms):.2f}."
    falls = _falls(layers)
    if decision.word == HOLDS and falls:
        sentence += f" The ratio falls from {falls[0]:.2f} in lower layers to {falls[1]:.2f} in these layers."
    return found_by(result, decision, sentence, upper[0].n, statistic=ratio, margin=HARDLY)


@for_each(Part.SINKS)
def no_effect(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether, for most heads with an attention sink at separators, removing the sink hardly changes the output.

    Only heads whose own removal changes the output are counted. Intervals hold jointly for all effects.
    """
    at_separators = [score for score in SinkScore.among(result.rows) if score.feature == "separators" and score.verdict]
    if not at_separators:
        return Outcome(UNTESTED, "No head has its sink at separators.", result.task)
    removed = picked([score for score in at_separators if score.verdict != NOTHING], statistic=REMOVED)
    if not removed:
        names = ", ".join(dict.fromkeys(score.name for score in at_separators))
        return Outcome(UNTESTED, f"Heads with a sink at separators have no measurable effect: {names}.", result.task)
    margin = removed[0].baseline or 0.0
    decisions = [decided(-score.estimate, -margin) for score in removed]
    words = [decision.word for decision in decisions]
    nops, others = words.count(HOLDS), words.count(FAILS)
    share = Estimate(
        sum((score.value or 0.0) < margin for score in removed) / len(removed),
        nops / len(removed),
        1 - others / len(removed),
    )
    sentence = (
        f"{len(removed)} heads with a measurable effect on the output have their sink at separators "
        f"({', '.join(score.name for score in removed)}). Without the sink, the output changes by less than the margin "
        f"of {margin:.3g} for {nops}, by more for {others}, and {len(removed) - nops - others} are undecided."
    )
    return found_by(result, replace(decided(share, MOSTLY), times=None), sentence, removed[0].n)


def _below(layer: SeparatorLayer) -> Estimate:
    """How far the ratio is below HARDLY."""
    low, high = (None if end is None else HARDLY - end for end in (layer.ratio_high, layer.ratio_low))
    return Estimate(HARDLY - (layer.ratio or 0.0), low, high)


def _falls(layers: list[SeparatorLayer]) -> tuple[float, float] | None:
    """Mean ratios below that depth and from it up, if the second is smaller."""
    parts: tuple[list[float], list[float]] = ([], [])
    for layer in layers:
        if layer.ratio is not None:
            parts[int((layer.layer or 0) / len(layers) >= FROM)].append(layer.ratio)
    if not all(parts):
        return None
    means = tuple(sum(part) / len(part) for part in parts)
    return (means[0], means[1]) if means[1] < means[0] else None


# ---------------------------------------------------------------- why heads attend to [SEP]


def made_by_blocks(evidence: Evidence) -> list[Outcome]:
    """Test whether feed-forward outputs, not embeddings, explain why heads attend mostly to separators. Feed-forward
    outputs must explain a larger share of the variance of attention scores, by more than 0.1 (Elhage et al. 2021)."""
    shares, statistics = evidence.one(Part.WHY), evidence.by_task(Part.STATISTICS)
    if shares is None or not statistics:
        return untested(evidence, Part.WHY if shares is None else Part.STATISTICS)
    outcomes = []
    for task, weights in statistics.items():
        looking = {
            (score.layer, score.head)
            for score in picked(weights.scores, task=task, statistic="separator")
            if score.layer is not None and score.head is not None and (score.value or 0.0) > MOSTLY
        }
        measured = [row for row in shares.rows if row.get("value") is not None and row["value"] == row["value"]]
        sorts = picked(SortScore.among(measured), task=task, statistic="score share")
        head_sorts = [score for score in sorts if (score.layer, score.head) in looking]
        if head_sorts:
            outcomes.append(_origin(shares, task, head_sorts))
    return outcomes or [Outcome(UNTESTED, "No head has most of its weight on separators.")]


def _origin(result: StepResult, task: str, scores: list[SortScore]) -> Outcome:
    """Whether feed-forward sublayers have more than words and positions; the interval is as wide as all three
    together."""
    means = {
        name: mean_over(Estimate(score.value, score.low, score.high) for score in scores if score.feature == name)
        for name in ("feed-forward", "position", "token")
    }
    blocks, places, words = (means[name] or Estimate(0.0, 0.0, 0.0) for name in means)
    difference = blocks - places - words
    sentence = (
        f"In {len({(score.layer, score.head) for score in scores})} heads with more than half of their weight on "
        f"separators, the shares of the attention scores are {said(blocks, 2)} for feed-forward sublayers, "
        f"{said(places, 2)} for positions and {said(words, 2)} for words."
    )
    return found_by(result, decided(difference, ORIGIN_MARGIN), sentence, scores[0].n, task)


NO_FRAMES = (
    "The test needs labelled examples with annotated frames, and scores for increasing weights on the frame links. "
    "Examples from GLUE have no frames, and examples from FrameNet have no labels."
)


def repeated_patterns(evidence: Evidence) -> list[Outcome]:
    """Test whether more than half of the heads are closer to another head on the same inputs than to themselves on
    other inputs. Each difference must be significant after correction over heads.

    Their fraction must also be above that of random weights, so that the claim cannot hold if all heads of random
    weights are closer. The nearest head is chosen on other inputs than those on which it is measured.
    """
    by_task = evidence.by_task(Part.REDUNDANCY)
    outcomes = [outcome for task, result in by_task.items() if (outcome := _repeated(result, task))]
    return outcomes or untested(evidence, Part.REDUNDANCY)


def _repeated(result: StepResult, task: str) -> Outcome | None:
    rows = [row for row in picked(RepeatedShare.among(result.rows), task=task) if row.share is not None]
    measured, drawn = ([row for row in rows if (row.draw is None) == is_measured] for is_measured in (True, False))
    if not measured or not drawn:
        return None
    share = Estimate(measured[0].share or 0.0, measured[0].low, measured[0].high)
    random = Estimate(
        float(np.mean([row.share or 0.0 for row in drawn])),
        min(row.low or 0.0 for row in drawn),
        max(row.high or 0.0 for row in drawn),
    )
    sentence = (
        f"The share of heads that are closer to another head than to themselves is {said(share, 2)}, compared with "
        f"{said(random, 2)} in {len(drawn)} draws of random weights."
    )
    if random.low == 1.0:
        return Outcome(
            UNTESTED, f"{sentence} No share can be above that of random weights.", task, measured[0].n, result.run
        )
    return found_by(
        result, all_of([decided(share, MOST_HEADS), apart([share], [random])]), sentence, measured[0].n, task
    )


def frames_help(evidence: Evidence) -> list[Outcome]:
    """Report that the effect of attention to frame links on task scores cannot be tested. GLUE has no annotated frames,
    and FrameNet has no task labels."""
    return [Outcome(UNTESTED, f"{NO_FRAMES} Checkpoint: {evidence.checkpoint}.")]


ON_THE_PLACE_ALONE = "Heads were tested against the null models of positions, not of query words. Rerun this step."
HIGH = 0.4  # weight on a link that is high
ALMOST_ALL = 0.9  # as a fraction of the heads
COUNTED = (441, 481)  # links of the paper's sentences whose element stands first, and all
SPECIAL = ("start", "separator")
NO_SPECIAL_TOKENS = "A decoder has no [CLS] and no [SEP]."

# ---------------------------------------------------------------- frames


@for_each(Part.FRAMES)
def percentile(evidence: Evidence, result: StepResult) -> Outcome:
    """Count the heads at or above the 99th percentile of all heads. The published claim is a known error, because this
    count depends only on the number of heads."""
    summary = readings.frames(result.rows).summary
    total = summary.layers * summary.heads
    always = total - int(np.ceil(0.99 * (total - 1)))
    survivors = ", ".join(summary.survivors) or "none"
    sentence = (
        f"{summary.above_99} of {total} heads are at or above the 99th percentile. Any {total} different numbers have "
        f"{always} at or above it, so this tests nothing. Heads above {summary.nulls} permutation nulls: {survivors}."
    )
    return found_by(result, Decision(KNOWN_ERROR), sentence, summary.n)


@for_each(Part.FRAMES)
def survivors(evidence: Evidence, result: StepResult) -> Outcome:
    """Test whether at least one head attends along frame links more than each of four null models predicts. P values
    are corrected over heads (Benjamini and Hochberg).

    Two null models vary the position, and two vary which word attends. The claim fails if the weight of every head is
    below its highest positional null plus a tenth of all weight.
    """
    frames = readings.frames(result.rows)
    best = max(frames.heads, key=lambda head: head.estimate.value)
    names, beat_places = frames.summary.survivors, frames.summary.beat_places
    if beat_places is None:
        return Outcome(UNTESTED, ON_THE_PLACE_ALONE)
    sentence = f"{len(names)} heads exceed all four nulls ({', '.join(names[:6]) or 'none'}), and {len(beat_places)} "
    sentence += f"exceed the two nulls of positions. The head with the largest weight is {best.name}: "
    sentence += f"{said(best.estimate)}, compared with {best.baseline:.3f} at the same distance elsewhere."
    return found_by(result, _beyond_nulls(frames.heads, names), sentence, frames.summary.n)


def _beyond_nulls(heads: Sequence[FrameHead], names: Sequence[str]) -> Decision:
    """HOLDS if a head survives, FAILS if each exceeds its highest null by significantly less than is visible."""
    beyond = {head.name: _beyond(head) for head in heads if head.value is not None}
    if not beyond:
        return Decision(UNDECIDED)
    surviving = [beyond[name] for name in names if name in beyond]
    if surviving:
        return Decision(HOLDS, None, max(surviving, key=lambda excess: excess.value), 0.0)
    most = max(beyond.values(), key=lambda excess: excess.value)
    none = all(decided(excess, NEARLY_UNIFORM).word == FAILS for excess in beyond.values())
    times = None if none else times_until(bonferroni_widened(most, len(beyond)), 0.0)
    return Decision(FAILS if none else UNDECIDED, times, most, NEARLY_UNIFORM if none else 0.0)


def _beyond(head: FrameHead) -> Estimate:
    """A head's weight on frame links minus the higher of its two nulls of the place, which are weights.

    The nulls of which word looks are in multiples of uniform attention, so the head's `excess` is not used here.
    """
    null = max((null for null in (head.baseline, head.exchanged) if null is not None), default=0.0)
    return head.estimate + Estimate(-null, -null, -null)


def only_the_sink(evidence: Evidence) -> list[Outcome]:
    """Test whether 90 % of the GPT-2 heads have a weight above 0.4 on frame links. Attention to the first token is
    excluded."""
    with_first, without_first = evidence.one(Part.SINK), evidence.one(Part.SINKLESS)
    if with_first is None or without_first is None:
        return untested(evidence, Part.SINK)
    frames = readings.frames(without_first.rows)
    means = over_heads(readings.frames(with_first.rows).heads), over_heads(frames.heads)
    weights = [head.estimate for head in frames.heads]
    high = sum(decided(weight, HIGH).word == HOLDS for weight in weights)
    sentence = (
        f"The mean weight over heads is {said(means[0])}. Without the first position, it is {said(means[1])}, and "
        f"{high} of {len(weights)} heads are significantly above {HIGH}."
    )
    return [found_by(without_first, enough_heads(weights, HIGH, ALMOST_ALL), sentence, frames.summary.n)]


def harmless_frame_heads(evidence: Evidence) -> list[Outcome]:
    """Test whether ablating one of the two heads with the largest weight on frame links lowers the score by at most one
    point. Both heads are tested even if their weight is not larger than the null models predict."""
    result = evidence.one(Part.FRAMES)
    if result is None:
        return untested(evidence, Part.FRAMES)
    frames = readings.frames(result.rows)
    best = [head.name for head in sorted(frames.heads, key=lambda head: -head.estimate.value)[:2]]
    surviving = [name for name in best if name in frames.summary.survivors]
    carry = f"Among {' and '.join(best)}, {' and '.join(surviving) or 'no head'} exceeds the nulls of frame relations."

    @for_each(Part.HEADS, loses=True)
    def test(evidence: Evidence, result: StepResult) -> Outcome:
        sweep = readings.sweep(result.rows)
        best_changes = [(variant, change) for variant, change in sweep.known if variant.name in best]
        sentence = " and ".join(f"{points(change)} without {variant.name}" for variant, change in best_changes)
        decision = no_loss([change for _, change in best_changes])
        return found_by(
            result, decision, f"{sweep.metric.capitalize()} changes by {sentence}. {carry}", sweep.variants[0].n
        )

    return test(evidence)


@for_each(Part.FRAMES)
def element_first(evidence: Evidence, result: StepResult) -> Outcome:
    """Check the paper's count that 441 of 481 frame elements precede their target. The count involves no model, and can
    be checked only on the sentences of the paper."""
    summary = readings.frames(result.rows).summary
    share = summary.links_before / summary.links
    sentence = f"{summary.links_before} of {summary.links} frame elements ({share:.0%}) precede their target."
    before, links = COUNTED
    if summary.links != links:
        return Outcome(UNTESTED, f"These sentences do not have the {links} links of the paper. {sentence}", result.task)
    return found_by(result, Decision(HOLDS if summary.links_before == before else FAILS), sentence, summary.links)


# ---------------------------------------------------------------- features and tokens


def layer_means(result: StepResult, feature: str, checkpoint: str) -> list[Estimate]:
    """Compute the mean attention weight on a feature for each layer, averaged over the heads of the layer."""
    scores = picked(result.scores, statistic="max", feature=feature, checkpoint=checkpoint)
    return [layer for layer in by_layer(scores) if layer is not None]


def over(estimates: Sequence[Estimate]) -> Estimate:
    """Average several estimates with their confidence intervals, or return NaN if there are none."""
    return mean_over(estimates) or Estimate(float("nan"))


@for_each(Part.FEATURES, not_causal=NO_SPECIAL_TOKENS)
def early_and_late(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether the first half of the layers attends more to [CLS] than the second half does, and less to [SEP]."""
    starts, separators = (layer_means(result, name, evidence.checkpoint) for name in ("start", "separator"))
    if len(starts) < 2 or len(separators) < 2:
        return None
    half = len(starts) // 2
    pairs = [(over(starts[:half]), over(starts[-half:])), (over(separators[-half:]), over(separators[:half]))]
    decision = all_of([apart([more], [less]) for more, less in pairs])
    (early, late), (sep_late, sep_early) = pairs
    sentence = (
        f"The weight on [CLS] is {said(early, 2)} in early and {said(late, 2)} in late layers. The weight on [SEP] is "
        f"{said(sep_early, 2)} in early and {said(sep_late, 2)} in late layers."
    )
    return found_by(result, decision, sentence, result.n)


def feature_means(result: StepResult, checkpoint: str, features: Sequence[str] = LOOKED_AT) -> dict[str, Estimate]:
    """Compute the mean attention weight of all heads on each feature. Features that no input contains are left out."""
    means = {
        feature: over_heads(picked(result.scores, statistic="max", feature=feature, checkpoint=checkpoint))
        for feature in features
    }
    return {feature: mean for feature, mean in means.items() if mean is not None}


@for_each(Part.FEATURES)
def not_linguistic(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether more heads have a vertical stripe at [CLS] or [SEP] than at words with any linguistic feature.

    A stripe is a tenth of all weight more than on other tokens nearby. Heads whose interval, corrected over heads and
    features, includes this value are undecided.
    """
    scores = [
        score
        for score in picked(result.scores, statistic="max", checkpoint=evidence.checkpoint)
        if score.effect is not None and score.feature in LOOKED_AT and score.feature != "punctuation"
    ]
    special = [score for score in scores if score.feature in SPECIAL]
    words = [score for score in scores if score.feature not in SPECIAL]
    if not special or not words:
        return None
    (least, most, value), (least_words, most_words, value_words) = stripe_fractions(special), stripe_fractions(words)
    if not most and not most_words:
        return Outcome(
            UNTESTED, f"No head has a stripe: {NEARLY_UNIFORM} of all weight more than on tokens nearby.", result.task
        )
    difference = Estimate(value - value_words, least - most_words, most - least_words)
    sentence = f"{least:.0%} to {most:.0%} of heads have a stripe at [CLS] or [SEP], and {least_words:.0%} to "
    sentence += f"{most_words:.0%} at a linguistic feature (a stripe: {NEARLY_UNIFORM} of all weight more than nearby)."
    return found_by(result, decided(difference), sentence, result.n)


def stripe_fractions(scores: Sequence[Score]) -> tuple[float, float, float]:
    """Return the lower bound, upper bound and estimate of the fraction of heads with a vertical stripe. The lower bound
    counts heads with a significant stripe. The upper bound also counts undecided heads."""
    decisions: dict[str, list[Decision]] = {}
    for score in scores:
        decision = decided(bonferroni_widened(score.effect_estimate, len(scores)), NEARLY_UNIFORM)
        decisions.setdefault(score.name, []).append(decision)
    surely = sum(
        any(at_feature.word == HOLDS for at_feature in head_decisions) for head_decisions in decisions.values()
    )
    maybe = sum(any(at_feature.word != FAILS for at_feature in head_decisions) for head_decisions in decisions.values())
    above = sum(
        any(
            at_feature.statistic is not None and at_feature.statistic.value > NEARLY_UNIFORM
            for at_feature in head_decisions
        )
        for head_decisions in decisions.values()
    )
    return surely / len(decisions), maybe / len(decisions), above / len(decisions)


def single_separator(evidence: Evidence) -> list[Outcome]:
    """Test whether attention to [SEP] is highest on SST-2 among all tasks."""
    results = {result.task: result for result in evidence.of(Part.FEATURES)}
    means = {task: feature_means(result, evidence.checkpoint, ("separator",)) for task, result in results.items()}
    weights = {task: mean["separator"] for task, mean in means.items() if mean}
    if "sst2" not in weights:
        return [Outcome(UNTESTED, evidence.missing(Part.FEATURES, "sst2"))]
    if len(weights) < 2:
        return [Outcome(UNTESTED, "At least two tasks are needed.")]
    other_weights = [weight for task, weight in weights.items() if task != "sst2"]
    sentence = f"Mean weight on [SEP]: {', '.join(f'{task} {said(weight, 2)}' for task, weight in weights.items())}."
    result = results["sst2"]
    decision = apart([weights["sst2"]], other_weights)
    about = (result.run, decision.times, decision.statistic, decision.margin)
    return [Outcome(decision.word, sentence, None, result.n, *about)]


@for_each(Part.FEATURES, not_causal=NO_SPECIAL_TOKENS)
def separator_or_punctuation(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether [CLS] in the last layer attends more to [SEP] than to any other feature. For STS-B, RTE and QNLI,
    the claim names punctuation instead of [SEP]. Weights are averaged over heads and fine-tuning seeds."""
    seeds = [_classifying(seed_result, evidence.checkpoint) for seed_result in evidence.each_seed(result)]
    seed_weights = {
        name: [of_seed[name] for of_seed in seeds] for name in seeds[0] if all(name in of_seed for of_seed in seeds)
    }
    claimed = "punctuation" if result.task in ("stsb", "rte", "qnli") else "separator"
    if not {"separator", "punctuation"} <= set(seed_weights):
        return None
    means = {name: with_luck(*mean_of_seeds(several)) for name, several in seed_weights.items()}
    rivals = [name for name in seed_weights if name != claimed]
    rival = max(rivals, key=lambda name: means[name].value)
    sentence = (
        f"The weight is {said(means['separator'], 2)} on [SEP] and {said(means['punctuation'], 2)} on punctuation. "
        f"The claim names {'punctuation' if claimed == 'punctuation' else '[SEP]'}. The largest weight on another "
        f"feature is {said(means[rival], 2)} ({rival})."
    )
    decision = apart_over_seeds([seed_weights[claimed]], [seed_weights[name] for name in rivals])
    return found_by(result, decision, sentence, result.n, seeds=len(seeds) if result.step.options.compare else None)


def _classifying(result: StepResult, checkpoint: str) -> dict[str, Estimate]:
    """Return the mean attention weight over heads from [CLS] in the last layer to each feature."""
    means = {name: over_heads(last_layer(result.scores, name, checkpoint)) for name in LOOKED_AT}
    return {name: mean for name, mean in means.items() if mean is not None}


def diagonal_heads(evidence: Evidence) -> list[Outcome]:
    """Test whether the best noun-pronoun head puts most of its weight on the previous or the next token.

    Noun-pronoun heads exceed their weight at the same distance elsewhere, corrected over heads, and have more than any
    noun (or other kind of word) gets. The claim is undecided if there is no such head, or if the best one is not above
    every head of the other kind, corrected over heads. Train examples are used if links were measured there.
    """
    relations = evidence.by_task(Part.RELATIONS) | evidence.by_task(Part.TRAIN_RELATIONS)
    statistics = evidence.by_task(Part.STATISTICS)
    if not relations or not statistics:
        return untested(evidence, Part.STATISTICS if relations else Part.RELATIONS)
    outcomes = [_diagonal(result, statistics[task], task) for task, result in relations.items() if task in statistics]
    return [outcome for outcome in outcomes if outcome] or [Outcome(UNTESTED, "No example has a pronoun after a noun.")]


def _diagonal(relations: StepResult, statistics: StepResult, task: str) -> Outcome | None:
    scores = [score for score in picked(relations.scores, task=task, feature="noun-pronoun") if score.n]
    kinds = {score.name: score.kind for score in picked(statistics.scores, task=task, statistic="place")}
    if not scores or not kinds:
        return None
    beyond = [
        score for score in scores if _beyond_its_distance(score, len(scores)).word == HOLDS and _beyond_kinds(score)
    ]
    best = max(beyond or scores, key=lambda score: score.estimate.value)
    kind = kinds.get(best.name, "other")
    diagonal = [name for name, of_head in kinds.items() if of_head in ("previous", "next")]
    start = "On train examples, the" if relations.step.part == Part.TRAIN_RELATIONS else "The"
    sentence = (
        f"{start} best head is {best.name} ({best.statistic}): {said(best.estimate)}, compared with "
        f"{best.baseline:.3f} at the same distance elsewhere. Its kind is {kind}. Diagonal heads: "
        f"{', '.join(diagonal) or 'none'}."
    )
    rivals = [score for score in scores if (score.name in diagonal) != (best.name in diagonal)]
    rival = max(rivals, key=lambda score: score.estimate.value, default=None)
    return found_by(relations, _best_of_its_sort(best, rival, diagonal, len(scores)), sentence, int(best.n or 0), task)


def _beyond_its_distance(score: Score, heads: int) -> Decision:
    """Decide whether a head has more weight on links than at the same distance elsewhere, corrected over heads."""
    return decided(bonferroni_widened(score.estimate, heads), score.baseline or 0.0)


def _beyond_kinds(score: Score) -> bool:
    """Whether q (of excess and contrast; None: too few links) shows that kinds of words do not explain a head's
    weight."""
    return score.q is not None and score.q < SIGNIFICANT


def _best_of_its_sort(best: Score, rival: Score | None, diagonal: Sequence[str], heads: int) -> Decision:
    """HOLDS if the best head is diagonal, FAILS if not; UNDECIDED if its corrected interval includes its baseline or
    overlaps that of the best head of the other kind, or if kinds of words may explain it."""
    apart_from = [_beyond_its_distance(best, heads)]
    if rival is not None:
        apart_from.append(
            apart([bonferroni_widened(best.estimate, heads)], [bonferroni_widened(rival.estimate, heads)])
        )
    clear = all_of(apart_from)
    if clear.word != HOLDS or not _beyond_kinds(best):
        return replace(clear, word=UNDECIDED)
    return replace(clear, word=HOLDS if best.name in diagonal else FAILS)


MOST = 0.5  # as a fraction of the heads


SAID_OF_LATE = ("separator", "punctuation")  # features that stripes of the last layers are said to be at


@for_each(Part.FEATURES, "sst2", not_causal=NO_SPECIAL_TOKENS)
def late_stripes(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether, for more than half of the late heads with a stripe, the largest stripe is at [SEP] or punctuation.

    Late heads are in the last third of the layers of the fine-tuned checkpoint. A stripe is a tenth of all weight more
    at some feature than on other tokens nearby. The largest one must be above [CLS] and every other feature, corrected
    over heads and features. With several seeds, this must hold in every seed.
    """
    seeds = [_late_stripes(seed_result, evidence.checkpoint) for seed_result in evidence.each_seed(result)]
    counted = [share for share in seeds if share is not None]
    if not counted:
        return Outcome(
            UNTESTED,
            f"No head in the last third of the layers has a significant stripe (from {NEARLY_UNIFORM}).",
            result.task,
        )
    decision = in_every_seed([decided(share, MOST) for share, _ in counted])
    sentence = " ".join(dict.fromkeys(words for _, words in counted))
    return found_by(result, decision, sentence, result.n, seeds=len(counted))


def _late_stripes(result: StepResult, untuned: str) -> tuple[Estimate, str] | None:
    """Return the fraction of the late heads with a stripe whose largest one is at [SEP] or punctuation, and the counts
    as text. None if no late head of the fine-tuned checkpoint has a stripe."""
    scores = [
        score
        for score in picked(result.scores, statistic="max")
        if score.checkpoint not in (untuned, "difference")
        and score.effect is not None
        and score.layer is not None
        and score.feature in LOOKED_AT
    ]
    depth = max((score.layer or 0 for score in scores), default=0) + 1
    by_head: dict[str, dict[str, Estimate]] = {}
    for score in scores:
        if (score.layer or 0) >= depth - max(1, depth // 3):
            by_head.setdefault(score.name, {})[score.feature or ""] = score.effect_estimate
    late = {name: effects for name, effects in by_head.items() if {*SAID_OF_LATE} & effects.keys()}
    several = sum(map(len, late.values()))
    words = [word for effects in late.values() if (word := _stripe_word(effects, several))]
    if not words:
        return None
    named, others = (sum(word[1] == side for word in words) for side in (True, False))
    sure, never = (sum(word[0] == side for word in words) for side in (HOLDS, FAILS))
    share = Estimate(named / len(words), sure / len(words), 1 - never / len(words))
    sentence = (
        f"{named} of {len(words)} heads with a stripe in the last third of the layers have the largest stripe at "
        f"[SEP] or punctuation ({sure} significantly), and {others} elsewhere ({never} significantly)."
    )
    return share, sentence


def _stripe_word(effects: Mapping[str, Estimate], several: int) -> tuple[OutcomeWord, bool] | None:
    """Decide whether a head's largest effect is at a named feature, by its interval and by point estimates.

    Return None if no effect is significantly a stripe.
    """
    wide = {feature: bonferroni_widened(effect, several) for feature, effect in effects.items()}
    if not any(decided(effect, NEARLY_UNIFORM).word == HOLDS for effect in wide.values()):
        return None
    named = max((effect for name, effect in wide.items() if name in SAID_OF_LATE), key=lambda effect: effect.value)
    rivals = [effect for name, effect in wide.items() if name not in SAID_OF_LATE]
    is_named = all(named.value > rival.value for rival in rivals)
    return (apart([named], rivals).word if rivals else HOLDS), is_named
