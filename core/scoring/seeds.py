"""Sources of variance between runs with three seeds crossed in a Latin square, and stability of head rankings.

Run (i, j) of a square of side k has the first factor at level i, the second at j and the third at (i + j) mod k. Each
pair of levels of two factors occurs once, so k x k runs separate three main effects (Fisher 1925). The part of an
interaction that follows (i + j) mod k is counted as the third factor's effect; the remainder is in the residual. Dodge
et al. 2020 crossed two of the three.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from .corrections import CONFIDENCE

FEWEST_RUNS = 5  # for an interval of what they share


@dataclass(frozen=True)
class VarianceSource:
    """One factor's part of the variance of scores, or the residual.

    The residual has only the first three fields. If all scores are equal, `share` and `deviation` are None.

    Attributes:
        share: of the sum of squares.
        by_chance: expected share of a factor without an effect.
        deviation: standard deviation added by the factor, in units of the score; 0 if below chance.
        variance: that deviation squared, as a fraction of itself and the residual's.
        low, high: its exact 95 % interval for normal scores (Searle et al. 1992, section 3.6).
    """

    share: float | None
    by_chance: float
    deviation: float | None
    variance: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


def square(side: int) -> list[tuple[int, int, int]]:
    """Return the levels of the three factors in each run. Raises ValueError for a side below 3, without a residual."""
    if side < 3:
        raise ValueError(
            f"The side of a Latin square must be at least 3 to have a residual; got {side}. Choose a larger side."
        )
    return [(i, j, (i + j) % side) for i in range(side) for j in range(side)]


def sources(scores: Float[np.ndarray, " run"], side: int) -> list[VarianceSource]:
    """Return the three factors' parts of the variance of the scores, then the residual.

    scores: in the order of `square`. Raises ValueError if the side is below 3, or the number of scores is wrong.
    """
    levels, scores = np.array(square(side)), np.asarray(scores, float)
    if scores.shape != (side * side,):
        raise ValueError(
            f"A Latin square of side {side} must have {side * side} scores; got the shape "
            f"{scores.shape}. Give one score for each run."
        )
    freedom, left = side - 1, (side - 1) * (side - 2)
    chance = [freedom / (side**2 - 1)] * 3 + [left / (side**2 - 1)]
    total = float(((scores - scores.mean()) ** 2).sum())
    if total <= 1e-12 * max(1.0, float(np.abs(scores).max()) ** 2):
        return [VarianceSource(None, expected, None) for expected in chance]
    squares = [_between(scores, levels[:, factor], side) for factor in range(3)]
    residual = max(0.0, total - sum(squares))
    mains = [_main(part, residual, side, total, chance[0]) for part in squares]
    return [*mains, VarianceSource(residual / total, chance[3], float(np.sqrt(residual / left)))]


def _between(scores: np.ndarray, levels: np.ndarray, side: int) -> float:
    means = np.array([scores[levels == level].mean() for level in range(side)])
    return float(side * ((means - scores.mean()) ** 2).sum())


def _main(part: float, residual: float, side: int, total: float, chance: float) -> VarianceSource:
    """A factor, from its sum of squares and the residual's."""
    freedom, left = side - 1, (side - 1) * (side - 2)
    mean, noise = part / freedom, residual / left
    ratio = mean / noise if noise > 0 else np.inf
    tail = (1 - CONFIDENCE) / 2
    ends = [max(0.0, (ratio / stats.f.ppf(quantile, freedom, left) - 1) / side) for quantile in (1 - tail, tail)]
    component = max(0.0, (mean - noise) / side)
    low, high = (1.0 if np.isinf(end) else float(end / (1 + end)) for end in ends)
    variance = component / (component + noise) if component + noise > 0 else 0.0
    return VarianceSource(
        part / total, chance, float(np.sqrt(component)), variance, low, high, float(stats.f.sf(ratio, freedom, left))
    )


# ---------------------------------------------------------------- the top heads


@dataclass(frozen=True)
class Overlap:
    """The fraction of top heads that two rankings share.

    Attributes:
        value: mean over pairs of runs.
        low, high: 95 % interval over runs; NaN for fewer than five runs.
    """

    value: float
    low: float
    high: float
    pairs: int


def top_heads(values: Float[np.ndarray, "run head"], top: int) -> Bool[np.ndarray, "run head"]:
    """Return True for the `top` heads of each run with the highest values; the first ones in a tie."""
    order = np.argsort(-values, axis=1, kind="stable")[:, :top]
    chosen = np.zeros(values.shape, bool)
    np.put_along_axis(chosen, order, True, axis=1)
    return chosen


def by_chance(heads: int, top: int) -> float:
    """Return the expected fraction that two random choices of `top` among `heads` share."""
    return top / heads


def overlap(chosen: Bool[np.ndarray, "run head"], pairs: Sequence[tuple[int, int]] | None = None) -> Overlap:
    """Return the mean fraction of shared top heads over pairs of runs.

    Student's interval on the jackknife over runs, because pairs that share a run are dependent; none for fewer than
    FEWEST_RUNS runs. pairs: indices of compared runs; None: all pairs.
    """
    runs, top = len(chosen), int(chosen[0].sum())
    pairs = [(i, j) for i in range(runs) for j in range(i)] if pairs is None else pairs
    shared = np.array([(chosen[i] & chosen[j]).sum() / top for i, j in pairs])
    value = float(shared.mean())
    without = [shared[[run not in pair for pair in pairs]] for run in range(runs)]
    means = np.array([overlaps.mean() for overlaps in without if len(overlaps)])
    if len(means) < FEWEST_RUNS:
        return Overlap(value, np.nan, np.nan, len(pairs))
    error = float(np.sqrt((len(means) - 1) / len(means) * ((means - means.mean()) ** 2).sum()))
    reach = error * float(stats.t.ppf((1 + CONFIDENCE) / 2, len(means) - 1))
    return Overlap(value, max(0.0, value - reach), min(1.0, value + reach), len(pairs))
