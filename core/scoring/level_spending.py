"""The level spent over all batches of hypotheses that were ever registered, and Holm's step-down within a batch.

The i-th batch on the same weights and judging rows gets alpha 6 / (pi^2 i^2), which adds up to alpha however many come.
"""

import math
from collections.abc import Sequence

import numpy as np

from core.errors import InputError
from core.scoring.corrections import holm_adjusted

ALPHA = 0.05


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
