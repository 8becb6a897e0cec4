"""A sweep in bfloat16 or float16: how far its effects are from float32's, and what is computed again before a claim.

Some variants are computed in both arithmetics on all rows. Twice their largest deviation bounds the effects of the
others, and says which of them might be claimed in float32: these are computed again, so that every claim rests on it.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ...scoring import effects

LOW = ("bfloat16", "float16")
EVERY, LEAST = 12, 4  # of the variants, one in EVERY is computed in both, and at least LEAST
SAFETY = 2.0  # times the largest deviation that was seen
CLAIM = 0.05  # corrected p at which an effect is claimed

Differences = Float[np.ndarray, "variant row"]


@dataclass(frozen=True)
class Deviation:
    """How far low precision may be from float32. effect: of a mean difference; t: of its t; variants: seen in both."""

    effect: float
    t: float
    variants: int


def sampled(variants: int) -> list[int]:
    """Which variants are computed in both arithmetics: evenly spread."""
    count = min(variants, max(LEAST, -(-variants // EVERY)))
    return sorted({round(k) for k in np.linspace(0, variants - 1, count)})


def known(exact: Differences) -> np.ndarray:
    """Variants with float32 predictions of every row.

    Args:
        exact: outcomes after minus before in float32; NaN where it was not asked.

    Returns:
        *Shape:* (variant,), bool.
    """
    return ~np.isnan(exact).any(1)


def deviation(low: Differences, exact: Differences) -> Deviation:
    """How far effects in low precision are from float32's, by the variants that `exact` knows.

    Args:
        exact: the same in float32; NaN where it was not asked.

    Returns:
        SAFETY times the largest deviation of a mean and of its t.
    """
    both = known(exact)
    means = np.abs(low[both].mean(1) - exact[both].mean(1))
    scores = np.abs(np.abs(effects.t_values(low[both])) - np.abs(effects.t_values(exact[both])))
    return Deviation(SAFETY * float(means.max()), SAFETY * float(scores.max()), int(both.sum()))


def near(low: Differences, exact: Differences, *, seed: int) -> list[int]:
    """Variants that float32 has not been asked about and might claim: their corrected p reaches CLAIM within the
    deviation."""
    difference = deviation(low, exact)
    reachable = effects.max_t(np.zeros(low.shape[1]), mixed(low, exact), seed=seed, slack=difference.t) <= CLAIM
    return [int(k) for k in np.flatnonzero(reachable & ~known(exact))]


def mixed(low: Differences, exact: Differences) -> Differences:
    """Outcomes after minus before: float32's where every row is known, else low precision's."""
    return np.where(known(exact)[:, None], exact, low)
