"""Sentences of the sources' summaries, of a later blog and of the replication, as tests of rows that a report has."""

from collections.abc import Mapping

import numpy as np

from ...codebook.measures import NEARLY_UNIFORM
from ...studies.comparison.records import MatchSummary
from ...studies.estimate import Estimate
from ...studies.records import picked
from ...studies.tuning.records import finetuned_task
from ...tasks.glue import TASKS
from .. import readings
from ..estimates import as_share, bonferroni_widened, share_interval
from ..evidence import Evidence, StepResult
from ..ids import Part
from ..measures.maps import LOOKED_AT
from ..published_values import PAPER, printed
from .heads_and_layers import percent
from .maps import NO_SPECIAL_TOKENS
from .outcomes import (
    FAILS,
    HOLDS,
    KNOWN_ERROR,
    UNDECIDED,
    UNTESTED,
    Decision,
    Outcome,
    OutcomeWord,
    apart,
    decided,
    for_each,
    found_by,
    on_rows,
    points,
    said,
    untested,
)
from .seeds import compared, decided_with, luck_of, over_seeds, with_luck

MOST = 0.5  # of the heads
FIFTH = 4 / 12  # of the depth: layer 5 of 12, from 0
PRINTED_GAIN = 35.9
SAID_OF_LATE = ("separator", "punctuation")  # features that stripes of the last layers are said to be at

# ---------------------------------------------------------------- scores


@for_each(Part.TUNING, starts=("random", "untrained"))
def tuned_random_below_untuned(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Random weights, fine-tuned, score below pre-trained weights that were never fine-tuned (with an untrained head),
    rows and seeds in the interval of the difference."""
    tuning = finetuned_task(result.rows)
    untuned, random = tuning.mean("untrained"), tuning.mean("random")
    metric, n = tuning.metric, tuning.rows
    if untuned is None or random is None or None in (untuned.of_metric(metric), random.of_metric(metric)):
        return None
    upper, lower = over_seeds(untuned, metric, n), over_seeds(random, metric, n)
    decision = compared(tuning, "untrained", "random")
    seeds = min(untuned.n or 1, random.n or 1)
    sentence = (
        f"{on_rows(result)}{metric} {said(upper)} without fine-tuning, {said(lower)} from random weights, fine-tuned"
    )
    return found_by(result, decision or Decision(UNTESTED), sentence, n, seeds=seeds)


@for_each(Part.MATCH)
def fine_tuning_keeps_heads(evidence: Evidence, result: StepResult) -> Outcome | None:
    """More than half of the heads are found again at their own place in the fine-tuned checkpoint: matched one to one
    with the head of the same layer and number, beyond random weights and in both halves of the inputs. The interval has
    the heads (Wilson) and, of several seeds, the seeds (Student's t), whose squares add."""
    seeds = MatchSummary.among(result.rows)
    if not seeds:
        return None
    shares = [seed.same_place / seed.heads for seed in seeds]
    heads, luck = share_interval(float(np.mean(shares)), seeds[0].heads), luck_of(shares)
    kept_share, decision = as_share(with_luck(heads, luck)), decided_with(heads, luck, MOST, more_rows=False)
    sentence = (
        f"{percent(kept_share)} of {seeds[0].heads} heads at their own place, "
        f"{100 * np.mean([seed.matched / seed.heads for seed in seeds]):.0f} % at any, mean of {len(seeds)} seeds"
    )
    return found_by(result, decision, sentence, seeds[0].n, statistic=kept_share, seeds=len(seeds))


def mean_gain(evidence: Evidence) -> list[Outcome]:
    """The printed mean gain of fine-tuning over seven tasks, 35.9 points, computed again from the printed cells: it
    adds up, but it mixes accuracy with correlation and is against a head that was never trained."""
    result = evidence.one(Part.TUNING)
    if result is None:
        return untested(evidence, Part.TUNING)
    gains = []
    for task in TASKS:
        cells = {cell.initialisation: cell for cell in printed(task) if cell.source == PAPER} if task in GAINED else {}
        if cells:
            metric = "pearson" if task == "stsb" else "accuracy"
            gains.append(cells["pretrained"].values[metric] - cells["untrained"].values[metric])
    mean = 100 * sum(gains) / len(gains)
    sentence = (
        f"{mean:.2f} points over {len(gains)} tasks, printed {PRINTED_GAIN}: accuracy on six, correlation on STS-B"
    )
    return [Outcome(KNOWN_ERROR, sentence, None, len(gains), result.run)]


def sixteen_layers(evidence: Evidence) -> list[Outcome]:
    """Arithmetic: the paper's 144 heads are 12 in each of 12 layers; 12 in each of 16 would be 192."""
    if evidence.one(Part.HEADS) is None:
        return untested(evidence, Part.HEADS)
    return [Outcome(KNOWN_ERROR, "the 144 heads of BERT-base are 12 in each of 12 layers; 16 layers would have 192")]


GAINED = ("mrpc", "stsb", "sst2", "qqp", "rte", "qnli", "mnli")


@for_each(Part.LAYERS, "rte", swept=True)
def fifth_layer_helps(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Disabling layer 5 (here: at that depth), not the first, raises the score on RTE most: it does, corrected over
    layers, and the first does not. It fails where that layer, which nothing but the sentence chose, lies below 0."""
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
    sentence = f"layer {fifth[0] + 1} of {depth} {points(fifth[1])}, layer 1 {points(first[1])}, the best, layer "
    sentence += f"{best[0] + 1}, {points(best[1])}"
    times = gain.times if word == UNDECIDED else None
    return found_by(result, Decision(word, times, gain.statistic, 0.0), sentence, result.n)


# ---------------------------------------------------------------- attention


@for_each(Part.FEATURES, not_causal=NO_SPECIAL_TOKENS)
def late_stripes(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Of the heads in the last third of the layers that have a stripe, a tenth of all weight more at some feature than
    on other tokens nearby, more than half have the largest one at [SEP] or punctuation, above [CLS] and every other
    feature, corrected over heads and features. The first and the last [SEP] of two sentences are not told apart."""
    scores = [
        score
        for score in picked(result.scores, statistic="max", checkpoint=evidence.checkpoint)
        if score.effect is not None and score.layer is not None and score.feature in LOOKED_AT
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
        return Outcome(UNTESTED, f"no head of the last third surely has a stripe ({NEARLY_UNIFORM} more)", result.task)
    named, others = (sum(word[1] == side for word in words) for side in (True, False))
    sure, never = (sum(word[0] == side for word in words) for side in (HOLDS, FAILS))
    share = Estimate(named / len(words), sure / len(words), 1 - never / len(words))
    sentence = f"of {len(words)} heads of the last third with a stripe {named} have most of it at [SEP] or punctuation "
    sentence += f"({sure} surely), {others} elsewhere ({never} surely)"
    return found_by(result, decided(share, MOST), sentence, result.n)


def _stripe_word(effects: Mapping[str, Estimate], several: int) -> tuple[OutcomeWord, bool] | None:
    """Whether a head's largest effect at a named feature lies above all others: by intervals, and by the numbers.

    None where no effect surely is a stripe.
    """
    wide = {feature: bonferroni_widened(effect, several) for feature, effect in effects.items()}
    if not any(decided(effect, NEARLY_UNIFORM).word == HOLDS for effect in wide.values()):
        return None
    named = max((effect for name, effect in wide.items() if name in SAID_OF_LATE), key=lambda effect: effect.value)
    rivals = [effect for name, effect in wide.items() if name not in SAID_OF_LATE]
    is_named = all(named.value > rival.value for rival in rivals)
    return (apart([named], rivals).word if rivals else HOLDS), is_named
