"""A number with its 95% interval, and intervals of means over heads, shares, F1 and correlations. Pure functions."""

from collections.abc import Iterable

import numpy as np

from ..scoring.chance import fisher_interval
from ..scoring.corrections import widened
from ..scoring.intervals import wilson_interval
from ..studies.estimate import Estimate


def bonferroni_widened(estimate: Estimate, several: int) -> Estimate:
    """An estimate with the interval that holds for all of `several` at once (Bonferroni), each half widened by the
    ratio of the normal quantiles: for reading off the largest of them."""
    wider = widened(several)
    low = None if estimate.low is None else estimate.value - wider * (estimate.value - estimate.low)
    high = None if estimate.high is None else estimate.value + wider * (estimate.high - estimate.value)
    return Estimate(estimate.value, low, high)


def mean_over(estimates: Iterable[Estimate]) -> Estimate | None:
    """Mean over heads (or layers) of a number and of both ends of its interval; None without any.

    The mean of the ends is at least as wide as the interval of the mean, whatever heads have in common, because the
    standard deviation of a mean never exceeds the mean of the standard deviations.
    """
    listed = list(estimates)
    if not listed:
        return None
    lows, highs = [estimate.low for estimate in listed], [estimate.high for estimate in listed]
    return Estimate(float(np.mean([estimate.value for estimate in listed])), _mean(lows), _mean(highs))


def _mean(ends: list[float | None]) -> float | None:
    return None if any(end is None for end in ends) else float(np.mean(ends))  # type: ignore[arg-type]


def share_interval(share: float, n: int) -> Estimate:
    """A share of n rows with Wilson's interval."""
    low, high = wilson_interval(np.array(round(share * n)), n)
    return Estimate(share, float(low), float(high))


def as_share(estimate: Estimate) -> Estimate:
    """An estimate with both ends of its interval cut to 0 and 1."""
    low, high = (None if end is None else min(1.0, max(0.0, end)) for end in (estimate.low, estimate.high))
    return Estimate(estimate.value, low, high)


def f1_interval(f1: float, accuracy: float, n: int) -> Estimate:
    """F1 of n rows with an interval: F1 = 2J / (1 + J), and J = TP / (TP + FP + FN) is a share of rows.

    The counts follow from F1 and accuracy: FP + FN = n (1 - accuracy), and TP = F1 (FP + FN) / (2 (1 - F1)).
    """
    wrong = n * (1 - accuracy)
    if f1 >= 1 or wrong <= 0:
        return Estimate(f1)
    hits = f1 * wrong / (2 * (1 - f1))
    inner = share_interval(hits / (hits + wrong), max(1, round(hits + wrong)))
    ends = [2 * end / (1 + end) for end in (inner.low, inner.high) if end is not None]
    return Estimate(f1, *ends)


def correlation_interval(r: float, n: int) -> Estimate:
    """Pearson's r of n rows with Fisher's interval."""
    if n < 4 or abs(r) >= 1:
        return Estimate(r)
    return Estimate(r, *fisher_interval(r, n))
