"""p of many heads or tests at once, corrected for their number."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from ..errors import InputError

# ---------------------------------------------------------------- alpha spending over batches of hypotheses


ALPHA = 0.05
CONTROLLED = (
    "For one weights file, the batches that are judged on a common input together have a probability of at most 5 % "
    "that any false hypothesis is held out or explained. Batches that share no judging input are not corrected for "
    "each other: each has up to 3 %, twenty of them together up to 46 %."
)


def batch_level(number: int, alpha: float = ALPHA) -> float:
    """The level of the batch of this number, counted from 1: alpha 6 / (pi^2 number^2)."""
    if number < 1:
        raise InputError(f"Batches of hypotheses are counted from 1; {number} is no number of one.")
    return alpha * 6 / (math.pi**2 * number**2)


def holm(p: Sequence[float | None], *, registered: int) -> list[float | None]:
    """Holm's adjusted p of a batch's hypotheses, in their order.

    Args:
        p: of each hypothesis that was tested; None where there is none, which then counts as 1.
        registered: how many hypotheses the batch had when it was registered, withdrawn ones among them.

    Returns:
        Adjusted p; None where there was none.

    Raises:
        InputError: fewer were registered than tested.
    """
    if registered < len(p):
        raise InputError(f"A batch of {registered} hypotheses cannot have {len(p)} tested ones.")
    if not registered:
        return []
    p_values = [1.0 if value is None or math.isnan(value) else value for value in p]
    adjusted = holm_adjusted(np.array([*p_values, *[1.0] * (registered - len(p))]))
    return [None if before is None else float(after) for before, after in zip(p, adjusted[: len(p)], strict=True)]


# ---------------------------------------------------------------- false discovery rate


LEVEL = 0.05


def standing(p: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Which tests stand when the expected share of lucky ones among those that stand is held at a level.

    Benjamini and Yekutieli (2001), whatever the tests have in common.

    Args:
        level: that share.

    Returns:
        Of each test, in their order; empty without any.
    """
    if not len(p):
        return []
    from scipy.stats import false_discovery_control  # 0.5 s of start-up

    return [bool(q <= level) for q in false_discovery_control(np.asarray(p, dtype=float), method="by")]


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
