"""Is a head's score on links more than its habits explain? Permutation nulls, intervals, correction over heads.

Two nulls, because two habits look like knowledge. *Distance*: each input's links are moved to another place of the same
input, at the same signed distances and piece counts; a head that attends some steps away scores as high there.
*Exchange*: links change places between inputs of equal length; a head that attends to a fixed position (the first
word) scores as high there. A head survives when it beats both, after Benjamini-Hochberg over all heads. The true
place is one of the places in both, so the tests keep their level, and an
input without another place adds nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

RESAMPLES = 4999
LEVEL = 0.05
_CHUNK = 512  # draws at a time, so that they stay in the processor's cache
_EQUAL = 1e-6  # sums of the same float32 weights in another order differ by less


def draws_needed(heads: int) -> int:
    """Draws with which a single head among `heads` can pass the correction at LEVEL: p can be as small as 1/(R+1)."""
    return max(RESAMPLES, 2 * int(np.ceil(heads / LEVEL)) - 1)


def distance_draws(
    places: Sequence[Float[np.ndarray, "_ cell"]], draws: int, *, seed: int = 0
) -> Float[np.ndarray, "draw cell"]:
    """Sums over inputs of the score at one place drawn at random; places[i][0] is the true one."""
    rng, total = np.random.default_rng(seed), np.zeros((draws, places[0].shape[-1]))
    for start in range(0, draws, _CHUNK):
        part = total[start : start + _CHUNK]
        for scores in places:
            part += scores[rng.integers(len(scores), size=len(part))]
    return total


def exchange_draws(
    groups: Sequence[Float[np.ndarray, "_ _ cell"]], draws: int, *, seed: int = 0
) -> Float[np.ndarray, "draw cell"]:
    """Sums over inputs of the score with another input's links, permuted within each group.

    groups[g][i, j]: input i with the links of input j; the diagonal is the truth.
    """
    rng, total = np.random.default_rng(seed), np.zeros((draws, groups[0].shape[-1]))
    for start in range(0, draws, _CHUNK):
        part = total[start : start + _CHUNK]
        for scores in groups:
            size = len(scores)
            orders = rng.permuted(np.tile(np.arange(size), (len(part), 1)), axis=1)
            for number in range(size):
                part += scores[number, orders[:, number]]
    return total


def p_values(observed: Float[np.ndarray, "cell"], draws: Float[np.ndarray, "draw cell"]) -> Float[np.ndarray, "cell"]:
    """One-sided p = (1 + draws at least as large) / (1 + draws), in 1/(R+1) to 1."""
    return (1 + (draws >= observed - _EQUAL * np.maximum(1, np.abs(observed))).sum(0)) / (1 + len(draws))


def corrected(p: Float[np.ndarray, "cell"]) -> Float[np.ndarray, "cell"]:
    """Benjamini-Hochberg adjusted p values over all heads."""
    from statsmodels.stats.multitest import multipletests

    return multipletests(p, method="fdr_bh")[1]


def interval(
    scores: Float[np.ndarray, "input cell"], *, resamples: int = 2000, seed: int = 0
) -> tuple[Float[np.ndarray, "cell"], Float[np.ndarray, "cell"]]:
    """95 % percentile bootstrap interval of the mean over inputs; NaN for fewer than two."""
    if len(scores) < 2:
        nothing = np.full(scores.shape[-1], np.nan)
        return nothing, nothing
    from scipy.stats import bootstrap

    found = bootstrap(
        (scores,),
        np.mean,
        axis=0,
        n_resamples=resamples,
        batch=50,
        method="percentile",
        rng=np.random.default_rng(seed),
        vectorized=True,
    ).confidence_interval
    return found.low, found.high


@dataclass(frozen=True)
class LinkTest:
    """The verdict on every head (cells in the caller's order).

    score: mean over n inputs; low, high: its 95 % interval. distance, exchange: means of the two nulls, with their p.
    q: the larger p after Benjamini-Hochberg. survives: q <= 0.05.
    """

    n: int
    score: Float[np.ndarray, "cell"]
    low: Float[np.ndarray, "cell"]
    high: Float[np.ndarray, "cell"]
    distance: Float[np.ndarray, "cell"]
    p_distance: Float[np.ndarray, "cell"]
    exchange: Float[np.ndarray, "cell"]
    p_exchange: Float[np.ndarray, "cell"]
    q: Float[np.ndarray, "cell"]
    survives: Bool[np.ndarray, "cell"]


def verdict(
    scores: Float[np.ndarray, "input cell"],
    distance: Float[np.ndarray, "draw cell"],
    exchange: Float[np.ndarray, "draw cell"],
    *,
    seed: int = 0,
) -> LinkTest:
    """Compare the mean over inputs with sums drawn under both nulls (of the same inputs)."""
    n, observed = len(scores), scores.sum(0, dtype=np.float64)
    p_distance, p_exchange = p_values(observed, distance), p_values(observed, exchange)
    q = corrected(np.maximum(p_distance, p_exchange))
    low, high = interval(scores, seed=seed)
    return LinkTest(
        n, observed / n, low, high, distance.mean(0) / n, p_distance, exchange.mean(0) / n, p_exchange, q, q <= LEVEL
    )
