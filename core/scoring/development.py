"""When heads acquire roles during training, and in which order roles appear.

A head has a role from the first snapshot after which its score stays above the role's bound
(`core.scoring.definitions.BOUNDS`, fixed in advance). It was acquired between that snapshot and the one before.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

NEVER = -1


def change_points(values: Float[np.ndarray, " snapshot *heads"], bound: float) -> Int[np.ndarray, "*heads"]:
    """Return the index of the first snapshot from which each score stays above a bound, or NEVER.

    NaN is not above any bound.
    """
    above = np.nan_to_num(values, nan=-np.inf) > bound
    stays = np.logical_and.accumulate(above[::-1], axis=0)[::-1]
    return np.where(stays[-1], stays.argmax(0), NEVER)


@dataclass(frozen=True)
class RoleOrder:
    """When the heads of a role acquired it.

    Attributes:
        median, low, high: the first snapshot by which half of the heads have it, with its 95 % bootstrap interval over
            heads; NaN without heads.
        first: fraction of bootstrap draws in which no other role has an earlier median; ties count for all.
    """

    heads: int
    earliest: int
    median: float
    low: float
    high: float
    first: float


def role_order(points: Mapping[str, Int[np.ndarray, "*heads"]], *, seed: int, draws: int = 999) -> dict[str, RoleOrder]:
    """Return when each role appeared, given the `change_points` of each role."""
    if not points:
        return {}
    chance = np.random.default_rng(seed)
    reached = {role: values[values != NEVER].ravel() for role, values in points.items()}
    medians = np.full((draws, len(reached)), np.inf)
    for column, values in enumerate(reached.values()):
        if len(values):
            medians[:, column] = _middle(values[chance.integers(len(values), size=(draws, len(values)))], 0.5)
    least = medians.min(1, keepdims=True)
    firsts = (np.isfinite(medians) & (medians == least)).mean(0)
    return {
        role: _order(values, medians[:, column], float(firsts[column]))
        for column, (role, values) in enumerate(reached.items())
    }


def _order(values: np.ndarray, medians: np.ndarray, first: float) -> RoleOrder:
    if not len(values):
        return RoleOrder(0, NEVER, float("nan"), float("nan"), float("nan"), 0.0)
    median, low, high = _middle(values, 0.5), _middle(medians, 0.025), _middle(medians, 0.975)
    return RoleOrder(len(values), int(values.min()), float(median), float(low), float(high), first)


def _middle(snapshots: np.ndarray, share: float) -> np.ndarray:
    """The first snapshot by which this fraction has begun, along the last axis."""
    return np.asarray(np.quantile(snapshots, share, axis=-1, method="inverted_cdf"))
