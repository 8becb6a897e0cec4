"""Mean effects of heads from some of a draw's rows, with first-order effects as a control variate where there are any.

`core.scoring.racing` has the formula: theta, its standard error, and what c, d, e, g, n and N are.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

HeadRows = Float[np.ndarray, "head row"]
PerHead = Float[np.ndarray, " head"]


@dataclass(frozen=True)
class Control:
    """First-order effects as a control variate.

    Attributes:
        slope: c of each head.
        means, spreads, largest: of g over all N rows, by head; the largest without its sign.
    """

    slope: PerHead
    means: PerHead
    spreads: PerHead
    largest: PerHead

    @property
    def beside(self) -> PerHead:
        """The most that c g is in any row, of each head."""
        return np.abs(self.slope) * self.largest


@dataclass(frozen=True)
class EffectEstimate:
    """Mean effects of heads after n of N rows.

    Attributes:
        value: theta, in units of the effects.
        error: its standard error.
        degrees: of freedom of Student's t.
        residual: standard deviation of d over rows; of the effects themselves without a control variate.
        n: rows that were measured.
    """

    value: PerHead
    error: PerHead
    degrees: int
    residual: PerHead
    n: int


def slope_of(exact: HeadRows, first_order: HeadRows) -> PerHead:
    """c: least squares of e on g.

    Args:
        exact: e of the rows of the first look.
        first_order: g of the same rows.

    Returns:
        Of each head; 0 where g does not vary.
    """
    centred = first_order - first_order.mean(1, keepdims=True)
    squares = (centred**2).sum(1)
    together = (centred * exact).sum(1)
    return np.divide(together, squares, out=np.zeros_like(together), where=squares > 0)


def spreads(exact: HeadRows, lost: int = 1) -> PerHead:
    """Standard deviations over rows.

    Args:
        exact: effects of the rows drawn, without NaN.
        lost: degrees of freedom that were fitted; it is divided by rows less these, at least 1.

    Returns:
        Of each head, in units of the effects.
    """
    centred = exact - exact.mean(1, keepdims=True)
    return np.sqrt((centred**2).sum(1) / max(1, exact.shape[1] - lost))


def estimated(
    exact: HeadRows,
    rows: int,
    *,
    first_order: HeadRows | None = None,
    control: Control | None = None,
) -> EffectEstimate:
    """theta and its standard error from the rows drawn so far.

    Args:
        exact: e of the n rows drawn, without NaN.
        rows: N, all that may be drawn.
        first_order: g of the same n rows. None: there is no control variate.
        control: the control variate of these heads. None: none.

    Returns:
        The estimate; with a control variate, one degree of freedom fewer.
    """
    n = exact.shape[1]
    exact_spreads = spreads(exact)
    if control is None or first_order is None:
        return EffectEstimate(exact.mean(1), exact_spreads / np.sqrt(n), n - 1, exact_spreads, n)
    residual = exact - control.slope[:, None] * first_order
    left = spreads(residual, 2)
    value = control.slope * control.means + residual.mean(1)
    error = np.sqrt(exact_spreads**2 / rows + left**2 * (1 / n - 1 / rows))
    return EffectEstimate(value, error, n - 2, left, n)


def control_of(exact: Float[np.ndarray, "head look"], first_order: HeadRows) -> Control:
    """The control variate of all heads: slopes from the first look, means and spreads from g of all rows.

    Args:
        exact: e of the rows of the first look.
        first_order: g of all rows, the rows of the first look first.

    Returns:
        A slope of 0 where g does not vary.
    """
    slope = slope_of(exact, first_order[:, : exact.shape[1]])
    return Control(slope, first_order.mean(1), spreads(first_order), np.abs(first_order).max(1))
