"""Shares of classes freed of a classifier's confusions, linearly, for changes and for single heads.

With C[t, p] = P(predicted p | true t) of held-out maps, counted shares c are C^T s, so s = (C^T)^-1 c. Of two counts by
one classifier its errors are the same: the errors of a change come from the change alone, not from either count.
Source: Rogan and Gladen 1978, "Estimating prevalence from the results of a screening test".
"""

import numpy as np
from jaxtyping import Bool, Float, Int

from .class_shares import CORRECTED_SAMPLES
from .evaluation import ends, resampled

HALVES = 1.959964  # standard errors in half of a 95 % interval


def unmixing(
    held_out: Int[np.ndarray, "group class class"], *, seed: int = 0
) -> Float[np.ndarray, "sample class class"]:
    """Matrices that turn counted shares into true ones.

    Args:
        held_out: left-out labelled maps by group, true class and class that the classifier gave. A class without any is
            taken to be predicted right.

    Returns:
        Of all held-out maps first, then of groups drawn with replacement; each is multiplied by counted shares from the
        left.
    """
    drawn = resampled(held_out, seed=seed, samples=CORRECTED_SAMPLES)
    confusions = np.concatenate([held_out.sum(0)[None], drawn]).astype(float)
    rows = confusions.sum(2, keepdims=True)
    chance = np.where(rows > 0, confusions / np.maximum(rows, 1), np.eye(confusions.shape[1]))
    return np.asarray(np.linalg.pinv(chance.transpose(0, 2, 1)))


def true_changes(
    change: Float[np.ndarray, " class"],
    halves: Float[np.ndarray, " class"],
    held_out: Int[np.ndarray, "group class class"],
    *,
    several: int = 1,
    seed: int = 0,
) -> Float[np.ndarray, "three class"]:
    """What counted shares changed by in truth, with intervals.

    Args:
        change: of the counted share of each class.
        halves: of its interval over inputs; those of all classes are added, whatever they have in common.
        held_out: left-out labelled maps by group, true class and class that the classifier gave.
        several: classes that the interval of the confusions shall hold for at once (Bonferroni).

    Returns:
        Value, low and high of each class; the errors of inputs and of confusions are independent, so the squares of
        their halves add up.
    """
    matrices = unmixing(held_out, seed=seed)
    value, drawn = matrices[0] @ change, matrices[1:] @ change
    low, high = ends(drawn, len(held_out), tail=0.025 / several)
    noise = np.abs(matrices[0]) @ halves
    below, above = (np.hypot(np.maximum(0, reach), noise) for reach in (value - low, high - value))
    return np.stack([value, value - below, value + above])


def true_shares(
    counts: Int[np.ndarray, "head class"],
    chosen: Bool[np.ndarray, " class"],
    held_out: Int[np.ndarray, "group class class"],
    *,
    least: Float[np.ndarray, "two head"],
    seed: int = 0,
) -> Float[np.ndarray, "three head"]:
    """Each head's share of maps of the chosen classes together, in truth.

    The interval has the head's own maps and the confusions.

    Args:
        counts: maps of each head that were classified as each class; every head has maps.
        held_out: left-out labelled maps by group, true class and class that the classifier gave.
        least: halves of the counted share's interval, below and above, which its own maps leave at least.

    Returns:
        Value, low and high of each head. *Range:* 0 to 1.
    """
    total = counts.sum(1)
    shares = counts / total[:, None]
    weights = np.einsum("c,scd->sd", chosen.astype(float), unmixing(held_out, seed=seed))
    value, drawn = shares @ weights[0], weights[1:] @ shares.T
    low, high = ends(drawn, len(held_out))
    noise = HALVES * np.sqrt(np.maximum(0, shares @ weights[0] ** 2 - value**2) / total)
    below, above = (
        np.hypot(np.maximum(0, reach), np.maximum(noise, margin))
        for reach, margin in zip((value - low, high - value), least, strict=True)
    )
    return np.clip(np.stack([value, value - below, value + above]), 0, 1)
