"""Sentences of the sources' summaries, of a later blog and of the replication, as tests of rows that a report has."""

import numpy as np

from core.report import readings
from core.report.claims.heads_and_layers import percent
from core.report.claims.maps import NO_SPECIAL_TOKENS, over
from core.report.claims.outcomes import (
    FAILS,
    HOLDS,
    KNOWN_ERROR,
    UNDECIDED,
    UNTESTED,
    Decision,
    Outcome,
    apart,
    decided,
    for_each,
    found_by,
    on_rows,
    points,
    said,
    untested,
)
from core.report.claims.seeds import compared, decided_with, luck_of, over_seeds, with_luck
from core.report.estimates import as_share, bonferroni_widened, share_interval
from core.report.evidence import Evidence, StepResult
from core.report.ids import Part
from core.report.published_values import PAPER, printed
from core.studies.comparison.records import MatchSummary
from core.studies.records import picked
from core.studies.tuning.records import finetuned_task
from core.tasks.glue import TASKS

MOST = 0.5  # of the heads
FIFTH = 4 / 12  # of the depth: layer 5 of 12, from 0
PRINTED_GAIN = 35.9

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
    """In the last third of the layers heads look more at [SEP] and punctuation, beyond other tokens nearby, than in the
    first third."""
    scores = [
        score
        for name in ("separator", "punctuation")
        for score in picked(result.scores, statistic="max", feature=name, checkpoint=evidence.checkpoint)
        if score.effect is not None and score.layer is not None
    ]
    third = (max((score.layer or 0 for score in scores), default=0) + 1) // 3
    if not third:
        return None
    last = max(score.layer or 0 for score in scores)
    early = over([score.effect_estimate for score in scores if (score.layer or 0) < third])
    late = over([score.effect_estimate for score in scores if (score.layer or 0) > last - third])
    sentence = f"beyond tokens nearby, mean over heads and both: {said(early, 2)} early, {said(late, 2)} late"
    return found_by(result, apart([late], [early]), sentence, result.n)
