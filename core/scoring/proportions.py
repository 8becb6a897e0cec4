"""Shares of rows and their intervals."""

import numpy as np
from jaxtyping import Float, Real
from scipy.special import ndtri

_REACH = float(-ndtri(0.025))


def wilson_interval(
    counts: Real[np.ndarray, "*share"], rows: int
) -> tuple[Float[np.ndarray, "*share"], Float[np.ndarray, "*share"]]:
    """The 95 % intervals of shares of rows (Wilson 1927): the shares that a score test does not reject.

    Args:
        counts: how many of the rows are counted in each share. *Range:* 0 to rows.
        rows: how many rows there are, at least 1.

    Returns:
        Lower and upper ends. *Range:* 0 to 1, but for what rounding adds.
    """
    share, squared = counts / rows, _REACH**2
    middle = share + squared / (2 * rows)
    reach = _REACH * np.sqrt(share * (1 - share) / rows + squared / (4 * rows**2))
    scale = 1 + squared / rows
    return np.asarray(middle / scale - reach / scale), np.asarray(middle / scale + reach / scale)
