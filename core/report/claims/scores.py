"""Tests of claims about scores, and of claims of other papers."""

from collections.abc import Sequence
from dataclasses import replace

from ...config import command_line
from ...interval import Estimate
from ...studies.attention.records import DependencyScore, LengthCorrelation
from ...studies.records import picked
from ...studies.tuning.records import finetuned_task
from ...tasks.glue import TASKS
from ..estimates import bonferroni_widened
from ..evidence import Evidence, StepResult
from ..ids import Part
from ..measures.scores import constant_score, nothing_to_lose
from ..published_values import PAPER, printed
from ..readings import by_layer, over_heads
from .outcomes import (
    FAILS,
    HOLDS,
    KNOWN_ERROR,
    MARGIN,
    UNDECIDED,
    UNTESTED,
    Decision,
    Outcome,
    all_of,
    apart,
    decided,
    exists,
    for_each,
    found_by,
    gains,
    no_loss,
    on_rows,
    points,
    said,
    untested,
)
from .seeds import compared, needs, over_seeds, score_of, welch, with_luck

# ---------------------------------------------------------------- other ways to fine-tune


def by_separator(evidence: Evidence) -> list[Outcome]:
    """Test whether classifying from the [SEP] vector scores at most one point lower than classifying from the [CLS]
    vector. The test accounts for variation over examples and seeds."""
    return _no_worse(evidence, Part.BY_SEPARATOR, "--set pooling=sep")


def fresh_last_layers(evidence: Evidence) -> list[Outcome]:
    """Test whether reinitialising the last two layers and training only them costs at most one point of the score."""
    return _no_worse(evidence, Part.FRESH_LAST, "--set reset_last=2 --set train_last=2")


def _no_worse(evidence: Evidence, part: Part, settings: str) -> list[Outcome]:
    outcomes = [_compared(evidence, result) for result in evidence.of(part)]
    tested = [outcome for outcome in outcomes if outcome is not None]
    command = f"{command_line('finetune', evidence.checkpoint, '--task', 'rte')} {settings} --seeds 3"
    return tested or [
        Outcome(UNTESTED, f"This setting was not measured. Run {command}, and the same command without --set.")
    ]


def _compared(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Return the score with other settings minus that with the settings of the plan, with a combined interval."""
    usual = evidence.one(Part.TUNING, result.task)
    why = nothing_to_lose(evidence, result.task)
    if usual is None or why:
        return Outcome(UNTESTED, why, result.task) if why else None
    tunings = [finetuned_task(tuned.rows) for tuned in (result, usual)]
    metric, n = tunings[0].metric, min(tuning.rows for tuning in tunings)
    means = [tuning.mean("pretrained") for tuning in tunings]
    scores = [mean for mean in means if mean is not None and mean.of_metric(metric) is not None]
    if len(scores) < 2:
        return None
    (rows, luck), (below, usual_luck) = (score_of(score, metric, n) for score in scores)
    difference, joint_luck = rows - below, welch(luck, usual_luck)
    change = with_luck(difference, joint_luck)
    sentence = (
        f"{metric.capitalize()} changes by {points(change)}, compared with {below.value:.3f} for full "
        "fine-tuning by [CLS]."
    )
    decision = needs(no_loss([change]), difference, joint_luck, -MARGIN)
    return found_by(result, decision, sentence, n, seeds=min(score.n or 1 for score in scores))


PRINTED_GAIN = 35.9


@for_each(Part.TUNING, "stsb", "qnli", starts=("random", "untrained"))
def tuned_random_below_untuned(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether fine-tuned random weights score lower than pre-trained weights without fine-tuning (with an
    untrained classification head). The interval includes the variation over examples and seeds."""
    tuning = finetuned_task(result.rows)
    untuned, random = tuning.mean("untrained"), tuning.mean("random")
    metric, n = tuning.metric, tuning.rows
    if untuned is None or random is None or None in (untuned.of_metric(metric), random.of_metric(metric)):
        return None
    upper, lower = over_seeds(untuned, metric, n), over_seeds(random, metric, n)
    decision = compared(tuning, "untrained", "random")
    seeds = min(untuned.n or 1, random.n or 1)
    sentence = (
        f"{on_rows(result)}{metric.capitalize()} is {said(upper)} for pre-trained weights without fine-tuning, and "
        f"{said(lower)} for fine-tuned random weights."
    )
    return found_by(result, decision or Decision(UNTESTED), sentence, n, seeds=seeds)


def mean_gain(evidence: Evidence) -> list[Outcome]:
    """Recompute the published mean gain of fine-tuning over seven tasks (35.9 points). The arithmetic is right, but the
    mean mixes accuracy with correlation, and the baseline has an untrained classification head."""
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
        f"The mean gain over {len(gains)} tasks is {mean:.2f} points (published: {PRINTED_GAIN}). It mixes accuracy "
        "on six tasks with correlation on STS-B."
    )
    return [Outcome(KNOWN_ERROR, sentence, None, len(gains), result.run)]


GAINED = ("mrpc", "stsb", "sst2", "qqp", "rte", "qnli", "mnli")


HALF = 0.5  # of a head's weight
SAME, PARTED = 0.999, 0.99  # Pearson's r of raw and effective attention
NO_LENGTHS = "Fewer than two input lengths have an interval of r. Rerun this step on more examples."

# ---------------------------------------------------------------- Table 1


@for_each(Part.TUNING, starts=("pretrained", "random"))
def pretraining_helps(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether fine-tuning a pre-trained checkpoint scores higher than fine-tuning one with random weights."""
    return beats(result, "random", "from random weights")


def beats(result: StepResult, initialisation: str, words: str) -> Outcome | None:
    """Test whether fine-tuning from pre-trained weights scores higher than fine-tuning from another initialisation."""
    tuning = finetuned_task(result.rows)
    best, other_mean = tuning.mean("pretrained"), tuning.mean(initialisation)
    metric, n = tuning.metric, tuning.runs[0].dev_rows or 0
    if best is None or other_mean is None or best.of_metric(metric) is None:
        return None
    score, seeds = over_seeds(best, metric, n), best.n
    decision = compared(tuning, "pretrained", initialisation)
    if decision is None:  # constant scores have no correlation
        return found_by(
            result,
            decided(score),
            f"{metric.capitalize()} is {said(score)}, and undefined for {initialisation} weights.",
            n,
            seeds=seeds,
        )
    sentence = f"{on_rows(result)}{metric.capitalize()} is {said(score)}, compared with "
    sentence += f"{said(over_seeds(other_mean, metric, n))} {words}."
    return found_by(result, decision, sentence, n, seeds=min(seeds or 1, other_mean.n or 1))


@for_each(Part.TUNING, starts=("random",))
def random_learns(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether a model that is fine-tuned from random weights scores higher than the best constant prediction. The
    claim fails if the upper bound of the gain is below one point. STS-B is not part of the claim."""
    if result.task == "stsb":
        return None
    tuning = finetuned_task(result.rows)
    mean, floor = tuning.mean("random"), constant_score(tuning, result.task)
    metric, n = tuning.metric, tuning.runs[0].dev_rows or 0
    if mean is None or floor is None:
        return None
    if mean.of_metric(metric) is None:
        return found_by(result, Decision(FAILS), "The predictions are constant.", n, margin=floor, seeds=mean.n)
    rows, luck = score_of(mean, metric, n)
    score = with_luck(rows, luck)
    note = f" Note: {mean.note}." if mean.note else ""
    decision = needs(gains(score, floor), rows, luck, floor)
    if mean.constant:  # of some seeds: what learnt nothing there is no better than a constant predictor
        decision = replace(decision, word=FAILS, times=None)
    sentence = f"{on_rows(result)}{metric.capitalize()} is {said(score)}, compared with {floor:.3f} for a constant "
    sentence += f"prediction.{note}"
    return found_by(result, decision, sentence, n, seeds=mean.n)


@for_each(Part.TUNING)
def constant_cells(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Check whether published scores in Table 1 equal the score of a constant prediction, to the last printed digit."""
    cells = [cell for cell in printed(result.task or "") if cell.source == PAPER and cell.constant]
    tuning = finetuned_task(result.rows)
    if not cells or tuning.constant is None:
        return None
    n = tuning.runs[0].dev_rows
    if result.task not in evidence.official or n != TASKS[result.task].dev_rows:
        return Outcome(UNTESTED, "These are not all dev examples of GLUE.", result.task)
    share = tuning.constant.accuracy or 0.0
    constants = (share, 1 - share)
    equal = [min(abs(cell.values["accuracy"] - constant) for constant in constants) < 0.001 for cell in cells]
    numbers = ", ".join(f"{100 * cell.values['accuracy']:.1f}" for cell in cells)
    sentence = f"Published scores: {numbers}. Constant predictions score {100 * share:.2f} and {100 * (1 - share):.2f}."
    return found_by(
        result, Decision(KNOWN_ERROR), f"{sentence} {sum(equal)} of {len(equal)} published scores equal one of them.", n
    )


# ---------------------------------------------------------------- Clark et al., Brunner et al.


def neighbours(evidence: Evidence) -> list[Outcome]:
    """Test whether some heads put more than half of their weight on the previous token, and some on the next token."""
    sides = ("previous",) if evidence.causal else ("previous", "next")
    by_task = evidence.by_task(Part.STATISTICS)
    return [_neighbours(result, task, sides) for task, result in by_task.items()] or untested(evidence, Part.STATISTICS)


def _neighbours(result: StepResult, task: str, sides: Sequence[str]) -> Outcome:
    """Each side is corrected over its heads; both must hold, so no correction over sides is needed."""
    weights_of_side = {
        side: [
            score.estimate
            for score in picked(result.scores, task=task, statistic=side)
            if score.layer is not None and score.value is not None
        ]
        for side in sides
    }
    counts = {
        side: sum(decided(bonferroni_widened(weight, len(weights)), HALF).word == HOLDS for weight in weights)
        for side, weights in weights_of_side.items()
    }
    largest = {
        side: max((weight.value for weight in weights), default=0.0) for side, weights in weights_of_side.items()
    }
    sentence = "; ".join(f"{counts[side]} on the {side} token (largest weight {largest[side]:.2f})" for side in sides)
    decision = all_of([exists(weights, HALF) for weights in weights_of_side.values()])
    return found_by(
        result,
        decision,
        f"Heads with more than half of their weight, corrected over heads: {sentence}.",
        result.n,
        task,
        margin=HALF,
    )


def separators_in_the_middle(evidence: Evidence) -> list[Outcome]:
    """Test whether the middle layers (6 to 10 of 12, or the same depth in other models) put more than half of their
    attention on separators."""
    results = evidence.by_task(Part.STATISTICS)
    if not results or evidence.causal:
        why = "A decoder has no [SEP]." if evidence.causal else evidence.missing(Part.STATISTICS)
        return [Outcome(UNTESTED, why)]
    outcomes = []
    for task, result in results.items():
        scores = [score for score in picked(result.scores, task=task, statistic="separator") if score.layer is not None]
        depth = len(by_layer(scores))
        middle = [score for score in scores if 5 / 12 <= (score.layer or 0) / depth < 10 / 12]
        mean = over_heads(middle)
        if mean is not None:
            names = sorted({(score.layer or 0) + 1 for score in middle})
            sentence = f"The mean weight on separators in layers {names[0]} to {names[-1]} is {said(mean, 2)}."
            decision = decided(mean, HALF)
            outcomes.append(found_by(result, decision, sentence, scores[0].n, task, statistic=mean, margin=HALF))
    return outcomes or [Outcome(UNTESTED, "No task has a separator.")]


@for_each(Part.DEPENDENCIES)
def heads_beat_distances(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether the best head is more accurate than the best fixed-distance baseline for most dependencies. Heads
    are chosen on dev and compared on test, with correction over dependencies."""
    labels: dict[str, list[str]] = {HOLDS: [], FAILS: [], UNDECIDED: []}
    dependency_scores = DependencyScore.among(result.rows)
    chosen = []
    for label in dict.fromkeys(score.feature or "" for score in dependency_scores):
        scores = [
            score for score in picked(dependency_scores, feature=label) if score.value is not None and score.baseline
        ]
        if scores and label != "all":
            chosen.append((label, max(scores, key=lambda score: score.dev or 0.0)))
    for label, best in chosen:
        labels[decided(bonferroni_widened(best.estimate, len(chosen)), best.baseline or 0.0).word].append(label)
    better, worse, unclear = labels.values()
    ahead = sum(best.estimate.value > (best.baseline or 0.0) for _, best in chosen)
    total = len(better) + len(worse) + len(unclear)
    sentence = f"The best head is more accurate than a fixed distance on {len(better)} of {total} dependencies "
    sentence += f"({', '.join(better[:8]) or 'none'}), less accurate on {len(worse)}, and undecided on {len(unclear)}."
    n = sum(int(score.n or 0) for score in picked(dependency_scores, feature="all")[:1])
    word = HOLDS if len(better) > total / 2 else FAILS if len(worse) > total / 2 else UNDECIDED
    least, most = (len(better) / max(1, total), 1 - len(worse) / max(1, total))
    counted = Estimate(ahead / max(1, total), least, most)
    return found_by(result, Decision(word, None, counted, HALF), sentence, n)


@for_each(Part.EFFECTIVE)
def effective_drops(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether raw and effective attention agree on short inputs but diverge on long inputs. The correlation must
    be above .999 for the shortest inputs, and below .99 for the longest.

    The claim fails if they differ for the shortest inputs too. Results of earlier versions without intervals by length
    cannot be tested.
    """
    several = sorted(LengthCorrelation.among(result.rows), key=lambda length: length.length_from)
    if not several:
        return None
    lengths = list(dict.fromkeys((length.length_from, length.length_to) for length in several))
    means = {low: _mean_r(several, low) for low, _ in lengths}
    with_interval = [mean for mean in means.values() if mean.low is not None]
    if len(with_interval) < 2:
        return Outcome(UNTESTED, NO_LENGTHS, result.task)
    shown = lengths[:: max(1, len(lengths) // 5)]
    by_length = ", ".join(f"{low}-{high}: {means[low].value:.2f}" for low, high in shown)
    short, long = with_interval[0], with_interval[-1]
    n = sum(length.n for length in several)
    short_decision, parted = decided(short, SAME), decided(-long, -PARTED)
    decision = short_decision if short_decision.word == FAILS else _parted(short_decision, parted, long)
    sentence = f"Pearson's r by number of tokens is {by_length}. It is {said(short)} for the shortest inputs and "
    sentence += f"{said(long)} for the longest."
    return found_by(result, decision, sentence, n)


def _parted(equal: Decision, parted: Decision, long: Estimate) -> Decision:
    """HOLDS if both do; inputs that never differ may be too short, so that alone does not fail the claim."""
    if equal.word == parted.word == HOLDS:
        return Decision(HOLDS, None, long, PARTED)
    times = [decision.times for decision in (equal, parted) if decision.word == UNDECIDED]
    never = None in times or parted.word == FAILS
    return Decision(UNDECIDED, None if never else max(filter(None, times)), long, PARTED)


def _mean_r(several: Sequence[LengthCorrelation], low: int) -> Estimate:
    """Return the mean correlation over inputs of a length. For several tasks, squared errors are added; there is no
    interval if one of them has none."""
    lengths = [length for length in several if length.length_from == low]
    n = sum(length.n for length in lengths)
    value = sum(length.mean * length.n for length in lengths) / n
    if any(length.low is None for length in lengths):
        return Estimate(value)
    half = sum((length.n * (length.mean - (length.low or 0.0))) ** 2 for length in lengths) ** 0.5 / n
    return Estimate(value, value - half, value + half)


def dominance_shrinks(evidence: Evidence) -> list[Outcome]:
    """Test whether effective attention gives less weight to [CLS], [SEP] and punctuation than raw attention."""
    result = evidence.one(Part.EFFECTIVE)
    if result is None:
        return untested(evidence, Part.EFFECTIVE)
    outcomes = []
    for task in result.tasks():
        raw, effective = (
            over_heads(
                score
                for name in ("start", "separator", "punctuation")
                for score in picked(result.scores, task=task, statistic=kind, feature=name)
            )
            for kind in ("raw", "effective")
        )
        if raw is not None and effective is not None:
            sentence = (
                f"The mean weight on these tokens is {said(raw, 2)} in raw attention and {said(effective, 2)} in "
                "effective attention."
            )
            outcomes.append(found_by(result, apart([raw], [effective]), sentence, result.n, task))
    return outcomes or untested(evidence, Part.EFFECTIVE)
