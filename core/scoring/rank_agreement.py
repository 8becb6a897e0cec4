"""Do operators rank heads alike? Kendall's tau-b between mean effects on rows that the two do not share.

Effects of two operators on the same rows share the rows' noise, which makes ranks agree where the effects themselves
do not (in simulation by .4 where effects are half their standard error). So one operator is measured on one half of
the rows and the other on the other half, over many random halves. Noise then only lowers tau: how well an operator
agrees with itself across halves stands beside it as the most that could be seen.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from ..errors import InputError

# ---------------------------------------------------------------- Spearman's rank correlation


BOOTSTRAPS = 1000
FEWEST = 10  # heads that an interval takes: of 6, percentiles miss a true rho of .95 in 19 % (tests/simulations)


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
    places = np.random.default_rng(seed).integers(n, size=(BOOTSTRAPS, n))
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


RESAMPLES, HALVES = 500, 50


@dataclass(frozen=True)
class RankAgreement:
    """How alike operators rank heads, pair by pair; on the diagonal, how well an operator agrees with itself.

    *Range:* -1 to 1; NaN where an operator ranks no head above another.

    Attributes:
        tau: across halves of the rows, from sums over the halves.
        low, high: 95 % percentile interval over heads: what other heads of such a kind would give, on as many rows. NaN
            for fewer than FEWEST heads.
    """

    tau: Float[np.ndarray, "operator operator"]
    low: Float[np.ndarray, "operator operator"]
    high: Float[np.ndarray, "operator operator"]
    same_rows: Float[np.ndarray, "operator operator"]
    n: int

    def itself(self, first: int, second: int) -> float:
        """How well each of the two agrees with itself, the geometric mean; NaN where one does not at all."""
        reliabilities = self.tau[first, first], self.tau[second, second]
        return float(np.sqrt(reliabilities[0] * reliabilities[1])) if min(reliabilities) > 0 else float("nan")


def signs_between(scores: Float[np.ndarray, "*draw head"]) -> Int[np.ndarray, "*draw pair"]:
    """Which head of each pair of heads scores higher.

    Returns:
        Of each pair (a, b), a before b: 1 where a is higher, -1 where b is, 0 where they are equal; int8.
    """
    first, second = np.triu_indices(scores.shape[-1], 1)
    return np.sign(scores[..., first] - scores[..., second]).astype(np.int8)


def tau_b(first: Int[np.ndarray, "*draw pair"], second: Int[np.ndarray, "*draw pair"]) -> Float[np.ndarray, "*draw"]:
    """Kendall's tau-b from signs: sum s t / sqrt(sum s^2 sum t^2).

    Args:
        first: signs of the pairs (`signs_between`).

    Returns:
        *Range:* -1 to 1; NaN where one is all ties.
    """
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
    """tau between the effects of every two operators on the same heads and rows; halves and draws are shared.

    Raises:
        InputError: fewer than three heads or four rows.
    """
    operators, heads, rows = effects.shape
    if heads < 3 or rows < 4:
        raise InputError(f"Rank agreement needs at least 3 heads and 4 rows; seen {heads} heads and {rows} rows.")
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
            drawn = _across(signs[a], signs[b], weights)
            finite = drawn[1:][np.isfinite(drawn[1:])]
            ends = np.quantile(finite, [0.025, 0.975]) if len(finite) and heads >= FEWEST else (np.nan, np.nan)
            for cell in ((a, b), (b, a)):
                tau[cell], low[cell], high[cell] = drawn[0], ends[0], ends[1]
                agreement[cell] = float(tau_b(observed[a], observed[b]))
    return RankAgreement(tau, low, high, agreement, rows)


def _across(
    first: list[np.ndarray], second: list[np.ndarray], weights: Float[np.ndarray, "draw pair"]
) -> Float[np.ndarray, " draw"]:
    """tau-b of one operator on one half with the other on the other half, both ways; sides [half, pair]."""
    ways = ((first[0], second[1]), (first[1], second[0]))
    parts = [[(s * t).mean(0), (s * s).mean(0), (t * t).mean(0)] for s, t in ways]
    together, within, across = (weights @ np.mean([part[k] for part in parts], 0) for k in range(3))
    bottom = np.sqrt(within * across)
    return np.divide(together, bottom, out=np.full(together.shape, np.nan), where=bottom > 0)
