"""Metrics of several runs (seeds) on the same examples: means with intervals over examples and runs, paired
differences.

Examples and runs are samples: their variances are added, with Satterthwaite's degrees of freedom for Student's t.
"""

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Shaped

from ..interval import Interval
from .corrections import CONFIDENCE
from .influence import flip, influence

Rows = Shaped[np.ndarray, " row"]
Runs = Shaped[np.ndarray, "run row"]


def score(name: str, gold: Rows, predicted: Runs) -> Interval:
    """Return the mean metric of several runs, with an interval over examples and, if there are several runs, over runs.

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


def difference(name: str, gold: Rows, first: Runs, second: Runs) -> Interval:
    """Return the mean metric of some runs minus that of other runs on the same examples. Equal numbers of runs are
    paired."""
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
