"""Intervals of metrics and of their changes from influence functions.

Example i changes a metric T of n examples by its influence L_i (Hampel 1974). L has mean 0, and its standard deviation
divided by sqrt(n) is the standard error of T. If few predictions change, the sample says little about that spread, so
two unseen examples are added, one gained and one lost. For accuracy, this is the interval of Bonett and Price 2012 for
the difference of paired proportions. For skewed scores, the interval is midway between Student's t and Hall's, which
removes skewness, if that is wider. docs/results/calibration.md has simulated coverage.
"""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float, Shaped

from ..errors import InputError
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
    """A metric of several runs on the same examples, with the influence of each example on the metric.

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
    """Return accuracy, F1 of class 1 or Pearson's r of each run, with the influence of every example. Raises InputError
    for another metric."""
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
    """Return the weighted sum over runs of the change of a metric (after minus before), with its 95 % interval. All NaN
    if the metric is undefined; bounds are NaN for fewer than two examples."""
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
    """Return by how much one changed prediction changes a metric: 1 for accuracy; for F1, the change when a true
    positive becomes a false negative."""
    if name == "accuracy":
        return 1.0
    return float(np.mean([side.gained.mean() - side.lost.mean() for side in (first, then)]))


def _skewed(value: float, rows: Rows, unseen: float) -> tuple[float, float]:
    """Student's t, widened by half of what Hall's interval extends beyond it."""
    n = rows.size
    second = ((rows**2).sum() + 2 * unseen**2) / max(1, n - 2)
    lean = (rows**3).sum() / n / second**1.5 / np.sqrt(n) if second > 0 else 0.0
    error = np.sqrt(second / n)
    low, high = few_inputs.reaching(*(np.array([number]) for number in (value, error, lean, n - 1.0)))
    reach = float(scipy.special.stdtrit(n - 1, (1 + CONFIDENCE) / 2) * error)
    return (float(low[0]) + value - reach) / 2, (float(high[0]) + value + reach) / 2
