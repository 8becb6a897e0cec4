"""What a claim's test says of one checkpoint: holds, does not hold, undecided, cannot be tested; with the numbers.

A sentence that is about data or arithmetic, not about a checkpoint, is a known error of its source and none of these.

A test is a pure function from the evidence of a checkpoint to outcomes, one a task (or one for all). "undecided":
the numbers point one way but their intervals do not exclude the other. Then it also says how many rows would decide
it, if the estimates stay where they are: intervals shrink with the square root of the rows.
"""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ...scoring.corrections import widened
from ...studies.estimate import Estimate
from ..estimates import bonferroni_widened
from ..evidence import ON_TRAIN_ROWS, Evidence, StepResult
from ..ids import Part
from ..measures.scores import nothing_to_lose

MARGIN = 0.01  # a loss below a point is none
MOST_TIMES = 10_000  # so many times the rows are no plan


class OutcomeWord(StrEnum):
    """The four words of a decision, and one for sentences that no checkpoint can decide."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    UNTESTED = "cannot be tested"
    KNOWN_ERROR = "known error"


HOLDS, FAILS, UNDECIDED, UNTESTED, KNOWN_ERROR = OutcomeWord


@dataclass(frozen=True)
class Decision:
    """A word of a test, and what it hangs on.

    Attributes:
        times: of an undecided one how many times the rows would decide it; None where no number would.
        statistic: the number that decided, with its interval (of several parts the one that the word hangs on); None
            where it is not one number.
        seeds: how many of fine-tuning would decide it, where more rows would not.
    """

    word: OutcomeWord
    times: float | None = None
    statistic: Estimate | None = None
    margin: float | None = None
    seeds: int | None = None

    @property
    def clear(self) -> float:
        """How many halves of its interval the statistic lies away from the margin; 0 where nobody knows."""
        if self.statistic is None or self.margin is None:
            return 0.0
        half = _half(self.statistic, above=self.statistic.value > self.margin)
        distance = abs(self.statistic.value - self.margin)
        return 0.0 if half is None else distance / half if half else math.inf if distance else 0.0


@dataclass(frozen=True)
class Outcome:
    """What a test found.

    Attributes:
        task: None where it has no one task.
        times: see `Decision`.
        statistic: what was tested, with its interval; None where it is not one number.
        seeds: of fine-tuning behind it, where the rows say so.
        needed_seeds: how many of each would decide it, where more rows alone would not.
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
        """How many rows would decide it; None where that is not known."""
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
    """The outcome of one result of a step.

    Args:
        task: None for that of the step.
        statistic: what was tested; None for that of the decision.
        margin: what it was tested against; None for that of the decision.
    """
    statistic = decision.statistic if statistic is None else statistic
    margin = decision.margin if margin is None else margin
    about = (task or result.task, n, result.run, decision.times, statistic, margin, seeds)
    return Outcome(decision.word, said, *about, decision.seeds)


# ---------------------------------------------------------------- deciding


def decided(estimate: Estimate, zero: float = 0.0) -> Decision:
    """HOLDS where the interval lies above `zero`, FAILS where it lies below, else UNDECIDED."""
    if estimate.low is not None and estimate.low > zero:
        return Decision(HOLDS, None, estimate, zero)
    if estimate.high is not None and estimate.high < zero:
        return Decision(FAILS, None, estimate, zero)
    return Decision(UNDECIDED, times_until(estimate, zero), estimate, zero)


def gains(estimate: Estimate, zero: float = 0.0) -> Decision:
    """Of "it raises it": HOLDS where the interval lies above `zero`, FAILS where it ends before a gain of MARGIN (what
    is surely smaller than a point is none), else UNDECIDED until either is so."""
    decision = decided(estimate, zero)
    if decision.word == HOLDS or estimate.high is None or decision.word == FAILS:
        return decision
    if estimate.high < zero + MARGIN:
        return Decision(FAILS, None, estimate, zero + MARGIN)
    none = times_until(estimate, zero + MARGIN) if estimate.value < zero + MARGIN else None
    return replace(decision, times=min(filter(None, (decision.times, none)), default=None))


def apart(upper: Sequence[Estimate], lower: Sequence[Estimate]) -> Decision:
    """HOLDS where all of `upper` lie above all of `lower` with intervals apart, FAILS where some of `lower` lies above
    some of `upper` so, else UNDECIDED."""
    estimates = [*upper, *lower]
    if not upper or not lower or any(estimate.low is None or estimate.high is None for estimate in estimates):
        return Decision(UNDECIDED)
    return _weakest([_pair(above, below) for above in upper for below in lower])


def _pair(upper: Estimate, lower: Estimate) -> Decision:
    """Whether `upper` lies above `lower`, with intervals apart: the interval of their difference leaves 0 out."""
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
    """HOLDS where no interval reaches below -`most`, FAILS where one lies wholly below it, else UNDECIDED.

    A loss that is there but smaller than the margin is none: an interval from -0.5 to -0.1 points holds.
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
    """Of "there are heads above `bound`": HOLDS where one lies above it, FAILS where all lie below it, else UNDECIDED.

    Corrected over them (Bonferroni) for picking the largest: so many intervals are widened.

    Args:
        effects: one a head; a head that has no interval is not decided.
        bound: in the effects' unit.

    Returns:
        The decision, its statistic the head that it hangs on; UNDECIDED without any effect.
    """
    if not effects:
        return Decision(UNDECIDED)
    decisions = [decided(bonferroni_widened(effect, len(effects)), bound) for effect in effects]
    if above := [decision for decision in decisions if decision.word == HOLDS]:
        return max(above, key=lambda decision: decision.clear)
    most = max(decisions, key=lambda decision: decision.statistic.value if decision.statistic else 0.0)
    # "all lie below" is said of each at once, so no correction is taken for it: an intersection-union test
    if all(decided(effect, bound).word == FAILS for effect in effects):
        return decided(max(effects, key=lambda effect: effect.value), bound)
    times = [decision.times for decision in decisions if decision.word == UNDECIDED and decision.times]
    return Decision(UNDECIDED, min(times, default=None), most.statistic, bound)


def enough_heads(weights: Sequence[Estimate], bound: float, share: float) -> Decision:
    """HOLDS where at least a share of the heads lies above a bound, each with its interval; FAILS where that can no
    longer be reached; else UNDECIDED until enough of the open heads are decided."""
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
    """HOLDS where every interval lies inside -`margin` to `margin`, FAILS where one lies outside, else UNDECIDED."""
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
    """HOLDS where all hold, FAILS where one fails, else UNDECIDED until the one that takes most rows is decided."""
    several = list(decisions)
    return _weakest([_of_several(decision, len(several)) for decision in several])


def _of_several(decision: Decision, several: int) -> Decision:
    """That one of several parts fails is said only where it does with its interval widened for so many (Bonferroni)."""
    if decision.word != FAILS or decision.statistic is None or several < 2 or decision.clear >= widened(several):
        return decision
    times = (widened(several) / decision.clear) ** 2 if decision.clear else None
    return replace(decision, word=UNDECIDED, times=times)


def _weakest(decisions: Sequence[Decision]) -> Decision:
    """The part that the word of all hangs on."""
    fails = [decision for decision in decisions if decision.word == FAILS]
    if fails:
        return max(fails, key=lambda decision: decision.clear)
    opened = [decision for decision in decisions if decision.word == UNDECIDED]
    if opened or not decisions:
        longest = max(opened, key=lambda decision: decision.times or math.inf, default=Decision(UNDECIDED))
        return replace(longest, word=UNDECIDED)
    return min(decisions, key=lambda decision: decision.clear)


def times_until(estimate: Estimate, zero: float) -> float | None:
    """How many times the rows until an interval leaves `zero` out, the estimate staying where it is."""
    return _times(estimate.value - zero, _half(estimate, above=estimate.value > zero))


def _half(estimate: Estimate, *, above: bool) -> float | None:
    """The half of the interval that must shrink for the estimate to lie above (or below) something."""
    end = estimate.low if above else estimate.high
    return None if end is None else abs(estimate.value - end)


def _times(distance: float, half: float | None) -> float | None:
    """How many times the rows until half an interval is shorter than a distance: (half / distance)^2."""
    if half is None or distance == 0:
        return None
    times = (half / abs(distance)) ** 2
    return max(1.0, times) if times <= MOST_TIMES else None


# ---------------------------------------------------------------- words


def said(estimate: Estimate | None, digits: int = 3) -> str:
    """An estimate in words: "0.12 (0.10 to 0.14)"; without its interval where there is none, "not measured" for
    None."""
    if estimate is None:
        return "not measured"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.{digits}g}"
    return f"{estimate.value:.{digits}g} ({estimate.low:.{digits}g} to {estimate.high:.{digits}g})"


def points(estimate: Estimate) -> str:
    """A change of a score in points: "+1.2 (+0.3 to +2.1) points"."""
    if estimate.low is None or estimate.high is None:
        return f"{100 * estimate.value:+.1f}"
    return f"{100 * estimate.value:+.1f} ({100 * estimate.low:+.1f} to {100 * estimate.high:+.1f}) points"


def percent(share: Estimate) -> str:
    """ "52.3 % (50.1 to 54.4)"."""
    ends = "" if share.low is None or share.high is None else f" ({100 * share.low:.1f} to {100 * share.high:.1f})"
    return f"{100 * share.value:.1f} %{ends}"


# ---------------------------------------------------------------- over steps


def on_rows(result: StepResult) -> str:
    """The beginning of a sentence, where each train row was tested by a model that never saw it; else ""."""
    return "cross-fitted on all train rows: " if result.step.part in ON_TRAIN_ROWS.values() else ""


def untested(evidence: Evidence, part: Part, task: str | None = None) -> list[Outcome]:
    """One outcome, UNTESTED, that says why a part has no results."""
    return [Outcome(UNTESTED, evidence.missing(part, task), task)]


def for_each(
    part: Part, *tasks: str, swept: bool = False, loses: bool = False, starts: Sequence[str] = (), not_causal: str = ""
) -> Callable[[Callable[[Evidence, StepResult], Outcome | None]], Test]:
    """Make a test of one result the test of every result of a part.

    Args:
        tasks: only results on these; none for all.
        swept: they are sweeps of single heads, or layers, or pruning curves; where there is one on all train rows, that
            one.
        loses: it is a test of losses, untested where the fine-tuned checkpoint has nothing to lose.
        starts: they are scores of fine-tuning from these initialisations; where there are such on all train rows,
            those.
        not_causal: why a decoder cannot be tested; "" where it can.

    Returns:
        A decorator. The test it makes gives an outcome a result, or one that says why where there is none.
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
