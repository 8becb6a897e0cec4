"""Tests of claims about what heads attend to, what fine-tuning changes, and what layers contribute.

Some are about GPT-2, some come from summaries of the paper. Counts of heads include the heads that are undecided.
"""

from collections.abc import Sequence
from dataclasses import replace

from ...codebook.measures import NEARLY_UNIFORM
from ...scoring.definitions import STATISTICS, kind_of
from ...studies.attention.records import Score
from ...studies.records import picked
from .. import readings
from ..estimates import bonferroni_widened, share_interval
from ..evidence import Evidence, StepResult
from ..ids import Part
from .changes import gains_by_seed, said_of_seeds, some_heads_gain
from .maps import NO_SPECIAL_TOKENS, layer_means, over
from .outcomes import (
    FAILS,
    HOLDS,
    KNOWN_ERROR,
    UNDECIDED,
    UNTESTED,
    Decision,
    Outcome,
    all_of,
    apart,
    decided,
    enough_heads,
    for_each,
    found_by,
    no_loss,
    percent,
    points,
    said,
    untested,
)
from .scores import beats
from .seeds import decided_over_seeds

NO_LAST = "The features were measured without the last token of the first sentence. Rerun this step."


@for_each(Part.FEATURES)
def first_and_last(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether heads attend more to the first token, and to the last token of the first sentence, than to tokens
    nearby. Fine-tuning must reduce this attention. Weights are averaged over heads."""
    decisions, sentences = [], []
    for feature in ("first", "last"):
        scores = picked(result.scores, statistic="max", feature=feature, checkpoint=evidence.checkpoint)
        beyond = [score.effect_estimate for score in scores if score.effect is not None]
        gains = gains_by_seed(evidence, result, feature)
        if not beyond or not gains:
            return Outcome(UNTESTED, NO_LAST, result.task) if feature == "last" else None
        decisions += [decided(over(beyond)), decided_over_seeds([-seed for seed in gains], PARTS)]
        sentences.append(
            f"The weight on the {feature} token is higher than on tokens nearby by {said(over(beyond), 2)}, and "
            f"fine-tuning changes it by {said_of_seeds(gains)}."
        )
    return found_by(result, all_of(decisions), " ".join(sentences), result.n, seeds=len(gains))


FIFTH = 4 / 12  # of the depth: layer 5 of 12, from 0


def sixteen_layers(evidence: Evidence) -> list[Outcome]:
    """Mark the claim of 16 layers as a known error. BERT-base has 144 heads (12 in each of 12 layers); with 16 layers,
    it would have 192."""
    if evidence.one(Part.HEADS) is None:
        return untested(evidence, Part.HEADS)
    return [
        Outcome(KNOWN_ERROR, "The 144 heads of BERT-base are 12 in each of 12 layers. 16 layers would have 192 heads.")
    ]


@for_each(Part.LAYERS, "rte", swept=True)
def fifth_layer_helps(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether ablating layer 5 of 12 raises the score on RTE, but ablating layer 1 does not. Other models use the
    layer at the same relative depth. Gains are corrected over layers. The claim fails if ablating layer 5 lowers the
    score, or if only ablating layer 1 raises it."""
    layer_changes = [(variant.layer or 0, change) for variant, change in readings.sweep(result.rows).known]
    if len(layer_changes) < 3:
        return None
    depth = max(layer for layer, _ in layer_changes) + 1
    fifth = min(layer_changes, key=lambda pair: abs(pair[0] - FIFTH * depth))
    first, best = min(layer_changes), max(layer_changes, key=lambda pair: pair[1].value)
    gain, first_decision = (decided(bonferroni_widened(change, len(layer_changes))) for _, change in (fifth, first))
    word = HOLDS if (gain.word, first_decision.word) in ((HOLDS, FAILS), (HOLDS, UNDECIDED)) else UNDECIDED
    lost = decided(fifth[1])
    if lost.word == FAILS:
        gain = lost
    word = FAILS if gain.word == FAILS or (first_decision.word == HOLDS and gain.word != HOLDS) else word
    sentence = (
        f"Ablating layer {fifth[0] + 1} of {depth} changes the score by {points(fifth[1])}, and ablating layer 1 by "
        f"{points(first[1])}. The largest gain is that without layer {best[0] + 1}: {points(best[1])}."
    )
    times = gain.times if word == UNDECIDED else None
    return found_by(result, Decision(word, times, gain.statistic, 0.0), sentence, result.n)


A_LITTLE = 0.002  # "up to -0.2 %": the largest drop that the paper saw on QNLI and MNLI
BUNDLED = " The examples were made for this project and only have the form of this task."
ROLES = ("previous", "next", "separator", "first")
PARTS = 4  # a claim on two features: each before and after fine-tuning

# ---------------------------------------------------------------- what heads attend to


def special_tokens(evidence: Evidence) -> list[Outcome]:
    """Test whether at least a third of the heads put more than half of their weight on [CLS] and [SEP] together."""
    results = evidence.by_task(Part.STATISTICS)
    if evidence.causal or not results:
        why = NO_SPECIAL_TOKENS if evidence.causal else evidence.missing(Part.STATISTICS)
        return [Outcome(UNTESTED, why)]
    outcomes = []
    for task, result in results.items():
        scores = [score for score in result.scores if score.value is not None]
        first, separator = (
            {score.name: score.estimate for score in picked(scores, task=task, statistic=name)}
            for name in ("first", "separator")
        )
        weights = [weight + separator[name] for name, weight in first.items() if name in separator]
        if weights:
            words = [decided(weight, 0.5).word for weight in weights]
            sentence = f"{words.count(HOLDS)} of {len(words)} heads put more than half of their weight on [CLS] and "
            sentence += f"[SEP], and {words.count(UNDECIDED)} are undecided."
            outcomes.append(found_by(result, enough_heads(weights, 0.5, 1 / 3), sentence, result.n, task))
    return outcomes or [Outcome(UNTESTED, "No task has a separator.")]


@for_each(Part.FEATURES)
def no_stripes_at_borders(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether no decoder head has a vertical stripe at punctuation.

    A stripe is a tenth of all weight more than on other tokens nearby. The mean is over all queries, not over those
    that see the token, because the last full stop is seen only by itself. A map whose largest weight is below a tenth
    looks blank.
    """
    scores = picked(result.scores, statistic="max", feature="punctuation", checkpoint=evidence.checkpoint)
    effects = [(score, score.effect_estimate) for score in scores if score.effect is not None]
    if not effects:
        return None
    level = NEARLY_UNIFORM
    most, effect = max(effects, key=lambda pair: pair[1].value)
    striped = [
        score for score, change in effects if decided(bonferroni_widened(change, len(effects)), level).word == HOLDS
    ]
    blank = all_of([decided(-change, -level) for _, change in effects])
    sentence = (
        f"{len(striped)} of {len(effects)} heads have a stripe, corrected over heads. The largest difference between "
        f"full stops or commas and other tokens nearby is that of {most.name}: {said(effect, 2)}. A stripe is visible "
        f"from {level}."
    )
    striped_decision = Decision(FAILS, None, bonferroni_widened(effect, len(effects)), level)
    decision = (
        striped_decision if striped else blank if blank.word != FAILS else replace(striped_decision, word=UNDECIDED)
    )
    return found_by(result, decision, sentence, most.n)


def keeps_its_role(evidence: Evidence) -> list[Outcome]:
    """Test whether the role of a head on one task is also its role over all tasks in fewer than half of the cases.

    Roles by Clark et al.'s rules: more than half of the weight on the previous or next token, more than 0.6 on
    separators or the first position. The interval is Wilson's over heads. Roles of a head on several tasks are
    dependent, so they count once.
    """
    results = evidence.of(Part.STATISTICS)
    if not results:
        return untested(evidence, Part.STATISTICS)
    tasks = list(dict.fromkeys(task for result in results for task in result.tasks()))
    if len(tasks) < 2:
        return [Outcome(UNTESTED, "At least two tasks are needed.")]
    scores = [
        score for result in results for score in result.scores if score.layer is not None and score.value is not None
    ]
    overall_role = {
        name: kind_of(_pooled(picked(scores, name=name))) for name in dict.fromkeys(score.name for score in scores)
    }
    pairs = [
        (overall_role[score.name], score.kind) for score in picked(scores, statistic="place") if score.kind in ROLES
    ]
    if not pairs:
        return [Outcome(UNTESTED, "No head has a role on any task.")]
    heads = len({score.name for score in picked(scores, statistic="place") if score.kind in ROLES})
    kept_share = share_interval(sum(role == of_task for role, of_task in pairs) / len(pairs), heads)
    sentence = (
        f"{percent(kept_share)} of {len(pairs)} roles of {heads} heads on single tasks are also the role of the head "
        f"over all {len(tasks)} tasks. The interval counts each head once."
    )
    word = decided(-kept_share, -0.5).word  # more heads there are not, and more rows narrow it otherwise
    return [Outcome(word, sentence, None, heads, results[0].run, statistic=kept_share, margin=0.5)]


def _pooled(scores: Sequence[Score]) -> dict[str, float | None]:
    """Return the mean of each statistic of one head over the examples of all tasks."""
    pooled: dict[str, float | None] = {}
    for statistic in STATISTICS:
        statistic_scores = picked(scores, statistic=statistic)
        n = sum(score.n or 0 for score in statistic_scores)
        pooled[statistic] = sum((score.value or 0.0) * (score.n or 0) for score in statistic_scores) / n if n else None
    return pooled


# ---------------------------------------------------------------- what fine-tuning changes


@for_each(Part.FEATURES)
def rise_and_fall(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether attention to nouns and verbs is higher in the second half of layers, and lower after fine-tuning."""
    decisions, sentences = [], []
    for feature in ("noun", "verb"):
        layers = layer_means(result, feature, evidence.checkpoint)
        seeds = gains_by_seed(evidence, result, feature)
        if len(layers) < 2 or not seeds:
            return None
        half = len(layers) // 2
        early, late = over(layers[:half]), over(layers[-half:])
        lost = decided_over_seeds([-seed for seed in seeds], PARTS)
        decisions += [apart([late], [early]), lost]
        sentences.append(
            f"The weight on {feature}s is {said(early, 2)} in early and {said(late, 2)} in late layers, and "
            f"fine-tuning changes it by {said_of_seeds(seeds)}."
        )
    return found_by(result, all_of(decisions), " ".join(sentences), result.n, seeds=len(seeds))


@for_each(Part.FEATURES, "qnli")
def more_to_negation(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether fine-tuning on QNLI increases the attention of any head to negation, with correction for multiple
    heads."""
    return _of_own_rows(evidence, some_heads_gain(evidence, result, ("negation",)))


def _of_own_rows(evidence: Evidence, outcome: Outcome | None) -> Outcome | None:
    """Return the outcome, with a note added if the examples are the bundled samples."""
    if outcome is None or not evidence.bundled:
        return outcome
    return replace(outcome, said=outcome.said + BUNDLED)


@for_each(Part.TUNING, starts=("pretrained", "untrained"))
def tuning_beats_untuned(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether a fine-tuned checkpoint scores higher than the pre-trained one with an untrained output layer."""
    return beats(result, "untrained", "with an untrained head")


# ---------------------------------------------------------------- effects of whole layers


@for_each(Part.LAYERS, "qnli", "mnli", loses=True)
def no_layer_costs_more(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether ablating any whole layer lowers the score on QNLI and MNLI by at most 0.2 points."""
    sweep = readings.sweep(result.rows)
    if not sweep.known:
        return None
    worst, change = min(sweep.known, key=lambda pair: pair[1].value)
    lost = [layer for layer, drop in sweep.known if drop.high is not None and drop.high < 0 and layer.p <= 0.05]
    sentence = f"Ablation lowers {sweep.metric} significantly for {len(lost)} of {len(sweep.known)} layers. The lowest "
    sentence += f"change is that without {worst.name}: {points(change)} (p {worst.p:.2g}, corrected)."
    decision = no_loss([drop for _, drop in sweep.known], A_LITTLE)
    return _of_own_rows(evidence, found_by(result, decision, sentence, worst.n))
