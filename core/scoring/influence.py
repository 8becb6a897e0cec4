"""Intervals of metrics and of their changes from influence functions.

Example i changes a metric T of n examples by its influence L_i (Hampel 1974). L has mean 0, and its standard deviation
divided by sqrt(n) is the standard error of T. If few predictions change, the sample says little about that spread, so
two unseen examples are added, one gained and one lost. For accuracy, this is the interval of Bonett and Price 2012 for
the difference of paired proportions. For skewed scores, the interval is midway between Student's t and Hall's, which
removes skewness, if that is wider. docs/results/calibration.md has simulated coverage.

For several runs (seeds) on the same examples, examples and runs are samples: their variances are added, with
Satterthwaite's degrees of freedom for Student's t.
"""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float, Shaped

from ..errors import InputError
from ..interval import Interval
from . import few_inputs
from .corrections import CONFIDENCE

METRICS = ("accuracy", "f1", "pearson")
MOVED = 0.02  # a score that moves by less than this share of the largest move does not count as moved
MANY = 32  # with so many moved scores (or all), the observed spread suffices
JUMP = 2.5  # influence on Pearson's r of a score that jumps: of standardised scores, so without a unit

Rows = Shaped[np.ndarray, " row"]
Runs = Shaped[np.ndarray, "*run row"]


@dataclass(frozen=True)
class Influence:
    """The values of a metric for several runs on the same examples, and how much each example influences each value.

    Attributes:
        value: NaN if undefined.
        rows: influence of each example; the mean over examples is 0.
        gained, lost: influence of one more example that is predicted well or badly; 0 for pearson.
    """

    value: Float[np.ndarray, "*run"]
    rows: Float[np.ndarray, "*run row"]
    gained: Float[np.ndarray, "*run"]
    lost: Float[np.ndarray, "*run"]


def influence(name: str, gold: Rows, predicted: Runs) -> Influence:
    """Return the accuracy, F1 of class 1 or Pearson's r of each run. Also return the influence of every example on this
    metric. Raises InputError for any other metric."""
    gold, predicted = np.asarray(gold, dtype=float), np.asarray(predicted, dtype=float)
    if name == "accuracy":
        right = (predicted == gold).astype(float)
        value = right.mean(1)
        return Influence(value, right - value[:, None], 1 - value, -value)
    if name == "f1":
        # F = 2 H / M with hits H and named examples M: L = (2 h - F m) / mean(m)
        hits = ((predicted == 1) & (gold == 1)).astype(float)
        named = (predicted == 1).astype(float) + (gold == 1)
        hit, mean_named = hits.mean(1), np.maximum(named.mean(1), 1 / gold.size)
        value = 2 * hit / mean_named
        rows = (2 * hits - value[:, None] * named) / mean_named[:, None]
        return Influence(value, rows, (2 - 2 * value) / mean_named, -value / mean_named)
    if name == "pearson":
        # L = zx zy - r (zx^2 + zy^2) / 2 with standardised zx and zy; 0 and NaN if r is undefined.
        x, y = gold - gold.mean(), predicted - predicted.mean(-1, keepdims=True)
        spread = np.sqrt((x**2).mean() * (y**2).mean(-1, keepdims=True))
        defined = spread > 1e-12
        together = np.divide(x * y, spread, out=np.zeros_like(y), where=defined)
        squares = np.divide(y**2, (y**2).mean(-1, keepdims=True), out=np.zeros_like(y), where=defined)
        r = together.mean(-1, keepdims=True)
        rows = np.where(defined, together - r * (x**2 / max((x**2).mean(), 1e-300) + squares) / 2, 0.0)
        none = np.zeros(r.shape[:-1])
        return Influence(np.where(defined, r, np.nan)[..., 0], rows, none, none)
    raise InputError(
        f"A confidence interval can be computed for the metrics {', '.join(METRICS[:-1])} and pearson; got "
        f'"{name}". Choose one of them.'
    )


# ---------------------------------------------------------------- changes


def change_ends(
    name: str,
    gold: Rows,
    before: Rows,
    after: Runs,
    weights: Float[np.ndarray, " run"],
) -> tuple[float, float, float]:
    """Return the change in a metric (after minus before), as a weighted sum over runs, with its 95 % interval. All
    values are NaN if the metric is undefined. The bounds are also NaN for fewer than two examples."""
    first, then = influence(name, gold, np.asarray(before)[None]), influence(name, gold, after)
    value = float(weights @ (then.value - first.value[0]))
    rows = weights @ (then.rows - first.rows)
    n = rows.size
    if n < 2 or not np.isfinite(value):
        return value, np.nan, np.nan
    if name == "pearson":
        moved = np.abs(weights @ (np.asarray(after, dtype=float) - np.asarray(before, dtype=float)))
        unseen = JUMP * max(0.0, 1 - int((moved > MOVED * moved.max()).sum()) / min(MANY, n))
        low, high = _skewed(value, rows, unseen)
    else:
        unseen = float(np.sqrt((weights**2).sum()) * flip(name, first, then))
        # Student's t over the examples and two unseen ones, one gained and one lost
        centre = value * n / (n + 2)
        error = np.sqrt((rows**2).sum() + 2 * unseen**2) / (rows.size + 2)
        reach = float(scipy.special.stdtrit(rows.size - 1, (1 + CONFIDENCE) / 2) * error)
        low, high = centre - reach, centre + reach
    reach = float(np.abs(weights).sum()) * (2 if name == "pearson" else 1)
    return value, max(low, -reach), min(high, reach)


def flip(name: str, first: Influence, then: Influence) -> float:
    """Return the effect of one changed prediction on a metric, multiplied by the number of examples. For accuracy, it
    is 1. For F1, it is the effect if a true positive becomes a false negative."""
    if name == "accuracy":
        return 1.0
    return float(np.mean([side.gained.mean() - side.lost.mean() for side in (first, then)]))


def _skewed(value: float, rows: Rows, unseen: float) -> tuple[float, float]:
    """Student's t, widened by half of what Hall's interval extends beyond it."""
    n = rows.size
    second = ((rows**2).sum() + 2 * unseen**2) / max(1, n - 2)
    lean = (rows**3).sum() / n / second**1.5 / np.sqrt(n) if second > 0 else 0.0
    error = np.sqrt(second / n)
    low, high = few_inputs.wider_interval(*(np.array([number]) for number in (value, error, lean, n - 1.0)))
    reach = float(scipy.special.stdtrit(n - 1, (1 + CONFIDENCE) / 2) * error)
    return (float(low[0]) + value - reach) / 2, (float(high[0]) + value + reach) / 2


# ---------------------------------------------------------------- several runs


def mean_score(name: str, gold: Rows, predicted: Runs) -> Interval:
    """Return the mean of a metric over runs, with its 95 % interval. The interval accounts for variation between
    examples and, if there are several runs, between runs.

    Two right and two wrong examples are added (Agresti and Coull 1998), or their equivalent for F1; r uses Fisher's
    scale.
    """
    runs = influence(name, gold, np.atleast_2d(predicted))
    if name == "pearson":
        r = np.clip(runs.value, -1 + 1e-9, 1 - 1e-9)
        scaled = runs.rows / (1 - r**2)[:, None]
        low, high = _ends(float(np.arctanh(r).mean()), scaled.mean(0), np.zeros(0), np.arctanh(r))
        return Interval.of(float(runs.value.mean()), float(np.tanh(low)), float(np.tanh(high)))
    unseen = np.repeat([runs.gained.mean(), runs.lost.mean()], 2)
    centre = float(runs.value.mean() + unseen.sum() / (gold.size + unseen.size))
    low, high = _ends(centre, runs.rows.mean(0), unseen, runs.value)
    return Interval.of(float(runs.value.mean()), *np.clip([low, high], 0, 1).tolist())


def score_difference(name: str, gold: Rows, first: Runs, second: Runs) -> Interval:
    """Return the mean metric of one group of runs minus that of another group on the same examples. If both groups have
    the same number of runs, runs are paired."""
    first_influence, second_influence = (influence(name, gold, np.atleast_2d(runs)) for runs in (first, second))
    value, rows = (
        float(first_influence.value.mean() - second_influence.value.mean()),
        first_influence.rows.mean(0) - second_influence.rows.mean(0),
    )
    if np.array_equal(first, second):
        return Interval.of(value, 0.0, 0.0)
    paired = first_influence.value.size == second_influence.value.size
    runs = (
        [first_influence.value - second_influence.value] if paired else [first_influence.value, second_influence.value]
    )
    jump = 0.0 if name == "pearson" else flip(name, first_influence, second_influence)
    centre = value if name == "pearson" else value * gold.size / (gold.size + 2)
    low, high = _ends(centre, rows, np.array([jump, -jump]), *runs)
    most = 2.0 if name == "pearson" else 1.0
    return Interval.of(value, *np.clip([low, high], -most, most).tolist())


def _ends(centre: float, rows: Rows, unseen: Shaped[np.ndarray, " unseen"], *runs: np.ndarray) -> tuple[float, float]:
    """Return the interval over examples (including unseen ones) and runs; NaN for a single example."""
    n = rows.size + unseen.size
    if rows.size < 2 or not np.isfinite(centre):
        return np.nan, np.nan
    parts = [(float((rows**2).sum() + (unseen**2).sum()) / n**2, rows.size - 1)]
    parts += [(float(values.var(ddof=1)) / values.size, values.size - 1) for values in runs if values.size > 1]
    variance_sum = sum(variance for variance, _ in parts)
    if variance_sum == 0:
        return centre, centre
    freedom = variance_sum**2 / sum(variance**2 / degrees for variance, degrees in parts)
    reach = float(scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2) * np.sqrt(variance_sum))
    return centre - reach, centre + reach
