"""The level spent over batches of hypotheses that share judging inputs, and Holm's step-down within a batch.

The i-th batch on the same weights that shares a judging input with earlier ones gets alpha 6 / (pi^2 i^2). Batches
that are judged on one input all share it, so their numbers differ and their levels add up to at most alpha, however
many come. Batches that share no input are not corrected for each other.
"""

import math
from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from .corrections import holm_adjusted

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
