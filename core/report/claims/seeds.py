"""Variance between seeds in intervals, and the number of seeds that would decide an undecided claim."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its parts load when they are used

from ...interval import Estimate
from ...studies.tuning.records import FinetunedTask, TunedScore
from ..estimates import bonferroni_widened, mean_over
from ..measures.scores import scored
from .outcomes import FAILS, HOLDS, UNDECIDED, Decision, all_of, apart, decided

MOST_SEEDS = 100  # a plan for more seeds is not useful


@dataclass(frozen=True)
class Luck:
    """The uncertainty of a mean that is due to the choice of random seeds."""

    spread: float = 0.0
    seeds: float = 1.0
    freedom: float = 1.0
    several: int = 1

    @property
    def half(self) -> float:
        """Return the half-width of the 95 % interval due to seeds alone (Student's t, corrected for several tests)."""
        return _half(self.spread, self.seeds, self.freedom, self.several) if self.spread else 0.0


def luck_of(values: Sequence[float]) -> Luck:
    """Estimate the variation between random seeds from one value per seed. With only one value, the variation is 0."""
    if len(values) < 2:
        return Luck()
    return Luck(float(np.std(values, ddof=1)), len(values), len(values) - 1)


def with_luck(rows: Estimate, luck: Luck) -> Estimate:
    """Widen a confidence interval to include the variation between random seeds. If this variation is unknown, the
    bounds are None."""
    if math.isnan(luck.half):
        return Estimate(rows.value)
    low = None if rows.low is None else rows.value - math.hypot(rows.value - rows.low, luck.half)
    high = None if rows.high is None else rows.value + math.hypot(rows.high - rows.value, luck.half)
    return Estimate(rows.value, low, high)


def score_of(score: TunedScore, metric: str, n: int) -> tuple[Estimate, Luck]:
    """Return a fine-tuning score with its interval over dev examples, and the uncertainty due to random seeds."""
    spread, seeds = score.spread(metric), score.n or 1
    unknown = float("nan")
    luck = Luck() if seeds < 2 else Luck(unknown if spread is None else spread, seeds, seeds - 1)
    return scored(score, metric, n), luck


def over_seeds(score: TunedScore, metric: str, n: int) -> Estimate:
    """Return a fine-tuning score. Its interval covers dev examples and, with several seeds, also seeds."""
    return with_luck(*score_of(score, metric, n))


def compared(tuning: FinetunedTask, upper: str, lower: str) -> Decision | None:
    """Decide whether fine-tuning from one initialisation scores higher than from another. Return None if a score is
    missing.

    The interval covers errors over shared examples and over seeds.
    """
    metric, n = tuning.metric, tuning.rows
    upper_mean, lower_mean = tuning.mean(upper), tuning.mean(lower)
    if (
        upper_mean is None
        or lower_mean is None
        or upper_mean.of_metric(metric) is None
        or lower_mean.of_metric(metric) is None
    ):
        return None
    (rows, luck), (below, others_luck) = (score_of(score, metric, n) for score in (upper_mean, lower_mean))
    pairs = _pairs(tuning, upper, lower) if "untrained" in (upper, lower) else []
    joint_luck = luck_of(pairs) if len(pairs) > 1 else welch(luck, others_luck)
    return decided_with(rows - below, joint_luck)


def welch(first: Luck, other: Luck) -> Luck:
    """Compute the uncertainty that random seeds cause in the difference between two means (Welch's method)."""
    squares = [luck.spread**2 / luck.seeds for luck in (first, other)]
    if not any(squares):
        return Luck()
    freedom = sum(squares) ** 2 / sum(
        square**2 / luck.freedom for square, luck in zip(squares, (first, other), strict=True)
    )
    return Luck(sum(squares) ** 0.5, 1.0, freedom)


def _pairs(tuning: FinetunedTask, upper: str, lower: str) -> list[float]:
    """Return the score differences between runs with the same initial network: an untrained head is the start of the
    run with the same seed."""
    runs: list[dict[int | None, float]] = [{}, {}]
    for several, name in zip(runs, (upper, lower), strict=True):
        for run in tuning.runs:
            value = run.of_metric(tuning.metric)
            if run.initialisation == name and run.seed is not None and value is not None:
                several[run.seed] = value
    first, second = runs
    return [first[seed] - second[seed] for seed in first] if first.keys() == second.keys() else []


def decided_with(rows: Estimate, luck: Luck, zero: float = 0.0, *, more_rows: bool = True) -> Decision:
    """Decide whether an estimate is above `zero`, with an interval over examples and random seeds. If undecided,
    estimate how many more examples and seeds are needed.

    `more_rows` says whether the number of examples can be increased.
    """
    return needs(decided(with_luck(rows, luck), zero), rows, luck, zero, more_rows=more_rows)


def needs(decision: Decision, rows: Estimate, luck: Luck, zero: float, *, more_rows: bool = True) -> Decision:
    """Add to an undecided decision how many more examples and seeds it needs. Return other decisions unchanged."""
    end = rows.low if rows.value > zero else rows.high
    distance = abs(rows.value - zero)
    if decision.word != UNDECIDED or not luck.spread or end is None or not distance:
        return decision
    noise = abs(rows.value - end)
    if luck.half < distance and more_rows:
        left = distance**2 - luck.half**2
        return replace(decision, times=max(1.0, noise**2 / left))
    if noise < distance:
        return replace(decision, times=None, seeds=_seeds(luck, math.sqrt(distance**2 - noise**2)))
    times = 2 * (noise / distance) ** 2 if more_rows else None
    return replace(decision, times=times, seeds=_seeds(luck, distance / math.sqrt(2)) if more_rows else None)


def _seeds(luck: Luck, distance: float) -> int | None:
    """Return the smallest number of seeds whose half-interval is below this distance; None above MOST_SEEDS."""
    spread = luck.spread if luck.seeds > 1 else luck.spread * (luck.freedom + 1) ** 0.5
    enough = (seeds for seeds in range(2, MOST_SEEDS + 1) if _half(spread, seeds, seeds - 1, luck.several) < distance)
    return next(enough, None)


def _half(spread: float, seeds: float, freedom: float, several: int) -> float:
    return float(scipy.stats.t.ppf(1 - 0.025 / several, freedom)) * spread / seeds**0.5


# ---------------------------------------------------------------- fine-tuned several times, on the same rows


def mean_of_seeds(seeds: Sequence[Estimate]) -> tuple[Estimate, Luck]:
    """Average an estimate over random seeds evaluated on the same examples. Return the mean and the variation between
    seeds.

    The mean of interval bounds is never too narrow, whatever the dependence.
    """
    rows = mean_over(seeds) or Estimate(float("nan"))
    return rows, luck_of([seed.value for seed in seeds])


def decided_over_seeds(seeds: Sequence[Estimate], several: int = 1, zero: float = 0.0) -> Decision:
    """Decide whether a mean over random seeds is above `zero`. FAILS requires that the mean is significantly below
    `zero` after correction for `several` tests."""
    rows, luck = mean_of_seeds(seeds)
    decision = decided_with(rows, luck, zero)
    if decision.word != FAILS or several < 2:
        return decision
    wider = decided_with(bonferroni_widened(rows, several), replace(luck, several=several), zero)
    return decision if wider.word == FAILS else wider


def apart_over_seeds(upper: Sequence[Sequence[Estimate]], lower: Sequence[Sequence[Estimate]]) -> Decision:
    """Test whether every number in `upper` exceeds every number in `lower`, paired by random seed."""
    if all(len(seeds) == 1 for seeds in (*upper, *lower)):
        return apart([seeds[0] for seeds in upper], [seeds[0] for seeds in lower])
    pairs = [[above - below for above, below in zip(first, second, strict=True)] for first in upper for second in lower]
    return all_of([decided_over_seeds(pair, len(pairs)) for pair in pairs])


def both(of_each: Decision, together: Decision) -> Decision:
    """Combine two decisions: HOLDS or FAILS if the two agree, otherwise UNDECIDED."""
    if of_each.word == together.word and of_each.word != UNDECIDED:
        return of_each
    needed = next((decision for decision in (of_each, together) if decision.word == UNDECIDED), Decision(UNDECIDED))
    return replace(of_each, word=UNDECIDED, times=needed.times, seeds=needed.seeds)


def in_every_seed(decisions: Sequence[Decision]) -> Decision:
    """Combine the decisions for all seeds: HOLDS if all hold, FAILS if all fail, otherwise UNDECIDED."""
    words = {decision.word for decision in decisions}
    least = min(decisions, key=lambda decision: decision.clear)
    if len(words) == 1 and UNDECIDED not in words:
        return least
    times = [decision.times for decision in decisions if decision.word == UNDECIDED]
    differ = {HOLDS, FAILS} <= words or None in times
    return replace(least, word=UNDECIDED, times=None if differ else max(filter(None, times)), seeds=None)
