"""Intervals of bootstraps over inputs: percentiles, read farther out where inputs are few."""

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float


def ends(drawn: Float[np.ndarray, " sample *rest"], groups: int, *, tail: float = 0.025) -> np.ndarray:
    """The interval [two, ...] that resamples of so many inputs give, `tail` of the law beyond either end.

    Percentiles are too narrow for few inputs: their spread is sqrt((n - 1) / n) of what it should be, and normal where
    Student's is meant. So they are read farther out (Hesterberg 2015, "expanded percentiles"): at 1.6 % for 20 inputs.
    """
    farther = scipy.special.stdtrit(groups - 1, tail) * np.sqrt(groups / (groups - 1)) if groups > 1 else -np.inf
    level = float(scipy.special.ndtr(farther))
    return np.asarray(np.nanquantile(drawn, [level, 1 - level], axis=0))
