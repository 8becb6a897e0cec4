"""Do operators rank heads alike? Kendall's tau-b between mean effects, with a bootstrap over the rows behind them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from core.errors import InputError

RESAMPLES = 500


@dataclass(frozen=True)
class RankAgreement:
    """tau-b of each pair of operators with its percentile interval; NaN where an operator ranks no head above another.

    The interval is of the agreement on new rows of the same task with the same heads.
    """

    tau: Float[np.ndarray, "operator operator"]
    low: Float[np.ndarray, "operator operator"]
    high: Float[np.ndarray, "operator operator"]
    n: int


def signs_between(scores: Float[np.ndarray, "*draw head"]) -> Int[np.ndarray, "*draw pair"]:
    """-1, 0 or 1: which head of each pair of heads scores higher."""
    one, other = np.triu_indices(scores.shape[-1], 1)
    return np.sign(scores[..., one] - scores[..., other]).astype(np.int8)


def tau_b(first: Int[np.ndarray, "*draw pair"], second: Int[np.ndarray, "*draw pair"]) -> Float[np.ndarray, "*draw"]:
    """Kendall's tau-b from signs: sum s t / sqrt(sum s^2 sum t^2). Range -1 to 1; NaN where one is all ties."""
    together = np.einsum("...p,...p->...", first, second, dtype=np.float64)
    alone = [np.einsum("...p,...p->...", one, one, dtype=np.float64) for one in (first, second)]
    bottom = np.sqrt(alone[0] * alone[1])
    return np.divide(together, bottom, out=np.full(together.shape, np.nan), where=bottom > 0)


def operators_agree(
    effects: Float[np.ndarray, "operator head row"],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> RankAgreement:
    """tau between the mean effects of every two operators on the same heads and rows; draws of rows are shared.

    Raises InputError for fewer than three heads or two rows.
    """
    operators, heads, rows = effects.shape
    if heads < 3 or rows < 2:
        raise InputError(f"Rank agreement needs at least 3 heads and 2 rows; seen {heads} heads and {rows} rows.")
    counts = np.random.default_rng(seed).multinomial(rows, np.full(rows, 1 / rows), size=resamples)
    drawn = [signs_between(counts @ one.T / rows) for one in effects]
    whole = [signs_between(one.mean(1)) for one in effects]
    tau, low, high = (np.ones((operators, operators)) for _ in range(3))
    for one in range(operators):
        for other in range(one, operators):
            value = float(tau_b(whole[one], whole[other]))
            draws = tau_b(drawn[one], drawn[other])
            known = draws[np.isfinite(draws)]
            ends = np.quantile(known, [(1 - level) / 2, (1 + level) / 2]) if len(known) else (np.nan, np.nan)
            for place in ((one, other), (other, one)):
                tau[place], low[place], high[place] = value, ends[0], ends[1]
    return RankAgreement(tau, low, high, rows)
