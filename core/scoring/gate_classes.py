"""What a head is to a task, from gates fitted with a push up and a push down (causal head gating, arXiv 2505.13737)."""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float

from ..errors import InputError

GateClass = Literal["facilitating", "interfering", "irrelevant", "undecided"]
CLASSES: tuple[GateClass, ...] = get_args(GateClass)
CLAIMED = 0.95  # share of the fits in which a class must come


def class_shares(
    up: Float[np.ndarray, "fit head"], down: Float[np.ndarray, "fit head"]
) -> Float[np.ndarray, "head three"]:
    """In which share of the fits each head is facilitating, interfering or irrelevant.

    High (above 1/2) under both pushes: facilitating. Low under both: interfering. High only with the push up:
    irrelevant. Low only with the push up, which no loss asks for: none of them, so shares add to at most 1.

    Args:
        up: gates that were fitted with a push up. *Range:* 0 to 1.
        down: gates that were fitted with a push down, in as many fits. *Range:* 0 to 1.

    Returns:
        In the order of CLASSES, without "undecided". *Range:* 0 to 1.

    Raises:
        InputError: there is no fit.
    """
    if not len(up):
        raise InputError(f"Gates are fitted with a push up and one down each; seen {len(up)} and {len(down)} fits.")
    high, stays = up > 0.5, down > 0.5
    parts: list[Bool[np.ndarray, "fit head"]] = [high & stays, ~high & ~stays, high & ~stays]
    return np.stack([part.mean(0) for part in parts], 1)


def classes_of(shares: Float[np.ndarray, "head three"], claimed: float = CLAIMED) -> list[GateClass]:
    """The class of each head.

    Args:
        shares: as `class_shares` gives them.
        claimed: the least share of the fits in which a class must come.

    Returns:
        One a head; "undecided" where no class comes in so many fits.
    """
    return [CLASSES[int(row.argmax())] if row.max() >= claimed - 1e-12 else "undecided" for row in shares]
