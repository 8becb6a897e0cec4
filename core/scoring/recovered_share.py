"""The fraction of the logit difference between two inputs that patched outputs recover, as a ratio of means over pairs.

m is a logit difference. Each pair is oriented so that m(A) - m(B) is positive. recovered = sum(m(B patched) - m(B)) /
sum(m(A) - m(B)): 0 nothing, 1 all; below 0, the patch acts in the opposite direction; above 1, it overshoots. Pairs
below a floor are left out and counted.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..errors import InputError
from . import few_inputs
from .effects import max_t

FLOOR = 0.1  # logits: with a smaller difference in m, a pair is left out


@dataclass(frozen=True)
class Recovered:
    """The fraction of the logit difference that each set of patched components recovers, with interval and p value.

    Attributes:
        share: may be below 0 or above 1.
        low, high: 95 % interval; NaN for fewer than two pairs.
        p: that nothing is recovered, corrected over all variants (max-T over pairs); NaN for fewer than
            `few_inputs.FEWEST` pairs.
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
) -> Recovered:
    """Return the fraction of the logit difference that each set of patched components recovers, with its p value and 95
    % interval.

    `first` is m(A) of each pair, in logits. Pairs whose m(A) and m(B) differ by less than `floor` logits are left out.
    Raises InputError if no pair remains.
    """
    is_clear = np.abs(first - second) >= floor
    if not is_clear.any():
        raise InputError(
            f"The logit differences of the two inputs must differ by at least {floor:g} in at least one pair; in "
            f"all {len(first)} pairs they differ less. Choose pairs with different predictions."
        )
    turn = np.sign(first - second)[is_clear]
    differences = np.abs(first - second)[is_clear]
    brought = (patched - second)[:, is_clear] * turn
    n, unknown = int(is_clear.sum()), np.full(len(patched), np.nan)
    share = brought.sum(1) / differences.sum()
    low = high = unknown
    if n > 1:  # a ratio changes with a pair by (brought - share difference) / mean(difference)
        influence = ((brought - share[:, None] * differences) / differences.mean()).T
        spread = few_inputs.spread_of(influence, np.ones(influence.shape, dtype=bool), np.zeros(len(share)))
        low, high = few_inputs.reaching(share, spread.error, spread.lean, np.full(len(share), n - 1.0))
    p = max_t(np.zeros(n), brought, seed=seed, rare=None) if n >= few_inputs.FEWEST else unknown
    return Recovered(share, low, high, p, n, int(len(first) - n))
