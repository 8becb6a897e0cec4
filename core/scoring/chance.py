"""Whether a classifier is shown to be above the best constant: what its heads do says little otherwise."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from .intervals import wilson_interval


@dataclass(frozen=True)
class AboveConstant:
    """A share of rows that were right beside the better constant's.

    Attributes:
        share: of rows that were right, 0 to 1.
        low, high: its 95 % Wilson interval over rows.
        rows: how many rows the share is of.
    """

    share: float
    low: float
    high: float
    constant: float
    rows: int

    @property
    def is_shown(self) -> bool:
        """Whether the whole interval lies above the constant."""
        return self.low > self.constant

    @property
    def sentence(self) -> str:
        """What to tell people where it is not shown; "" where it is."""
        if self.is_shown:
            return ""
        return (
            f"accuracy {100 * self.share:.1f} (95 % {100 * self.low:.1f} to {100 * self.high:.1f}, {self.rows} rows) "
            f"is not shown to be above chance: the better constant has {100 * self.constant:.1f}"
        )


def above_constant(share: float, constant: float, rows: int) -> AboveConstant:
    """Whether a share of right rows is above a constant's, by its interval; of one row at least."""
    low, high = wilson_interval(np.array(round(share * rows)), rows)
    return AboveConstant(share, float(low), float(high), constant, rows)


@dataclass(frozen=True)
class AboveZero:
    """A correlation of scores with those of people beside none, which is what a constant has.

    Attributes:
        correlation: Pearson's r, -1 to 1.
        low, high: its 95 % interval over rows, on Fisher's scale.
    """

    correlation: float
    low: float
    high: float
    rows: int

    @property
    def is_shown(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.low > 0

    @property
    def sentence(self) -> str:
        """What to tell people where it is not shown; "" where it is."""
        if self.is_shown:
            return ""
        return (
            f"pearson {100 * self.correlation:.1f} (95 % {100 * self.low:.1f} to {100 * self.high:.1f}, "
            f"{self.rows} rows) is not shown to be above 0, which is chance"
        )


def fisher_interval(correlation: float, rows: int) -> tuple[float, float]:
    """The 95 % interval of a correlation.

    Args:
        correlation: Pearson's r, between -1 and 1.
        rows: at least 4.

    Source:
        Fisher 1921: arctanh r has a standard error of 1 / sqrt(n - 3).
    """
    reach = NormalDist().inv_cdf(0.975) / math.sqrt(rows - 3)
    centre = math.atanh(min(max(correlation, -1 + 1e-12), 1 - 1e-12))
    return math.tanh(centre - reach), math.tanh(centre + reach)


def above_zero(correlation: float, rows: int) -> AboveZero:
    """Hold a correlation against none, with Fisher's interval.

    Args:
        correlation: Pearson's r, between -1 and 1.
        rows: at least 4.
    """
    return AboveZero(correlation, *fisher_interval(correlation, rows), rows)
