"""What a claim's test says of one checkpoint: holds, does not hold, undecided, cannot be tested; with the numbers.

A test is a pure function from the evidence of a checkpoint to outcomes, one a task (or one for all). "undecided":
the numbers point one way but their intervals do not exclude the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.report.evidence import Estimate, Evidence, Found
from core.report.measures.scores import nothing_to_lose
from core.studies.study import Row

HOLDS, FAILS, UNDECIDED, UNTESTED = "holds", "does not hold", "undecided", "cannot be tested"


@dataclass(frozen=True)
class Outcome:
    """What a test found. task: None where it has no one task; said: the numbers in a sentence; n and run of them."""

    outcome: str
    said: str
    task: str | None = None
    n: int | None = None
    run: str | None = None


Test = Callable[[Evidence], list[Outcome]]


def decided(estimate: Estimate, zero: float = 0.0) -> str:
    """HOLDS where the interval lies above `zero`, FAILS where it lies below, else UNDECIDED."""
    if estimate.low is not None and estimate.low > zero:
        return HOLDS
    return FAILS if estimate.high is not None and estimate.high < zero else UNDECIDED


def apart(upper: Sequence[Estimate], lower: Sequence[Estimate]) -> str:
    """HOLDS where all of `upper` lie above all of `lower` with intervals apart, FAILS where some of `lower` lies above
    some of `upper` so, else UNDECIDED."""
    lows, highs = [one.low for one in upper], [one.high for one in upper]
    other_lows, other_highs = [one.low for one in lower], [one.high for one in lower]
    if None in (*lows, *highs, *other_lows, *other_highs) or not upper or not lower:
        return UNDECIDED
    if min(lows) > max(other_highs):  # type: ignore[type-var]
        return HOLDS
    return FAILS if min(highs) < max(other_lows) else UNDECIDED  # type: ignore[type-var]


def no_loss(changes: Sequence[Estimate], most: float = 0.01) -> str:
    """HOLDS where no interval reaches below -`most`, FAILS where one lies below 0, else UNDECIDED: too few rows."""
    if any(one.high is not None and one.high < 0 for one in changes):
        return FAILS
    return HOLDS if changes and all(one.low is not None and one.low >= -most for one in changes) else UNDECIDED


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


def untested(evidence: Evidence, part: str, task: str | None = None) -> list[Outcome]:
    """One outcome that says why."""
    return [Outcome(UNTESTED, evidence.missing(part, task), task)]


def of_each(
    evidence: Evidence, part: str, test: Callable[[Found], Outcome | None], tasks: Sequence[str] = ()
) -> list[Outcome]:
    """`test` on every step of a part (of these tasks); one outcome that says why where there is none."""
    found = [test(one) for one in evidence.of(part) if not tasks or one.step.task in tasks]
    return [one for one in found if one is not None] or untested(evidence, part, tasks[0] if tasks else None)


def of_each_loss(evidence: Evidence, part: str, test: Callable[[Found], Outcome | None]) -> list[Outcome]:
    """`of_each` for a test of losses: untested where the fine-tuned checkpoint has nothing to lose."""

    def guarded(one: Found) -> Outcome | None:
        why = nothing_to_lose(evidence, one.step.task)
        return Outcome(UNTESTED, why, one.step.task) if why else test(one)

    return of_each(evidence, part, guarded)


def number(row: Row, metric: str = "") -> Estimate:
    """value, low and high of a row; with a metric, of its change."""
    names = (f"{metric}_change", f"{metric}_low", f"{metric}_high") if metric else ("value", "low", "high")
    return Estimate(*(row.get(name) for name in names))  # type: ignore[arg-type]
