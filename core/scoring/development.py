"""When a head begins to look somewhere, over snapshots of training, and in which order that comes about.

A head has a role from the first snapshot after which its score stays above the role's bound until the last one
(`core.scoring.definitions.BOUNDS`, fixed before anything is measured). It began between that snapshot and the one
before: nothing is known of what lies between.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

NEVER = -1


def change_points(values: Float[np.ndarray, " snapshot *heads"], bound: float) -> Int[np.ndarray, "*heads"]:
    """The first snapshot from which on a score stays above a bound.

    Args:
        values: the score at each snapshot, in order of training; a NaN is not above any bound.
        bound: in the score's unit.

    Returns:
        Number of the snapshot, from 0; NEVER where the last one is not above the bound.
    """
    above = np.nan_to_num(values, nan=-np.inf) > bound
    stays = np.logical_and.accumulate(above[::-1], axis=0)[::-1]
    return np.where(stays[-1], stays.argmax(0), NEVER)


@dataclass(frozen=True)
class RoleOrder:
    """When the heads of a role began.

    Attributes:
        median, low, high: the first snapshot by which half of them have begun, with its 95 % bootstrap interval over
            heads; NaN without any. All three are snapshots, never halfway between two.
        first: share of the bootstrap draws in which no other role's median is earlier. Ties count for all of them.
    """

    heads: int
    earliest: int
    median: float
    low: float
    high: float
    first: float


def role_order(points: Mapping[str, Int[np.ndarray, "*heads"]], *, seed: int, draws: int = 999) -> dict[str, RoleOrder]:
    """The order in which roles come about, over heads.

    Args:
        points: of each role when each head has it, as `change_points` gives them.

    Returns:
        When each role began; empty without roles.
    """
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
    """The first snapshot by which such a share has begun, along the last axis."""
    return np.asarray(np.quantile(snapshots, share, axis=-1, method="inverted_cdf"))
