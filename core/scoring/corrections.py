"""p of many heads or tests at once, corrected for their number."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri


def holm_adjusted(p: Float[np.ndarray, " test"]) -> Float[np.ndarray, " test"]:
    """Holm's adjusted p (1979): at most the level where his step-down rejects, whatever the tests have in common.

    Args:
        p: of each test. *Shape:* (test,). *Range:* 0 to 1.

    Returns:
        In their order. *Shape:* (test,). *Range:* p to 1.
    """
    order, adjusted = np.argsort(p), np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def widened(several: int) -> float:
    """How many times as wide a normal 95 % interval must be to hold for so many at once (Bonferroni)."""
    return float(ndtri(1 - 0.025 / several) / ndtri(0.975))


def q_values(p: Float[np.ndarray, "layer head"]) -> Float[np.ndarray, "layer head"]:
    """Benjamini-Hochberg's adjusted p (1995) over the heads that have one.

    Args:
        p: of each head, NaN where it was not tested. *Range:* 0 to 1.

    Returns:
        *Range:* p to 1; NaN where there is no p.
    """
    from scipy.stats import false_discovery_control  # 0.5 s of start-up

    q, is_tested = np.full_like(p, np.nan), ~np.isnan(p)
    if is_tested.any():
        q[is_tested] = false_discovery_control(p[is_tested])
    return q


def q_of_all(p: Sequence[Float[np.ndarray, "layer head"]]) -> list[Float[np.ndarray, "layer head"]]:
    """`q_values` over several tests of the same heads together, so that a study of many names claims no more by luck.

    Args:
        p: of each test, one number a head; NaN where a head was not tested. *Range:* 0 to 1.

    Returns:
        Of each test in its order, as `q_values`. Empty without any.
    """
    if not p:
        return []
    together = q_values(np.concatenate(p, 1))
    return np.split(together, len(p), axis=1)
