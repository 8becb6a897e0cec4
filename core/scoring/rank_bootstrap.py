"""Spearman's rank correlation of two scores of the same heads, with a percentile interval over heads."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from ..errors import InputError

RESAMPLES = 1000
FEWEST = 6  # heads that an interval takes: of 4, percentiles miss the truth in 10 % and more (tests/simulations)


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rho with its 95 % interval over heads.

    rho is NaN where a score is constant or for fewer than three heads; the interval is NaN for fewer than FEWEST heads.

    Attributes:
        value: rho, -1 to 1.
    """

    value: float
    low: float
    high: float
    n: int


def rank_correlation(
    first: Shaped[np.ndarray, " head"], second: Shaped[np.ndarray, " other"], *, seed: int = 0
) -> RankCorrelation:
    """Spearman's correlation of two scores of the same heads, and what other heads of such a kind would give.

    Args:
        second: another score of the same heads, in their order; `other` equals `head`.

    Returns:
        NaN for fewer than three heads; no interval (NaN) for fewer than FEWEST.

    Raises:
        InputError: the scores are of different numbers of heads.
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if first.shape != second.shape:
        raise InputError(f"Scores of the same heads are compared; seen {first.shape} and {second.shape}.")
    n = len(first)
    if n < 3:
        return RankCorrelation(float("nan"), float("nan"), float("nan"), n)
    value = float(_correlations(_ranks(first[None]), _ranks(second[None]))[0])
    if n < FEWEST:
        return RankCorrelation(value, float("nan"), float("nan"), n)
    places = np.random.default_rng(seed).integers(n, size=(RESAMPLES, n))
    drawn = _correlations(_ranks(first[places]), _ranks(second[places]))
    finite = drawn[np.isfinite(drawn)]
    low, high = np.quantile(finite, [0.025, 0.975]) if len(finite) else (np.nan, np.nan)
    return RankCorrelation(value, float(low), float(high), n)


def _ranks(values: Float[np.ndarray, "draw head"]) -> Float[np.ndarray, "draw head"]:
    """Mean ranks, ties shared."""
    from scipy.stats import rankdata  # half a second that the terminal's start need not wait for

    return rankdata(values, axis=1)


def _correlations(first: Float[np.ndarray, "draw head"], second: Float[np.ndarray, "draw head"]) -> np.ndarray:
    first, second = (ranks - ranks.mean(1, keepdims=True) for ranks in (first, second))
    bottom = np.sqrt((first**2).sum(1) * (second**2).sum(1))
    return np.divide((first * second).sum(1), bottom, out=np.full(len(first), np.nan), where=bottom > 0)
