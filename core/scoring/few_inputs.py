"""Intervals and p values of means over few inputs, also for skewed and sparse values.

Student's t assumes symmetric values. For skewed values, it is combined with a t without skewness (Hall 1992, "On the
removal of skewness by transformation"): intervals cover both, and p is the larger one. Both count only inputs with a
nonzero value. p uses a third of their degrees of freedom, because after correction over heads it depends on the far
tail, where few skewed inputs mislead most. docs/results/few-inputs.md has simulated error rates.
"""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float, Shaped

from .corrections import CONFIDENCE

FEWEST = 12  # with fewer inputs whose value is not 0, there is no p
ZERO = 1e-7  # smaller differences of float32 weights are rounding
TAIL = 3  # what the degrees of freedom are divided by for a p

Cells = Shaped[np.ndarray, "*cell"]


@dataclass(frozen=True)
class Spread:
    """The standard error and skewness of a mean over few inputs, such as the mean score of each head.

    Attributes:
        error: standard error; 0 if values differ only by rounding, NaN for fewer than two.
        lean: skewness of the values divided by the square root of their number.
        different: number of inputs (or groups of inputs) with a nonzero value.
        sign: 1 if no value is negative and some are positive, -1 for the reverse, otherwise 0.
    """

    error: Float[np.ndarray, "*cell"]
    lean: Float[np.ndarray, "*cell"]
    different: Float[np.ndarray, "*cell"]
    sign: Float[np.ndarray, "*cell"]


def spread_of(
    values: Float[np.ndarray, " unit *cell"],
    used: Shaped[np.ndarray, " unit *cell"],
    mean: Float[np.ndarray, "*cell"],
    unit_means: Float[np.ndarray, " unit *cell"] | None = None,
) -> Spread:
    """Return the standard error and skewness of a mean, or of a ratio of sums, from one value per input.

    Args:
        values: may be NaN where not used.
        mean: over used units.
        unit_means: means of the units, if they differ from `values` (for ratios); they decide which units are nonzero.
    """
    unit_means = values if unit_means is None else unit_means
    n = used.sum(0).astype(float)
    away = np.where(used, values - mean, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = away * away
        second, third = squares.sum(0), (squares * away).sum(0)  # away**3 would take ten times as long
        error = np.sqrt(second / (n * (n - 1)))
        skewness = third * np.sqrt(n) / second**1.5 * np.sqrt(n * (n - 1)) / (n - 2)
    flat = error <= ZERO * np.maximum(1.0, np.abs(mean))
    lean = np.where(flat | ~np.isfinite(skewness), 0.0, skewness) / np.sqrt(np.maximum(n, 1))
    different = (used & (np.abs(unit_means) > ZERO)).sum(0).astype(float)
    positive, negative = ((used & (sign * unit_means > ZERO)).any(0) for sign in (1, -1))
    return Spread(np.where(flat, 0.0, error), lean, different, positive.astype(float) - negative.astype(float))


def ends(mean: Cells, spread: Spread) -> tuple[Cells, Cells]:
    """Return the bounds of the 95 % interval of a mean; NaN for fewer than two inputs or exactly one nonzero value. If
    all nonzero values have the same sign, the interval does not cross 0. If all values are 0, it is [0, 0]."""
    low, high = wider_interval(mean, spread.error, spread.lean, np.maximum(spread.different - 1, 1))
    low = np.where(spread.sign > 0, np.maximum(low, 0.0), low)
    high = np.where(spread.sign < 0, np.minimum(high, 0.0), high)
    alone = (spread.different == 1) | ~np.isfinite(spread.error)
    return np.where(alone, np.nan, low), np.where(alone, np.nan, high)


def wider_interval(mean: Cells, error: Cells, lean: Cells, degrees: Cells) -> tuple[Cells, Cells]:
    """Return the smallest 95 % interval that contains both Student's and Hall's interval. Hall's interval corrects for
    skewness. `lean` is the skewness divided by the square root of the number of values."""
    with np.errstate(invalid="ignore"):
        far = scipy.special.stdtrit(degrees, (1 + CONFIDENCE) / 2)
        low = mean - error * np.maximum(far, _unbent(far, lean))
        high = mean + error * np.maximum(far, -_unbent(-far, lean))
    return low, high


def p_above(mean: Cells, spread: Spread) -> Cells:
    """Return the one-sided p value for the null hypothesis that a mean is at most 0; NaN for fewer than FEWEST nonzero
    values. If all inputs have the same positive value, p is 1 / 2^inputs (sign test)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = mean / spread.error
        freedom = np.maximum((spread.different - 1) / TAIL, 1)
        p = np.maximum(scipy.special.stdtr(freedom, -t), scipy.special.stdtr(freedom, -_bent(t, spread.lean)))
    at_mean = np.where(mean > 0, 0.5**spread.different, 1.0)
    is_testable = np.isfinite(mean) & (spread.different >= FEWEST)
    return np.where(is_testable, np.where(spread.error > 0, p, at_mean), np.nan)


def p_either(mean: Cells, spread: Spread) -> Cells:
    """Return the two-sided p value for the null hypothesis that a mean is 0; NaN for fewer than FEWEST nonzero
    values."""
    below = Spread(spread.error, -spread.lean, spread.different, -spread.sign)
    return np.minimum(1.0, 2 * np.minimum(p_above(mean, spread), p_above(-mean, below)))


def mean_interval(
    values: Float[np.ndarray, "input cell"],
) -> tuple[Float[np.ndarray, " cell"], Float[np.ndarray, " cell"]]:
    """Return the 95 % interval of the mean over inputs; NaN for fewer than two inputs or exactly one nonzero value."""
    if len(values) < 2:
        nothing = np.full(values.shape[-1], np.nan)
        return nothing, nothing
    mean = values.mean(0, dtype=np.float64)
    return ends(mean, spread_of(values.astype(np.float64), np.ones(values.shape, dtype=bool), mean))


def _bent(t: Cells, lean: Cells) -> Cells:
    """Hall's transformation of t, which is closer to Student's distribution for skewed values."""
    return t + lean * t**2 / 3 + lean**2 * t**3 / 27 + lean / 6


def _unbent(bent: Cells, lean: Cells) -> Cells:
    safe_lean = np.where(np.abs(lean) < 1e-6, 1.0, lean)
    exact = 3 * (np.cbrt(1 + safe_lean * (bent - safe_lean / 6)) - 1) / safe_lean
    return np.where(np.abs(lean) < 1e-6, bent, exact)
