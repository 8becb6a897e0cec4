"""The sources' sentences on scores and on what other papers measured, as tests."""

from collections.abc import Sequence

import scipy  # its parts load when they are used

from core.report import readings
from core.report.claims.outcomes import (
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
    found_by,
    no_loss,
    of_each,
    of_each_loss,
    of_each_sweep,
    points,
    said,
    times_until,
    untested,
    within,
)
from core.report.estimates import Estimate, among, mean_over
from core.report.evidence import Evidence, StepResult
from core.report.ids import Part
from core.report.measures.scores import best_by_layer, constant_score, removable, scored
from core.report.published import PAPER, printed
from core.report.readings import by_layer, over_heads
from core.studies.attention.records import DependencyScore, LengthCorrelation
from core.studies.records import picked
from core.studies.tuning.records import finetuned_task
from core.tasks.glue import TASKS

SHARE_MARGIN = 0.05
LEVEL = 0.05  # of p corrected over heads
HALF = 0.5  # of a head's weight
OLD_SHARES = "the shares were counted before changes were paired by input: run that step anew"

# ---------------------------------------------------------------- Table 1


def pretraining_helps(evidence: Evidence) -> list[Outcome]:
    """A pre-trained checkpoint, fine-tuned, scores higher than a random one."""
    return of_each(evidence, Part.TUNING, lambda result: beats(result, "random", "from random weights"))


def beats(result: StepResult, initialisation: str, words: str) -> Outcome | None:
    """Whether fine-tuning from pre-trained weights scores higher than another initialisation."""
    tuning = finetuned_task(result.rows)
    best, other = tuning.mean("pretrained"), tuning.mean(initialisation)
    metric, n = tuning.metric, tuning.runs[0].dev_rows or 0
    if best is None or other is None or best.of_metric(metric) is None:
        return None
    score = scored(best, metric, n)
    if other.of_metric(metric) is None:  # constant scores have no correlation
        return found_by(result, decided(score), f"{metric} {said(score)}; {initialisation} undefined", n)
    below = scored(other, metric, n)
    return found_by(result, apart([score], [below]), f"{metric} {said(score)} against {said(below)} {words}", n)


def random_learns(evidence: Evidence) -> list[Outcome]:
    """A randomly initialised model, fine-tuned, is better than the best constant predictor."""

    def test(result: StepResult) -> Outcome | None:
        tuning = finetuned_task(result.rows)
        mean, floor = tuning.mean("random"), constant_score(tuning, result.task)
        metric, n = tuning.metric, tuning.runs[0].dev_rows or 0
        if mean is None or floor is None:
            return None
        if mean.of_metric(metric) is None:
            return found_by(result, Decision(FAILS), "its predictions are constant", n)
        score = scored(mean, metric, n)
        sentence = f"{metric} {said(score)}, the constant predictor {floor:.3f}" + (
            f"; {mean.note}" if mean.note else ""
        )
        return found_by(result, Decision(FAILS) if mean.constant else decided(score, floor), sentence, n)

    return of_each(evidence, Part.TUNING, test)


def constant_cells(evidence: Evidence) -> list[Outcome]:
    """The named cells of Table 1 equal a constant predictor on these rows, to the printed digit: arithmetic, which
    no checkpoint decides."""

    def test(result: StepResult) -> Outcome | None:
        cells = [cell for cell in printed(result.task or "") if cell.source == PAPER and cell.constant]
        tuning = finetuned_task(result.rows)
        if not cells or tuning.constant is None:
            return None
        n = tuning.runs[0].dev_rows
        if result.task not in evidence.official or n != TASKS[result.task].dev_rows:
            return Outcome(UNTESTED, "these are not all of GLUE's own dev rows", result.task)
        share = tuning.constant.accuracy or 0.0
        both = (share, 1 - share)
        equal = [min(abs(cell.values["accuracy"] - other) for other in both) < 0.001 for cell in cells]
        numbers = ", ".join(f"{100 * cell.values['accuracy']:.1f}" for cell in cells)
        sentence = f"printed {numbers}; constant predictors score {100 * share:.2f} and {100 * (1 - share):.2f}"
        return found_by(result, Decision(KNOWN_ERROR), f"{sentence}: {sum(equal)} of {len(equal)} equal one", n)

    return of_each(evidence, Part.TUNING, test)


# ---------------------------------------------------------------- disabling


def random_head_helps(evidence: Evidence) -> list[Outcome]:
    """Disabling a head drawn at random raises the score on MRPC and RTE."""

    def test(result: StepResult) -> Outcome | None:
        sweep = readings.sweep(result.rows)
        changes = [change for _, change in sweep.known]
        mean = mean_over(changes)
        if mean is None:
            return None
        up = sum(change.value > 0 for change in changes)
        sentence = f"{_on_rows(result)}{sweep.metric} {points(mean)} on average; {up} of {len(changes)} heads raise it"
        return found_by(result, decided(mean), sentence, sweep.variants[0].n, statistic=mean, margin=0.0)

    return of_each_sweep(evidence, test, ("mrpc", "rte"))


def _on_rows(result: StepResult) -> str:
    """Says so where each train row was tested by a model that never saw it."""
    return "cross-fitted on all train rows: " if result.step.part == Part.CROSSED else ""


def some_head_helps(evidence: Evidence) -> list[Outcome]:
    """On every task there is a head whose disabling raises the score: p corrected over all heads (max-T) at most .05.

    It fails where every head's interval ends below a gain of one point (MARGIN). The range over splits decides nothing.
    """
    return of_each_sweep(evidence, _some_head)


def _some_head(result: StepResult) -> Outcome | None:
    sweep = readings.sweep(result.rows)
    held, known = sweep.held_out, sweep.known
    if not known:
        return None
    gains = [pair for pair in known if pair[1].value > 0 and pair[0].p <= LEVEL]
    best, change = min(gains, key=lambda pair: pair[0].p) if gains else max(known, key=lambda pair: pair[1].value)
    sentence = f"{_on_rows(result)}the {'clearest' if gains else 'largest'} gain of {len(known)} heads: {best.name} "
    sentence += f"{points(change)}; p {best.p:.2g} corrected (max-T)"
    if held is not None:
        sentence += f"; chosen on half of the rows, on the others {points(held.gain)}"
    none = all(gained.high is not None and gained.high < MARGIN for _, gained in known)
    corrected = among(change, len(known))
    decision = Decision(HOLDS) if gains else Decision(FAILS) if none else Decision(UNDECIDED, times_until(corrected, 0))
    return found_by(result, decision, sentence, best.n, statistic=corrected, margin=0.0)


def first_layer_helps(evidence: Evidence) -> list[Outcome]:
    """Disabling the whole first layer raises the score on RTE."""

    def test(result: StepResult) -> Outcome | None:
        sweep = readings.sweep(result.rows)
        first = next((pair for pair in sweep.known if pair[0].layer == 0), None)
        if first is None:
            return None
        variant, change = first
        sentence = f"{sweep.metric} {points(change)}; p {variant.p:.2g} corrected over {len(sweep.known)} layers"
        return found_by(result, decided(change), sentence, variant.n, statistic=change, margin=0.0)

    return of_each(evidence, Part.LAYERS, test, ("rte",))


def shared_heads(evidence: Evidence) -> list[Outcome]:
    """STS-B and RTE rely on the same heads: the ranks of their losses agree."""
    stsb, rte = evidence.one(Part.HEADS, "stsb"), evidence.one(Part.HEADS, "rte")
    if stsb is None or rte is None:
        return untested(evidence, Part.HEADS, "stsb" if stsb is None else "rte")
    known = [readings.sweep(result.rows).known for result in (stsb, rte)]
    changes = [{variant.name: change.value for variant, change in pairs} for pairs in known]
    names = [name for name in changes[0] if name in changes[1]]
    test = scipy.stats.spearmanr(*([of_task[name] for name in names] for of_task in changes))
    rho, p = float(test.statistic), float(test.pvalue)
    worst = [min(of_task, key=lambda name: of_task[name]) for of_task in changes]
    sentence = (
        f"Spearman {rho:.2f} over {len(names)} heads, p {p:.2g}; the head that costs most: {worst[0]} and {worst[1]}"
    )
    outcome = UNDECIDED if not p < 0.05 else HOLDS if rho > 0 else FAILS
    return [Outcome(outcome, sentence, None, len(names), stsb.run)]


def nothing_changes(evidence: Evidence) -> list[Outcome]:
    """Disabling heads of GPT-2 leaves every prediction as it was."""

    def test(result: StepResult) -> Outcome | None:
        sweep = readings.sweep(result.rows)
        known, n = sweep.known, sweep.variants[0].n
        flipped = [variant.flipped for variant, _ in known if variant.flipped is not None]
        moved = sum(flips > 0 for flips in flipped) if flipped else sum(change.value != 0 for _, change in known)
        most = f", up to {max(flipped)} of {n} predictions" if flipped else ""
        sentence = f"{moved} of {len(known)} heads change something{most}"
        return found_by(result, Decision(FAILS if moved else HOLDS), sentence, n)

    return of_each(evidence, Part.HEADS, test)


# ---------------------------------------------------------------- Michel et al.


def many_heads_go(evidence: Evidence) -> list[Outcome]:
    """A fifth of the heads can be removed, least important first, for no more than a point of the score."""

    def test(result: StepResult) -> Outcome | None:
        curves = readings.prune_curves(result.rows)
        if "importance" not in curves:
            return None
        fifth = min(curves["importance"], key=lambda step: abs(step.share - 0.2))
        if fifth.change is None:
            return None
        ends = [None if end is None else end - fifth.baseline for end in (fifth.low, fifth.high)]
        change = Estimate(fifth.change, *ends)
        shares = {order: removable(steps)[0] for order, steps in curves.items()}
        chance = [share for order, share in shares.items() if order.startswith("random")]
        sentence = f"{fifth.metric} {points(change)} without {fifth.share:.0%} of the heads; no loss beyond luck up to "
        sentence += f"{shares['importance']:.0%}, in random orders up to {min(chance, default=0):.0%} to "
        sentence += f"{max(chance, default=0):.0%} ({fifth.baseline:.3f} with all)"
        return found_by(result, no_loss([change]), sentence, fifth.n, statistic=change, margin=-MARGIN)

    return of_each_loss(evidence, Part.PRUNE, test)


def one_head_is_enough(evidence: Evidence) -> list[Outcome]:
    """In most layers the best head alone costs no more than a point of the score."""

    def test(result: StepResult) -> Outcome | None:
        sweep = readings.sweep(result.rows)
        best = best_by_layer(sweep.known)
        decisions = [no_loss([change]) for change in best]
        words = [decision.word for decision in decisions]
        enough, lost = words.count(HOLDS), words.count(FAILS)
        mean = 100 * sum(change.value for change in best) / max(1, len(best))
        sentence = (
            f"{sweep.metric}: enough in {enough} of {len(best)} layers, a loss in {lost}, undecided in the others; "
            f"mean change {mean:+.1f} points; the best head of a layer is chosen on the same rows"
        )
        return found_by(result, _most(decisions), sentence, sweep.variants[0].n)

    return of_each_loss(evidence, Part.ALONE, test)


def _most(decisions: Sequence[Decision]) -> Decision:
    """HOLDS where it does for more than half of them, FAILS where it does so for half, else UNDECIDED until enough of
    them are decided."""
    words = [decision.word for decision in decisions]
    if 2 * words.count(HOLDS) > len(words):
        return Decision(HOLDS)
    if 2 * words.count(FAILS) >= len(words):
        return Decision(FAILS)
    times = sorted(decision.times for decision in decisions if decision.word == UNDECIDED and decision.times)
    missing = len(words) // 2 + 1 - words.count(HOLDS)
    return Decision(UNDECIDED, times[missing - 1] if len(times) >= missing else None)


# ---------------------------------------------------------------- Clark et al., Brunner et al.


def neighbours(evidence: Evidence) -> list[Outcome]:
    """Some heads put more than half of their weight on the previous token, and some on the next."""
    result = evidence.one(Part.STATISTICS)
    if result is None:
        return untested(evidence, Part.STATISTICS)
    sides = ("previous",) if evidence.causal else ("previous", "next")
    return [_neighbours(result, task, sides) for task in result.tasks()]


def _neighbours(result: StepResult, task: str, sides: Sequence[str]) -> Outcome:
    """Each side is corrected over its heads; both must hold, so nothing more is corrected over the sides."""
    known = {
        side: [
            score.estimate
            for score in picked(result.scores, task=task, statistic=side)
            if score.layer is not None and score.value is not None
        ]
        for side in sides
    }
    counts = {
        side: sum(decided(among(weight, len(weights)), HALF).word == HOLDS for weight in weights)
        for side, weights in known.items()
    }
    largest = {side: max((weight.value for weight in weights), default=0.0) for side, weights in known.items()}
    sentence = "; ".join(f"{counts[side]} heads on the {side} token, the most {largest[side]:.2f}" for side in sides)
    decision = all_of([exists(weights, HALF) for weights in known.values()])
    return found_by(result, decision, f"{sentence} (above half, corrected over heads)", result.n, task, margin=HALF)


def separators_in_the_middle(evidence: Evidence) -> list[Outcome]:
    """Layers 6 to 10 of 12 (here: at that depth) put more than half of their weight on separators."""
    result = evidence.one(Part.STATISTICS)
    if result is None or evidence.causal:
        why = "a decoder has no [SEP]" if evidence.causal else evidence.missing(Part.STATISTICS)
        return [Outcome(UNTESTED, why)]
    outcomes = []
    for task in result.tasks():
        scores = [score for score in picked(result.scores, task=task, statistic="separator") if score.layer is not None]
        depth = len(by_layer(scores))
        middle = [score for score in scores if 5 / 12 <= (score.layer or 0) / depth < 10 / 12]
        mean = over_heads(middle)
        if mean is not None:
            names = sorted({(score.layer or 0) + 1 for score in middle})
            sentence = f"mean over layers {names[0]} to {names[-1]}: {said(mean, 2)}"
            decision = decided(mean, HALF)
            outcomes.append(found_by(result, decision, sentence, scores[0].n, task, statistic=mean, margin=HALF))
    return outcomes or [Outcome(UNTESTED, "no task has a separator")]


def heads_beat_distances(evidence: Evidence) -> list[Outcome]:
    """For most dependencies the head that is best on dev beats, on test, the best fixed distance: corrected over the
    dependencies."""

    def test(result: StepResult) -> Outcome | None:
        labels: dict[str, list[str]] = {HOLDS: [], FAILS: [], UNDECIDED: []}
        every = DependencyScore.among(result.rows)
        chosen = []
        for label in dict.fromkeys(score.feature or "" for score in every):
            scores = [score for score in picked(every, feature=label) if score.value is not None and score.baseline]
            if scores and label != "all":
                chosen.append((label, max(scores, key=lambda score: score.dev or 0.0)))
        for label, best in chosen:
            labels[decided(among(best.estimate, len(chosen)), best.baseline or 0.0).word].append(label)
        better, worse, unclear = labels.values()
        total = len(better) + len(worse) + len(unclear)
        sentence = f"better on {len(better)} of {total} ({', '.join(better[:8]) or 'none'}), worse on {len(worse)}, "
        sentence += f"undecided {len(unclear)}"
        n = sum(int(score.n or 0) for score in picked(every, feature="all")[:1])
        word = HOLDS if len(better) > total / 2 else FAILS if len(worse) > total / 2 else UNDECIDED
        return found_by(result, Decision(word), sentence, n)

    return of_each(evidence, Part.DEPENDENCIES, test)


def effective_drops(evidence: Evidence) -> list[Outcome]:
    """Raw and effective attention are the same for short inputs and part for long ones."""
    return of_each(evidence, Part.EFFECTIVE, _drops)


def _drops(result: StepResult) -> Outcome | None:
    several = sorted(readings.length_correlations(result.rows), key=lambda length: length.length_from)
    if not several:
        return None
    lengths = list(dict.fromkeys((length.length_from, length.length_to) for length in several))
    shown = lengths[:: max(1, len(lengths) // 5)]
    by_length = ", ".join(f"{low}-{high}: {_mean_r(several, low):.2f}" for low, high in shown)
    short, long = _mean_r(several, lengths[0][0]), _mean_r(several, lengths[-1][0])
    word = HOLDS if short > 0.999 and long < 0.99 else UNDECIDED if long > 0.99 else FAILS
    n = sum(length.n for length in several)
    return found_by(result, Decision(word), f"Pearson r by word pieces {by_length}", n)


def _mean_r(several: Sequence[LengthCorrelation], low: int) -> float:
    mine = [length for length in several if length.length_from == low]
    return sum(length.mean * length.n for length in mine) / sum(length.n for length in mine)


def dominance_shrinks(evidence: Evidence) -> list[Outcome]:
    """Effective attention gives less to [CLS], [SEP] and punctuation than raw attention."""
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
            sentence = f"mean over heads and types: raw {said(raw, 2)}, effective {said(effective, 2)}"
            outcomes.append(found_by(result, apart([raw], [effective]), sentence, result.n, task))
    return outcomes or untested(evidence, Part.EFFECTIVE)


def shares_stay(evidence: Evidence) -> list[Outcome]:
    """Fine-tuning moves no class's share by more than five points, paired by input."""

    def test(result: StepResult) -> Outcome | None:
        moved = readings.moved_shares(result.rows)
        if not moved:
            tuned = any(counted.checkpoint != evidence.checkpoint for counted in readings.class_shares(result.rows))
            return Outcome(UNTESTED, OLD_SHARES, result.task) if tuned else None
        most = max(moved, key=lambda share: abs(share.change.value))
        sentence = f"of {len(moved)} classes {most.name} moves most, {points(most.joint)}, all together"
        return found_by(result, within([share.joint for share in moved], SHARE_MARGIN), sentence, most.inputs)

    return of_each(evidence, Part.SHARES, test)
