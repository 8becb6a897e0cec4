"""Outcomes of a claim's test on one checkpoint: holds, does not hold, undecided, or not testable, with the numbers.

A claim about data or arithmetic, not about a checkpoint, is a known error of its source.

A test is a pure function from the evidence of a checkpoint to outcomes, one per task (or one for all). Undecided
outcomes say how many examples would decide if the estimates stay the same: intervals shrink with the square root of the
number of examples.
"""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ...interval import Estimate
from ...scoring.corrections import widened
from ..estimates import bonferroni_widened
from ..evidence import ON_TRAIN_ROWS, Evidence, StepResult
from ..ids import Part
from ..measures.scores import nothing_to_lose

MARGIN = 0.01  # losses below one point do not count
MOST_TIMES = 10_000  # a plan for more rows than this multiple is not useful


class OutcomeWord(StrEnum):
    """The possible outcomes of testing a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    UNTESTED = "cannot be tested"
    KNOWN_ERROR = "known error"


HOLDS, FAILS, UNDECIDED, UNTESTED, KNOWN_ERROR = OutcomeWord


@dataclass(frozen=True)
class Decision:
    """The outcome of a statistical test, with the number on which it is based.

    Attributes:
        times: for an undecided test, the factor by which the number of examples must grow; None if no number would
            decide.
        statistic: the deciding number with its interval; None if it is not one number.
        seeds: number of fine-tuning seeds that would decide, if more examples alone would not.
    """

    word: OutcomeWord
    times: float | None = None
    statistic: Estimate | None = None
    margin: float | None = None
    seeds: int | None = None

    @property
    def clear(self) -> float:
        """Return the distance of the statistic from the margin, in half-widths of its confidence interval. Return 0 if
        it is unknown."""
        if self.statistic is None or self.margin is None:
            return 0.0
        half = _half(self.statistic, above=self.statistic.value > self.margin)
        distance = abs(self.statistic.value - self.margin)
        return 0.0 if half is None else distance / half if half else math.inf if distance else 0.0


@dataclass(frozen=True)
class Outcome:
    """The result of testing a claim of a paper, as shown in the report.

    Attributes:
        task: None if it does not belong to one task.
        times: as in `Decision`.
        statistic: the tested number with its interval; None if it is not one number.
        seeds: number of fine-tuning seeds, if known.
        needed_seeds: number of seeds that would decide, if more examples alone would not.
    """

    outcome: OutcomeWord
    said: str
    task: str | None = None
    n: int | None = None
    run: str | None = None
    times: float | None = None
    statistic: Estimate | None = None
    margin: float | None = None
    seeds: int | None = None
    needed_seeds: int | None = None

    @property
    def needed(self) -> int | None:
        """Estimate how many examples would decide an undecided claim. Return None if this is unknown."""
        return math.ceil(self.n * self.times) if self.n and self.times else None


Test = Callable[[Evidence], list[Outcome]]


def found_by(
    result: StepResult,
    decision: Decision,
    said: str,
    n: int | None,
    task: str | None = None,
    *,
    statistic: Estimate | None = None,
    margin: float | None = None,
    seeds: int | None = None,
) -> Outcome:
    """Convert the decision of a statistical test to an outcome for the report."""
    statistic = decision.statistic if statistic is None else statistic
    margin = decision.margin if margin is None else margin
    about = (task or result.task, n, result.run, decision.times, statistic, margin, seeds)
    return Outcome(decision.word, said, *about, decision.seeds)


# ---------------------------------------------------------------- deciding


def decided(estimate: Estimate, zero: float = 0.0) -> Decision:
    """Return HOLDS if the whole interval of an estimate is above `zero`, FAILS if it is below, otherwise UNDECIDED."""
    if estimate.low is not None and estimate.low > zero:
        return Decision(HOLDS, None, estimate, zero)
    if estimate.high is not None and estimate.high < zero:
        return Decision(FAILS, None, estimate, zero)
    return Decision(UNDECIDED, times_until(estimate, zero), estimate, zero)


def gains(estimate: Estimate, zero: float = 0.0) -> Decision:
    """Test for an increase. Return HOLDS if the interval is above `zero`, FAILS if its upper bound is less than one
    point above `zero`, otherwise UNDECIDED."""
    decision = decided(estimate, zero)
    if decision.word == HOLDS or estimate.high is None or decision.word == FAILS:
        return decision
    if estimate.high < zero + MARGIN:
        return Decision(FAILS, None, estimate, zero + MARGIN)
    none = times_until(estimate, zero + MARGIN) if estimate.value < zero + MARGIN else None
    return replace(decision, times=min(filter(None, (decision.times, none)), default=None))


def apart(upper: Sequence[Estimate], lower: Sequence[Estimate]) -> Decision:
    """Test whether every estimate in one group exceeds every estimate in another. Return HOLDS if all do significantly,
    FAILS if any pair is significantly reversed, otherwise UNDECIDED."""
    estimates = [*upper, *lower]
    if not upper or not lower or any(estimate.low is None or estimate.high is None for estimate in estimates):
        return Decision(UNDECIDED)
    return _weakest([_pair(above, below) for above in upper for below in lower])


def _pair(upper: Estimate, lower: Estimate) -> Decision:
    """Decide whether the first of two estimates is above the second, by whether their intervals overlap."""
    difference = upper - lower
    if upper.low is not None and lower.high is not None and upper.low > lower.high:
        return Decision(HOLDS, None, difference, 0.0)
    if upper.high is not None and lower.low is not None and upper.high < lower.low:
        return Decision(FAILS, None, difference, 0.0)
    above = upper.value > lower.value
    halves = (_half(upper, above=above), _half(lower, above=not above))
    times = None if None in halves else _times(upper.value - lower.value, sum(halves))  # type: ignore[arg-type]
    return Decision(UNDECIDED, times, difference, 0.0)


def no_loss(changes: Sequence[Estimate], most: float = MARGIN) -> Decision:
    """Test that no score decreases by more than `most`. Return FAILS if any decrease is significantly larger, HOLDS if
    all decreases are significantly smaller, otherwise UNDECIDED.

    A loss smaller than the margin does not count: an interval from -0.5 to -0.1 points holds.
    """
    if not changes:
        return Decision(UNDECIDED)
    return all_of([_no_loss(change, most) for change in changes])


def _no_loss(change: Estimate, most: float) -> Decision:
    if change.high is not None and change.high < -most:
        return Decision(FAILS, None, change, -most)
    if change.low is not None and change.low >= -most:
        return Decision(HOLDS, None, change, -most)
    return Decision(UNDECIDED, times_until(change, -most), change, -most)


def exists(effects: Sequence[Estimate], bound: float) -> Decision:
    """Test whether any head has an effect above `bound`: HOLDS if one has, FAILS if all are below, otherwise UNDECIDED.

    For HOLDS, intervals are widened for the number of heads (Bonferroni), because the largest is picked. A head without
    an interval is undecided. The statistic is the deciding head.
    """
    if not effects:
        return Decision(UNDECIDED)
    decisions = [decided(bonferroni_widened(effect, len(effects)), bound) for effect in effects]
    if above := [decision for decision in decisions if decision.word == HOLDS]:
        return max(above, key=lambda decision: decision.clear)
    most = max(decisions, key=lambda decision: decision.statistic.value if decision.statistic else 0.0)
    # "all lie below" needs no correction: it is an intersection-union test
    if all(decided(effect, bound).word == FAILS for effect in effects):
        return decided(max(effects, key=lambda effect: effect.value), bound)
    times = [decision.times for decision in decisions if decision.word == UNDECIDED and decision.times]
    return Decision(UNDECIDED, min(times, default=None), most.statistic, bound)


def enough_heads(weights: Sequence[Estimate], bound: float, share: float) -> Decision:
    """Test whether at least a fraction `share` of the heads has a weight above `bound`. Return HOLDS if enough
    intervals are above `bound`, FAILS if too many are below, otherwise UNDECIDED."""
    decisions = [decided(weight, bound) for weight in weights]
    words = [decision.word for decision in decisions]
    required = share * len(words) - 1e-9
    above, below = words.count(HOLDS), words.count(FAILS)
    heads = max(1, len(weights))
    counted = Estimate(sum(weight.value > bound for weight in weights) / heads, above / heads, 1 - below / heads)
    if above >= required:
        return Decision(HOLDS, None, counted, share)
    if len(words) - below < required:
        return Decision(FAILS, None, counted, share)
    pairs = [(weight.value > bound, decision.times) for weight, decision in zip(weights, decisions, strict=True)]
    opened = [(up, times) for (up, times), word in zip(pairs, words, strict=True) if word == UNDECIDED]
    rising = above + sum(up for up, _ in opened) >= required
    missing = required - above if rising else len(words) - below - required
    open_times = sorted(times for up, times in opened if up == rising and times is not None)
    needed = max(1, int(missing) + (missing % 1 > 0 if rising else 1))
    return Decision(UNDECIDED, open_times[needed - 1] if len(open_times) >= needed else None, counted, share)


def within(changes: Sequence[Estimate], margin: float) -> Decision:
    """Test that all changes are small. Return HOLDS if every interval is within ±`margin`, FAILS if any interval is
    entirely outside after Bonferroni correction, otherwise UNDECIDED."""
    if not changes:
        return Decision(UNDECIDED)
    return all_of([_within(change, margin) for change in changes])


def _within(change: Estimate, margin: float) -> Decision:
    if change.low is None or change.high is None:
        return Decision(UNDECIDED, None, change, margin)
    size = Estimate(abs(change.value), max(0.0, change.low, -change.high), max(abs(change.low), abs(change.high)))
    if change.low >= -margin and change.high <= margin:
        return Decision(HOLDS, None, size, margin)
    if change.low > margin or change.high < -margin:
        return Decision(FAILS, None, size, margin)
    ends = [times_until(change, end) for end in (margin, -margin)]
    if abs(change.value) > margin:
        return Decision(UNDECIDED, ends[0] if change.value > 0 else ends[1], size, margin)
    return Decision(UNDECIDED, None if None in ends else max(ends), size, margin)  # type: ignore[type-var]


def all_of(decisions: Iterable[Decision]) -> Decision:
    """Combine decisions into one: HOLDS if all hold, FAILS if any fails after Bonferroni correction, otherwise
    UNDECIDED."""
    several = list(decisions)
    return _weakest([_of_several(decision, len(several)) for decision in several])


def _of_several(decision: Decision, several: int) -> Decision:
    """Return one of several decisions that must all hold. It fails only if it still does with its interval widened for
    the number of parts (Bonferroni)."""
    if decision.word != FAILS or decision.statistic is None or several < 2 or decision.clear >= widened(several):
        return decision
    times = (widened(several) / decision.clear) ** 2 if decision.clear else None
    return replace(decision, word=UNDECIDED, times=times)


def _weakest(decisions: Sequence[Decision]) -> Decision:
    """Return the decision that determines the outcome of several decisions that must all hold."""
    fails = [decision for decision in decisions if decision.word == FAILS]
    if fails:
        return max(fails, key=lambda decision: decision.clear)
    opened = [decision for decision in decisions if decision.word == UNDECIDED]
    if opened or not decisions:
        longest = max(opened, key=lambda decision: decision.times or math.inf, default=Decision(UNDECIDED))
        return replace(longest, word=UNDECIDED)
    return min(decisions, key=lambda decision: decision.clear)


def times_until(estimate: Estimate, zero: float) -> float | None:
    """Return the factor by which the number of examples must grow for the confidence interval to exclude `zero`. The
    estimate is assumed to stay the same."""
    return _times(estimate.value - zero, _half(estimate, above=estimate.value > zero))


def _half(estimate: Estimate, *, above: bool) -> float | None:
    """Return the half-width of the interval on the side that must shrink for the estimate to decide."""
    end = estimate.low if above else estimate.high
    return None if end is None else abs(estimate.value - end)


def _times(distance: float, half: float | None) -> float | None:
    """Return the factor by which examples must increase until half the interval is shorter than a distance."""
    if half is None or distance == 0:
        return None
    times = (half / abs(distance)) ** 2
    return max(1.0, times) if times <= MOST_TIMES else None


# ---------------------------------------------------------------- words


def said(estimate: Estimate | None, digits: int = 3) -> str:
    """Format an estimate with its confidence interval as text, such as "0.12 (0.10 to 0.14)"."""
    if estimate is None:
        return "not measured"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.{digits}g}"
    return f"{estimate.value:.{digits}g} ({estimate.low:.{digits}g} to {estimate.high:.{digits}g})"


def points(estimate: Estimate) -> str:
    """Format a change in a score as text in percentage points, such as "+1.2 (+0.3 to +2.1) points"."""
    if estimate.low is None or estimate.high is None:
        return f"{100 * estimate.value:+.1f} points"
    return f"{100 * estimate.value:+.1f} ({100 * estimate.low:+.1f} to {100 * estimate.high:+.1f}) points"


def percent(share: Estimate) -> str:
    """Format a fraction with its confidence interval in per cent as text, such as "52.3 % (50.1 to 54.4)"."""
    ends = "" if share.low is None or share.high is None else f" ({100 * share.low:.1f} to {100 * share.high:.1f})"
    return f"{100 * share.value:.1f} %{ends}"


# ---------------------------------------------------------------- over steps


def on_rows(result: StepResult) -> str:
    """Return a note if a result is cross-fitted on all train examples, otherwise ""."""
    return "The result is cross-fitted on all train examples. " if result.step.part in ON_TRAIN_ROWS.values() else ""


def untested(evidence: Evidence, part: Part, task: str | None = None) -> list[Outcome]:
    """Return the outcome UNTESTED, with the reason why a part of the report has no results."""
    return [Outcome(UNTESTED, evidence.missing(part, task), task)]


def for_each(
    part: Part, *tasks: str, swept: bool = False, loses: bool = False, starts: Sequence[str] = (), not_causal: str = ""
) -> Callable[[Callable[[Evidence, StepResult], Outcome | None]], Test]:
    """Return a decorator that applies a test to every result in one part of the report.

    Args:
        tasks: only results on these; empty for all.
        swept: results are ablations of single heads or layers, or pruning curves; uses those on all train examples if
            available.
        loses: untested if the fine-tuned checkpoint is not above chance level.
        starts: results are fine-tuning scores from these initialisations; uses those on all train examples if
            available.
        not_causal: why a decoder cannot be tested; "" if it can.

    Returns:
        A decorator. Its test gives one outcome per result, or one that says why there is none.
    """

    def decorate(test: Callable[[Evidence, StepResult], Outcome | None]) -> Test:
        @functools.wraps(test)
        def of_all(evidence: Evidence) -> list[Outcome]:
            if not_causal and evidence.causal:
                return [Outcome(UNTESTED, not_causal)]
            results = evidence.sweeps(part) if swept else evidence.of(part)
            results = evidence.tuned_from(*starts) if starts else results
            outcomes = []
            for result in (result for result in results if not tasks or result.task in tasks):
                why = nothing_to_lose(evidence, result.task) if loses else None
                outcomes.append(Outcome(UNTESTED, why, result.task) if why else test(evidence, result))
            tested = [outcome for outcome in outcomes if outcome is not None]
            return tested or untested(evidence, part, tasks[0] if tasks else None)

        return of_all

    return decorate
