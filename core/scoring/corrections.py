"""Corrections of p values for multiple testing."""

import math
from collections.abc import Sequence

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float

from ..errors import InputError

# ---------------------------------------------------------------- alpha spending over batches of hypotheses


ALPHA = 0.05  # significance level of every test
CONFIDENCE = 0.95  # of every interval
CONTROLLED = (
    "For one weights file, the batches that are judged on a common input together have a probability of at most 5 % "
    "that any false hypothesis is held out or explained. Batches that share no judging input are not corrected for "
    "each other: each has up to 3 %, twenty of them together up to 46 %."
)


def batch_level(number: int) -> float:
    """Return the significance level ALPHA 6 / (pi^2 k^2) for the k-th batch of hypotheses, counted from 1."""
    if number < 1:
        raise InputError(f"Batches of hypotheses must be numbered from 1; got the number {number}. Correct the number.")
    return ALPHA * 6 / (math.pi**2 * number**2)


def holm(p: Sequence[float | None], *, registered: int) -> list[float | None]:
    """Return the Holm-adjusted p values of a batch of hypotheses; None for hypotheses that have not been tested.

    `registered` counts the hypotheses at registration; untested ones count as p = 1. Raises InputError if it is below
    len(p).
    """
    if registered < len(p):
        raise InputError(
            f"A batch must have at least as many registered as tested hypotheses; got {registered} registered and "
            f"{len(p)} tested hypotheses. Correct the number of registered hypotheses."
        )
    if not registered:
        return []
    p_values = [1.0 if value is None or math.isnan(value) else value for value in p]
    adjusted = holm_adjusted(np.array([*p_values, *[1.0] * (registered - len(p))]))
    return [None if before is None else float(after) for before, after in zip(p, adjusted[: len(p)], strict=True)]


# ---------------------------------------------------------------- false discovery rate


def significant_at_fdr(p: Sequence[float], level: float = ALPHA) -> list[bool]:
    """Return which tests are significant at the false discovery rate `level` (Benjamini and Yekutieli 2001)."""
    if not len(p):
        return []
    return [bool(q <= level) for q in scipy.stats.false_discovery_control(np.asarray(p, dtype=float), method="by")]


def holm_adjusted(p: Float[np.ndarray, " test"]) -> Float[np.ndarray, " test"]:
    """Return Holm-adjusted p values (Holm 1979), which are valid for any dependence between the tests."""
    order, adjusted = np.argsort(p), np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def widened(several: int) -> float:
    """Return the factor by which `several` 95 % normal intervals must be widened (Bonferroni). The widened intervals
    jointly cover their true values with a probability of at least 95 %."""
    return float(scipy.special.ndtri(1 - 0.025 / several) / scipy.special.ndtri(0.975))


def q_values(p: Float[np.ndarray, "*axes"]) -> Float[np.ndarray, "*axes"]:
    """Return p values adjusted for the number of heads (Benjamini & Hochberg 1995); NaN for heads without a test."""
    q, is_tested = np.full_like(p, np.nan), ~np.isnan(p)
    if is_tested.any():
        q[is_tested] = scipy.stats.false_discovery_control(p[is_tested])
    return q


def q_of_all(p: Sequence[Float[np.ndarray, "layer head"]]) -> list[Float[np.ndarray, "layer head"]]:
    """Return Benjamini-Hochberg adjusted p values over all heads and tests together, as one array per test."""
    if not p:
        return []
    together = q_values(np.concatenate(p, 1))
    return np.split(together, len(p), axis=1)
