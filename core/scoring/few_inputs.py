"""Means of few inputs: intervals and p that hold for skewed and sparse values too.

Student's t is right for bell-shaped values. For skewed ones it errs on one side, so it is used together with the t
whose skewness is taken out (Hall 1992, "On the removal of skewness by transformation"): an interval reaches as far as
either of the two, a p is the larger. Both count only inputs whose value is not 0 (an input on which nothing changed
says nothing of the spread of those that did), p with a third of their degrees of freedom: corrected over heads it is
read far in the tail, where a few skewed inputs mislead most. docs/results/few-inputs.md has the simulated error rates.
"""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float, Shaped

FEWEST = 12  # inputs with a value that is not 0, below which there is no p
LEVEL = 0.95
ZERO = 1e-7  # smaller differences of float32 weights are rounding
TAIL = 3  # what the degrees of freedom are divided by for a p

Cells = Shaped[np.ndarray, "*cell"]


@dataclass(frozen=True)
class Spread:
    """How far a mean can be trusted, per cell.

    Attributes:
        error: standard error, in the values' unit; 0 where values differ by rounding alone, NaN for fewer than two.
        lean: skewness of the values over the root of their number.
        different: how many inputs (or groups of inputs) have a value that is not 0.
        sign: 1 where no value is below 0 and some above, -1 where none is above and some below, else 0.
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
    """The spread of a mean (or ratio of sums) from what each unit adds to it.

    Args:
        values: of each unit; what is not used may be NaN.
        used: which units have one.
        mean: of the values, over units used.
        unit_means: the units' own means, where values are not these (a ratio's): they say which differ from 0.
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
    """The 95 % interval of a mean.

    It stays on the side of 0 on which all inputs lie (weights are never below 0), and is [0, 0] where all are 0.

    Returns:
        Lower and upper end, in the values' unit; NaN where one input alone differs from 0, or there are fewer than two.
    """
    low, high = reaching(mean, spread.error, spread.lean, np.maximum(spread.different - 1, 1))
    low = np.where(spread.sign > 0, np.maximum(low, 0.0), low)
    high = np.where(spread.sign < 0, np.minimum(high, 0.0), high)
    alone = (spread.different == 1) | ~np.isfinite(spread.error)
    return np.where(alone, np.nan, low), np.where(alone, np.nan, high)


def reaching(mean: Cells, error: Cells, lean: Cells, degrees: Cells) -> tuple[Cells, Cells]:
    """The 95 % interval that reaches as far as Student's or Hall's, the one whose skewness is taken out.

    Args:
        lean: skewness of the values over the root of their number.

    Returns:
        Lower and upper end, in the values' unit.
    """
    with np.errstate(invalid="ignore"):
        far = scipy.special.stdtrit(degrees, (1 + LEVEL) / 2)
        low = mean - error * np.maximum(far, _unbent(far, lean))
        high = mean + error * np.maximum(far, -_unbent(-far, lean))
    return low, high


def p_above(mean: Cells, spread: Spread) -> Cells:
    """One-sided p that the mean is not above 0.

    Where all inputs have the same value it is that of the sign test, 1 / 2^inputs.

    Returns:
        *Range:* 0 to 1; NaN with fewer than FEWEST inputs that differ from 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        t = mean / spread.error
        freedom = np.maximum((spread.different - 1) / TAIL, 1)
        p = np.maximum(scipy.special.stdtr(freedom, -t), scipy.special.stdtr(freedom, -_bent(t, spread.lean)))
    at_mean = np.where(mean > 0, 0.5**spread.different, 1.0)
    is_testable = np.isfinite(mean) & (spread.different >= FEWEST)
    return np.where(is_testable, np.where(spread.error > 0, p, at_mean), np.nan)


def p_either(mean: Cells, spread: Spread) -> Cells:
    """Two-sided p that the mean is 0.

    Returns:
        *Range:* 0 to 1; NaN with fewer than FEWEST inputs that differ from 0.
    """
    below = Spread(spread.error, -spread.lean, spread.different, -spread.sign)
    return np.minimum(1.0, 2 * np.minimum(p_above(mean, spread), p_above(-mean, below)))


def mean_interval(
    values: Float[np.ndarray, "input cell"],
) -> tuple[Float[np.ndarray, " cell"], Float[np.ndarray, " cell"]]:
    """The 95 % interval of the mean over inputs.

    Returns:
        Lower and upper end, in the values' unit; NaN for fewer than two inputs, and where one alone differs from 0.
    """
    if len(values) < 2:
        nothing = np.full(values.shape[-1], np.nan)
        return nothing, nothing
    mean = values.mean(0, dtype=np.float64)
    return ends(mean, spread_of(values.astype(np.float64), np.ones(values.shape, dtype=bool), mean))


def _bent(t: Cells, lean: Cells) -> Cells:
    """Hall's transformation of t: nearer to Student's law where the values are skewed."""
    return t + lean * t**2 / 3 + lean**2 * t**3 / 27 + lean / 6


def _unbent(bent: Cells, lean: Cells) -> Cells:
    """The t that Hall's transformation takes to this value."""
    safe_lean = np.where(np.abs(lean) < 1e-6, 1.0, lean)
    exact = 3 * (np.cbrt(1 + safe_lean * (bent - safe_lean / 6)) - 1) / safe_lean
    return np.where(np.abs(lean) < 1e-6, bent, exact)
