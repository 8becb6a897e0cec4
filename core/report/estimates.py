"""Estimates with 95 % intervals: means over heads, proportions, F1 and correlations. Pure functions."""

from collections.abc import Iterable

import numpy as np

from ..interval import Estimate
from ..scoring.corrections import widened
from ..scoring.intervals import fisher_interval, wilson_interval


def bonferroni_widened(estimate: Estimate, several: int) -> Estimate:
    """Widen the confidence interval of one of `several` estimates, so that all intervals together have a coverage of at
    least 95 % (Bonferroni).

    Each half is multiplied by the ratio of normal quantiles. Use this if the estimate is the largest of several.
    """
    wider = widened(several)
    low = None if estimate.low is None else estimate.value - wider * (estimate.value - estimate.low)
    high = None if estimate.high is None else estimate.value + wider * (estimate.high - estimate.value)
    return Estimate(estimate.value, low, high)


def mean_over(estimates: Iterable[Estimate]) -> Estimate | None:
    """Average estimates and their confidence bounds over heads or layers. Return None if there are no estimates.

    The interval is conservative under any dependence, because the standard deviation of a mean never exceeds the mean
    of the standard deviations.
    """
    listed = list(estimates)
    if not listed:
        return None
    lows, highs = [estimate.low for estimate in listed], [estimate.high for estimate in listed]
    return Estimate(float(np.mean([estimate.value for estimate in listed])), _mean(lows), _mean(highs))


def _mean(ends: list[float | None]) -> float | None:
    return None if any(end is None for end in ends) else float(np.mean(ends))  # type: ignore[arg-type]


def share_interval(share: float, n: int) -> Estimate:
    """Return a proportion of n examples with Wilson's 95 % confidence interval."""
    low, high = wilson_interval(np.array(round(share * n)), n)
    return Estimate(share, float(low), float(high))


def as_share(estimate: Estimate) -> Estimate:
    """Clip both bounds of the confidence interval of a proportion to the range from 0 to 1."""
    low, high = (None if end is None else min(1.0, max(0.0, end)) for end in (estimate.low, estimate.high))
    return Estimate(estimate.value, low, high)


def f1_interval(f1: float, accuracy: float, n: int) -> Estimate:
    """Return the F1 score on n examples with a 95 % confidence interval. The interval uses counts of true positives and
    errors, which are computed from F1 and accuracy."""
    wrong = n * (1 - accuracy)
    if f1 >= 1 or wrong <= 0:
        return Estimate(f1)
    hits = f1 * wrong / (2 * (1 - f1))
    inner = share_interval(hits / (hits + wrong), max(1, round(hits + wrong)))
    low, high = (None if end is None else 2 * end / (1 + end) for end in (inner.low, inner.high))
    return Estimate(f1, low, high)


def correlation_interval(r: float, n: int) -> Estimate:
    """Return Pearson's r on n examples with Fisher's 95 % confidence interval."""
    if n < 4 or abs(r) >= 1:
        return Estimate(r)
    return Estimate(r, *fisher_interval(r, n))
