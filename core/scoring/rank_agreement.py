"""Agreement of ablation methods on the ranking of heads: Kendall's tau-b between mean effects on disjoint examples.

Effects of two methods on the same examples share their noise, which makes ranks agree even if the effects do not (in
simulations by .4 if effects are half their standard error). One method is therefore measured on one half of the
examples and the other on the other half, over many random halves. Noise then only lowers tau; the agreement of a method
with itself across halves is the largest value that could be observed.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float, Int, Shaped

from ..errors import InputError
from ..interval import Interval

# ---------------------------------------------------------------- Spearman's rank correlation


BOOTSTRAPS = 1000
FEWEST = 10  # heads that an interval takes: of 6, percentiles miss a true rho of .95 in 19 % (tests/simulations)


def rank_correlation(
    first: Shaped[np.ndarray, " head"], second: Shaped[np.ndarray, " other"], *, seed: int = 0
) -> Interval:
    """Return Spearman's correlation between two scores of the same heads, with a 95 % interval over heads.

    None if a score is constant or there are fewer than three heads; no interval for fewer heads than FEWEST. Raises
    InputError if the numbers of heads differ.
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if first.shape != second.shape:
        raise InputError(
            f"Only scores for the same heads can be compared; got scores of the shapes {first.shape} and "
            f"{second.shape}. Select the same heads for both scores."
        )
    n = len(first)
    if n < 3:
        return Interval(None, n=n)
    value = float(_correlations(_ranks(first[None]), _ranks(second[None]))[0])
    if n < FEWEST:
        return Interval.of(value, math.nan, math.nan, n)
    places = np.random.default_rng(seed).integers(n, size=(BOOTSTRAPS, n))
    drawn = _correlations(_ranks(first[places]), _ranks(second[places]))
    finite = drawn[np.isfinite(drawn)]
    low, high = np.quantile(finite, [0.025, 0.975]) if len(finite) else (np.nan, np.nan)
    return Interval.of(value, low, high, n)


def _ranks(values: Float[np.ndarray, "draw head"]) -> Float[np.ndarray, "draw head"]:
    return np.asarray(scipy.stats.rankdata(values, axis=1))


def _correlations(first: Float[np.ndarray, "draw head"], second: Float[np.ndarray, "draw head"]) -> np.ndarray:
    first, second = (ranks - ranks.mean(1, keepdims=True) for ranks in (first, second))
    bottom = np.sqrt((first**2).sum(1) * (second**2).sum(1))
    return np.divide((first * second).sum(1), bottom, out=np.full(len(first), np.nan), where=bottom > 0)


RESAMPLES, HALVES = 500, 50


@dataclass(frozen=True)
class RankAgreement:
    """The agreement of each pair of ablation methods on the ranking of heads. NaN if a method gives all heads the same
    rank. The diagonal compares each method with itself.

    Attributes:
        tau: across halves of the examples, from sums over the halves.
        low, high: 95 % percentile interval over heads; NaN for fewer than FEWEST heads.
    """

    tau: Float[np.ndarray, "operator operator"]
    low: Float[np.ndarray, "operator operator"]
    high: Float[np.ndarray, "operator operator"]
    same_rows: Float[np.ndarray, "operator operator"]
    n: int

    def mean_reliability(self, first: int, second: int) -> float:
        """Return the geometric mean of the split-half reliabilities of two ablation methods; NaN unless both
        reliabilities are above 0."""
        reliabilities = self.tau[first, first], self.tau[second, second]
        return float(np.sqrt(reliabilities[0] * reliabilities[1])) if min(reliabilities) > 0 else float("nan")


def signs_between(scores: Float[np.ndarray, "*draw head"]) -> Int[np.ndarray, "*draw pair"]:
    """Return the sign (int8) of the score difference for each pair of heads a < b: 1 if head a has the higher score."""
    first, second = np.triu_indices(scores.shape[-1], 1)
    return np.sign(scores[..., first] - scores[..., second]).astype(np.int8)


def tau_b(first: Int[np.ndarray, "*draw pair"], second: Int[np.ndarray, "*draw pair"]) -> Float[np.ndarray, "*draw"]:
    """Return Kendall's tau-b between two scores of heads, given the signs of all pairwise differences. NaN if all
    differences of a score are 0."""
    together = np.einsum("...p,...p->...", first, second, dtype=np.float64)
    alone = [np.einsum("...p,...p->...", signs, signs, dtype=np.float64) for signs in (first, second)]
    bottom = np.sqrt(alone[0] * alone[1])
    return np.divide(together, bottom, out=np.full(together.shape, np.nan), where=bottom > 0)


def operators_agree(
    effects: Float[np.ndarray, "operator head row"],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    halves: int = HALVES,
) -> RankAgreement:
    """Return Kendall's tau between the head effects under each pair of ablation methods. All methods use the same split
    halves and bootstrap samples. Raises InputError for fewer than three heads or four examples."""
    operators, heads, rows = effects.shape
    if heads < 3 or rows < 4:
        raise InputError(
            f"Rank agreement needs at least 3 heads and 4 examples; got {heads} heads and {rows} examples. "
            "Add heads or examples."
        )
    generator = np.random.default_rng(seed)
    first = np.stack([generator.permutation(rows) < rows // 2 for _ in range(halves)]).astype(float)
    signs = [
        [signs_between(side @ effect.T / side.sum(1, keepdims=True)) for side in (first, 1 - first)]
        for effect in effects
    ]
    observed = [signs_between(effect.mean(1)) for effect in effects]
    # How often each pair of different heads is in each draw of heads; the first draw is the observed heads.
    counts = generator.multinomial(heads, np.full(heads, 1 / heads), size=resamples)
    counts = np.concatenate([np.ones((1, heads), dtype=counts.dtype), counts])
    first, second = np.triu_indices(heads, 1)
    weights = (counts[:, first] * counts[:, second]).astype(float)
    tau, low, high, agreement = (np.full((operators, operators), np.nan) for _ in range(4))
    for a in range(operators):
        for b in range(a, operators):
            # tau-b of one method on one half with the other on the other half, both ways; sides [half, pair]
            ways = ((signs[a][0], signs[b][1]), (signs[a][1], signs[b][0]))
            parts = [[(s * t).mean(0), (s * s).mean(0), (t * t).mean(0)] for s, t in ways]
            together, within, across = (weights @ np.mean([part[k] for part in parts], 0) for k in range(3))
            bottom = np.sqrt(within * across)
            drawn = np.divide(together, bottom, out=np.full(together.shape, np.nan), where=bottom > 0)
            finite = drawn[1:][np.isfinite(drawn[1:])]
            ends = np.quantile(finite, [0.025, 0.975]) if len(finite) and heads >= FEWEST else (np.nan, np.nan)
            for cell in ((a, b), (b, a)):
                tau[cell], low[cell], high[cell] = drawn[0], ends[0], ends[1]
                agreement[cell] = float(tau_b(observed[a], observed[b]))
    return RankAgreement(tau, low, high, agreement, rows)
