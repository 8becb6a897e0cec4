"""The last sentences of the sources: GPT-2's first and last token, words of both sentences, repeated patterns, words
that matter, and what no rows can test yet."""

import numpy as np

from ...studies.ablation.records import LinkContrast
from ...studies.attention.records import RepeatedShare, Score
from ...studies.estimate import Estimate
from ...studies.records import picked
from ...tasks.relations import SAME_WORD
from ..estimates import bonferroni_widened
from ..evidence import Evidence, StepResult
from ..ids import Part
from ..readings import sweep
from .changes import gains_by_seed, said_of_seeds
from .disabling import MOST_HEADS, clear_losses
from .heads_and_layers import PARTS
from .maps import over
from .outcomes import (
    FAILS,
    HOLDS,
    UNTESTED,
    Outcome,
    all_of,
    apart,
    decided,
    for_each,
    found_by,
    said,
    untested,
)
from .seeds import decided_over_seeds

NO_FRAMES = (
    "it needs labelled rows whose frames are annotated, scored with growing weights on their links and some seeds of "
    "each weight; GLUE's rows have no frames, FrameNet's no labels"
)
NO_LAST = "the features were measured without the last token of the first sentence: run that step anew"


@for_each(Part.FEATURES)
def first_and_last(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Heads look more at the first token, and at the last one of the first sentence, than at other tokens nearby, and
    less after fine-tuning than before: means over heads."""
    decisions, sentences = [], []
    for feature in ("first", "last"):
        scores = picked(result.scores, statistic="max", feature=feature, checkpoint=evidence.checkpoint)
        beyond = [score.effect_estimate for score in scores if score.effect is not None]
        gains = gains_by_seed(evidence, result, feature)
        if not beyond or not gains:
            return Outcome(UNTESTED, NO_LAST, result.task) if feature == "last" else None
        decisions += [decided(over(beyond)), decided_over_seeds([-seed for seed in gains], PARTS)]
        sentences.append(f"{feature} token {said(over(beyond), 2)} beyond others nearby, {said_of_seeds(gains)} after")
    return found_by(result, all_of(decisions), "; ".join(sentences), result.n, seeds=len(gains))


def words_of_both(evidence: Evidence) -> list[Outcome]:
    """Of the heads whose loss is clear on both STS-B and RTE, corrected over heads, more than half look at the same
    word in the other sentence, beyond its other words and beyond what any noun (or other kind of word) gets: in some
    direction, corrected over these heads."""
    swept = {task: evidence.one(Part.HEADS, task) for task in ("stsb", "rte")}
    unswept = [task for task, result in swept.items() if result is None]
    if unswept:
        return untested(evidence, Part.HEADS, unswept[0])
    first, second = (clear_losses(sweep(result.rows).known) for result in swept.values() if result is not None)
    relations = {task: result for task, result in evidence.by_task(Part.RELATIONS).items() if task in swept}
    if not relations:
        return untested(evidence, Part.RELATIONS)
    if not first & second:
        return [Outcome(UNTESTED, "no head has a clear loss on both tasks")]
    return [_of_the_same_word(result, task, first & second) for task, result in relations.items()]


def _of_the_same_word(result: StepResult, task: str, heads: set[str]) -> Outcome:
    """How many of these heads look at the same word in the other sentence."""
    word_scores = picked(result.scores, task=task, feature=SAME_WORD)
    scores = [score for score in word_scores if score.name in heads and score.effect is not None]
    words: dict[str, list[str]] = {}
    for score in scores:
        parts = (score.effect_estimate, score.contrast_estimate)
        beyond_both = all_of(decided(bonferroni_widened(part, len(scores))) for part in parts)
        words.setdefault(score.name, []).append(beyond_both.word)
    sure = sum(HOLDS in head_words for head_words in words.values())
    never = sum(all(word == FAILS for word in head_words) for head_words in words.values())
    above = sum(any(_above(score) for score in picked(scores, name=name)) for name in words)
    if not words:
        return Outcome(UNTESTED, "no row has a word twice", task)
    share = Estimate(above / len(words), sure / len(words), 1 - never / len(words))
    sentence = f"{sure} of the {len(words)} heads that both tasks share ({', '.join(sorted(words))}) look there, "
    sentence += f"{len(words) - sure - never} may"
    return found_by(result, decided(share, MOST_HEADS), sentence, len(words), task)


def _above(score: Score) -> bool:
    return score.effect is not None and score.effect > 0


# ---------------------------------------------------------------- repeated patterns, and words that matter


def repeated_patterns(evidence: Evidence) -> list[Outcome]:
    """More than half of the heads are nearer to another head on the same inputs than to themselves on other inputs,
    each surely, corrected over heads, and their share lies above that of random weights. The nearest head is chosen on
    other inputs than it is measured on. Where all heads of random weights are so, no share can lie above."""
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
    sentence = f"{said(share, 2)} of the heads, {said(random, 2)} in {len(drawn)} draws of random weights"
    if random.low == 1.0:
        return Outcome(UNTESTED, f"{sentence}: no share can lie above", task, measured[0].n, result.run)
    return found_by(
        result, all_of([decided(share, MOST_HEADS), apart([share], [random])]), sentence, measured[0].n, task
    )


@for_each(Part.WORD_LINKS, "sst2")
def adjectives_matter(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Cutting links between nouns and adjectives moves the difference of the logits on SST-2 more, whichever way, than
    cutting as many between nouns and prepositions at the same distances in the same sentences: all layers, paired."""
    contrast = next((cut for cut in LinkContrast.among(result.rows) if cut.value is not None), None)
    if contrast is None:
        return None
    change = Estimate(contrast.value or 0.0, contrast.low, contrast.high)
    sentence = f"{said(change, 2)} logits more, by {contrast.first_moves:.2g} and {contrast.other_moves:.2g}, "
    sentence += f"{contrast.links} links each of {contrast.n} rows that have both sorts at one distance"
    return found_by(result, decided(change), sentence, contrast.n)


# ---------------------------------------------------------------- without rows


def frames_help(evidence: Evidence) -> list[Outcome]:
    """Scores rise with the weight that heads are made to put on frame links, and fall beyond some weight. No rows here
    can tell: GLUE's have labels and no annotated frames, FrameNet's have frames and no label, and links can be cut
    here, not given more weight by steps."""
    return [Outcome(UNTESTED, f"{NO_FRAMES} ({evidence.checkpoint})")]
