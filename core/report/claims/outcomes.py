"""What a claim's test says of one checkpoint: holds, does not hold, undecided, cannot be tested; with the numbers.

A sentence that is about data or arithmetic, not about a checkpoint, is a known error of its source and none of these.

A test is a pure function from the evidence of a checkpoint to outcomes, one a task (or one for all). "undecided":
the numbers point one way but their intervals do not exclude the other. Then it also says how many rows would decide
it, if the estimates stay where they are: intervals shrink with the square root of the rows.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.report.estimates import Estimate, among
from core.report.evidence import Evidence, StepResult
from core.report.ids import Part
from core.report.measures.scores import nothing_to_lose

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
    """A word, and for an undecided one how many times the rows would decide it; None where no number would."""

    word: OutcomeWord
    times: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What a test found. task: None where it has no one task; said: the numbers in a sentence; n and run of them;
    times: see `Decision`; statistic: what was tested, with its interval, where it is one number; margin: what it was
    tested against."""

    outcome: OutcomeWord
    said: str
    task: str | None = None
    n: int | None = None
    run: str | None = None
    times: float | None = None
    statistic: Estimate | None = None
    margin: float | None = None

    @property
    def needed(self) -> int | None:
        """How many rows would decide it."""
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
) -> Outcome:
    """The outcome of one result of a step. task: default that of the step."""
    return Outcome(decision.word, said, task or result.task, n, result.run, decision.times, statistic, margin)


# ---------------------------------------------------------------- deciding


def decided(estimate: Estimate, zero: float = 0.0) -> Decision:
    """HOLDS where the interval lies above `zero`, FAILS where it lies below, else UNDECIDED."""
    if estimate.low is not None and estimate.low > zero:
        return Decision(HOLDS)
    if estimate.high is not None and estimate.high < zero:
        return Decision(FAILS)
    return Decision(UNDECIDED, times_until(estimate, zero))


def apart(upper: Sequence[Estimate], lower: Sequence[Estimate]) -> Decision:
    """HOLDS where all of `upper` lie above all of `lower` with intervals apart, FAILS where some of `lower` lies above
    some of `upper` so, else UNDECIDED."""
    every = [*upper, *lower]
    if not upper or not lower or any(estimate.low is None or estimate.high is None for estimate in every):
        return Decision(UNDECIDED)
    decisions = [_pair(first, other) for first in upper for other in lower]
    if all(decision.word == HOLDS for decision in decisions):
        return Decision(HOLDS)
    return _all_or_one(decisions)


def _pair(one: Estimate, other: Estimate) -> Decision:
    """Whether `one` lies above `other`, with intervals apart."""
    if one.low is not None and other.high is not None and one.low > other.high:
        return Decision(HOLDS)
    if one.high is not None and other.low is not None and one.high < other.low:
        return Decision(FAILS)
    above = one.value > other.value
    halves = (_half(one, above=above), _half(other, above=not above))
    return Decision(UNDECIDED, None if None in halves else _times(one.value - other.value, sum(halves)))  # type: ignore[arg-type]


def no_loss(changes: Sequence[Estimate], most: float = MARGIN) -> Decision:
    """HOLDS where no interval reaches below -`most`, FAILS where one lies wholly below it, else UNDECIDED.

    A loss that is there but smaller than the margin is none: an interval from -0.5 to -0.1 points holds.
    """
    if not changes:
        return Decision(UNDECIDED)
    return all_of([_no_loss(change, most) for change in changes])


def _no_loss(change: Estimate, most: float) -> Decision:
    if change.high is not None and change.high < -most:
        return Decision(FAILS)
    if change.low is not None and change.low >= -most:
        return Decision(HOLDS)
    return Decision(UNDECIDED, times_until(change, -most))


def exists(effects: Sequence[Estimate], bound: float) -> Decision:
    """Of "there are heads above `bound`": HOLDS where one lies above it, FAILS where all lie below it, else UNDECIDED.

    Corrected over them (Bonferroni) for picking the largest: so many intervals are widened. A head that has no
    interval is not decided.
    """
    if not effects:
        return Decision(UNDECIDED)
    decisions = [decided(among(effect, len(effects)), bound) for effect in effects]
    words = [decision.word for decision in decisions]
    if HOLDS in words:
        return Decision(HOLDS)
    # "all lie below" is said of each at once, so no correction is taken for it: an intersection-union test
    if all(decided(effect, bound).word == FAILS for effect in effects):
        return Decision(FAILS)
    times = [decision.times for decision in decisions if decision.word == UNDECIDED and decision.times]
    return Decision(UNDECIDED, min(times, default=None))


def enough_heads(weights: Sequence[Estimate], bound: float, share: float) -> Decision:
    """HOLDS where at least a share of the heads lies above a bound, each with its interval; FAILS where that can no
    longer be reached; else UNDECIDED until enough of the open heads are decided."""
    decisions = [decided(weight, bound) for weight in weights]
    words = [decision.word for decision in decisions]
    wanted = share * len(words) - 1e-9
    above, below = words.count(HOLDS), words.count(FAILS)
    if above >= wanted:
        return Decision(HOLDS)
    if len(words) - below < wanted:
        return Decision(FAILS)
    pairs = [(weight.value > bound, decision.times) for weight, decision in zip(weights, decisions, strict=True)]
    opened = [(up, times) for (up, times), word in zip(pairs, words, strict=True) if word == UNDECIDED]
    rising = above + sum(up for up, _ in opened) >= wanted
    missing = wanted - above if rising else len(words) - below - wanted
    known = sorted(times for up, times in opened if up == rising and times is not None)
    needed = max(1, int(missing) + (missing % 1 > 0 if rising else 1))
    return Decision(UNDECIDED, known[needed - 1] if len(known) >= needed else None)


def within(changes: Sequence[Estimate], margin: float) -> Decision:
    """HOLDS where every interval lies inside -`margin` to `margin`, FAILS where one lies outside, else UNDECIDED."""
    if not changes:
        return Decision(UNDECIDED)
    return all_of([_within(change, margin) for change in changes])


def _within(change: Estimate, margin: float) -> Decision:
    if change.low is None or change.high is None:
        return Decision(UNDECIDED)
    if change.low >= -margin and change.high <= margin:
        return Decision(HOLDS)
    if change.low > margin or change.high < -margin:
        return Decision(FAILS)
    ends = [times_until(change, end) for end in (margin, -margin)]
    if abs(change.value) > margin:
        return Decision(UNDECIDED, ends[0] if change.value > 0 else ends[1])
    return Decision(UNDECIDED, None if None in ends else max(ends))  # type: ignore[type-var]


def all_of(decisions: Iterable[Decision]) -> Decision:
    """HOLDS where all hold, FAILS where one fails, else UNDECIDED until the one that takes most rows is decided."""
    several = list(decisions)
    if several and all(decision.word == HOLDS for decision in several):
        return Decision(HOLDS)
    return _all_or_one(several)


def _all_or_one(decisions: Sequence[Decision]) -> Decision:
    if any(decision.word == FAILS for decision in decisions):
        return Decision(FAILS)
    times = [decision.times for decision in decisions if decision.word == UNDECIDED]
    return Decision(UNDECIDED, None if None in times else max(times, default=None))  # type: ignore[type-var]


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
    """ "0.12 (0.10 to 0.14)"."""
    if estimate is None:
        return "not measured"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.{digits}g}"
    return f"{estimate.value:.{digits}g} ({estimate.low:.{digits}g} to {estimate.high:.{digits}g})"


def points(estimate: Estimate) -> str:
    """A change of a score in points."""
    if estimate.low is None or estimate.high is None:
        return f"{100 * estimate.value:+.1f}"
    return f"{100 * estimate.value:+.1f} ({100 * estimate.low:+.1f} to {100 * estimate.high:+.1f}) points"


# ---------------------------------------------------------------- over steps


def untested(evidence: Evidence, part: Part, task: str | None = None) -> list[Outcome]:
    """One outcome that says why."""
    return [Outcome(UNTESTED, evidence.missing(part, task), task)]


def of_each(
    evidence: Evidence, part: Part, test: Callable[[StepResult], Outcome | None], tasks: Sequence[str] = ()
) -> list[Outcome]:
    """`test` on every result of a part (of these tasks); one outcome that says why where there is none."""
    return _each(evidence, evidence.of(part), part, test, tasks)


def of_each_sweep(
    evidence: Evidence, test: Callable[[StepResult], Outcome | None], tasks: Sequence[str] = ()
) -> list[Outcome]:
    """`of_each` on sweeps of single heads, where there is one on all train rows on that one."""
    return _each(evidence, evidence.sweeps(), Part.HEADS, test, tasks)


def _each(
    evidence: Evidence,
    results: Sequence[StepResult],
    part: Part,
    test: Callable[[StepResult], Outcome | None],
    tasks: Sequence[str],
) -> list[Outcome]:
    outcomes = [test(result) for result in results if not tasks or result.task in tasks]
    known = [outcome for outcome in outcomes if outcome is not None]
    return known or untested(evidence, part, tasks[0] if tasks else None)


def of_each_loss(
    evidence: Evidence, part: Part, test: Callable[[StepResult], Outcome | None], tasks: Sequence[str] = ()
) -> list[Outcome]:
    """`of_each` for a test of losses: untested where the fine-tuned checkpoint has nothing to lose."""

    def guarded(result: StepResult) -> Outcome | None:
        why = nothing_to_lose(evidence, result.task)
        return Outcome(UNTESTED, why, result.task) if why else test(result)

    return of_each(evidence, part, guarded, tasks)
