"""Intervals of bootstraps over inputs: percentiles, read farther out where inputs are few."""

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float


def ends(drawn: Float[np.ndarray, " sample *rest"], groups: int, *, tail: float = 0.025) -> np.ndarray:
    """The interval that resamples of groups give.

    Percentiles are too narrow for few inputs: their spread is sqrt((n - 1) / n) of what it should be, and normal where
    Student's is meant. So they are read farther out (Hesterberg 2015, "expanded percentiles"): at 1.6 % for 20 inputs.

    Args:
        drawn: a figure in each resample; NaN is left out.
        groups: how many groups were resampled; of one, the interval goes from the least to the largest.

    Returns:
        Low and high. *Shape:* (2, *rest).
    """
    farther = scipy.special.stdtrit(groups - 1, tail) * np.sqrt(groups / (groups - 1)) if groups > 1 else -np.inf
    level = float(scipy.special.ndtr(farther))
    return np.asarray(np.nanquantile(drawn, [level, 1 - level], axis=0))
