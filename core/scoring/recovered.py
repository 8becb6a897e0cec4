"""How much of the difference between two inputs do patched outputs bring back? A ratio of means over pairs.

m is a logit difference. Each pair is turned so that m(A) - m(B) is positive, then
recovered = sum(m(B patched) - m(B)) / sum(m(A) - m(B)): 0 nothing, 1 all; below 0 the patch pushes away, above 1 it
overshoots. A mean of ratios would be ruled by pairs that hardly differ; those under a floor are left out and counted.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from core.errors import InputError
from core.scoring.effects import LEVEL, max_t

FLOOR = 0.1  # logits: pairs whose m differ less have little to bring back
RESAMPLES = 2000


@dataclass(frozen=True)
class Recovered:
    """Per variant: the share with its percentile interval, and p corrected over all variants (max-T over pairs' signs).

    n: pairs used; left_out: pairs under the floor.
    """

    share: Float[np.ndarray, " variant"]
    low: Float[np.ndarray, " variant"]
    high: Float[np.ndarray, " variant"]
    p: Float[np.ndarray, " variant"]
    n: int
    left_out: int


def recovered_share(
    first: Float[np.ndarray, " pair"],
    second: Float[np.ndarray, " pair"],
    patched: Float[np.ndarray, "variant pair"],
    *,
    floor: float = FLOOR,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Recovered:
    """Shares of all variants with 95% intervals; one set of bootstrap draws over pairs serves all. Intervals are NaN
    for one pair.

    Raises InputError where no pair differs by the floor.
    """
    kept = np.abs(first - second) >= floor
    if not kept.any():
        raise InputError(
            f"Patching brings back a difference; in all {len(first)} pairs the two inputs' logit differences are less "
            f"than {floor:g} apart: choose pairs on which the prediction moves."
        )
    turn = np.sign(first - second)[kept]
    whole = np.abs(first - second)[kept]
    brought = (patched - second)[:, kept] * turn
    n = int(kept.sum())
    share = brought.sum(1) / whole.sum()
    if n < 2:
        unknown = np.full(len(patched), np.nan)
        return Recovered(share, unknown, unknown, unknown, n, int(len(first) - n))
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples)
    draws = (counts @ brought.T) / (counts @ whole)[:, None]
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    p = max_t(np.zeros(n), brought, seed=seed)
    return Recovered(share, low, high, p, n, int(len(first) - n))
