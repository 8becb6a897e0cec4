"""Tests of whether a model is better than the best constant prediction."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from .intervals import wilson_interval


@dataclass(frozen=True)
class AboveConstant:
    """An accuracy compared with the best constant prediction, with its 95 % Wilson interval over examples."""

    share: float
    low: float
    high: float
    constant: float
    rows: int

    @property
    def is_shown(self) -> bool:
        """Return whether the lower bound of the accuracy's 95 % interval is above the best constant prediction."""
        return self.low > self.constant

    @property
    def sentence(self) -> str:
        """Return a warning if the accuracy is not significantly above chance level, otherwise ""."""
        if self.is_shown:
            return ""
        return (
            f"an accuracy of {100 * self.share:.1f} (95 % CI {100 * self.low:.1f} to {100 * self.high:.1f}, n = "
            f"{self.rows} examples) is not significantly above the accuracy of a constant prediction "
            f"({100 * self.constant:.1f})"
        )


def above_constant(share: float, constant: float, rows: int) -> AboveConstant:
    """Compare an accuracy over at least one example with the accuracy of a constant prediction."""
    low, high = wilson_interval(np.array(round(share * rows)), rows)
    return AboveConstant(share, float(low), float(high), constant, rows)


@dataclass(frozen=True)
class AboveZero:
    """A Pearson correlation with human scores, compared with 0, and its 95 % interval on Fisher's scale."""

    correlation: float
    low: float
    high: float
    rows: int

    @property
    def is_shown(self) -> bool:
        """Return whether the lower bound of the correlation's interval is above 0."""
        return self.low > 0

    @property
    def sentence(self) -> str:
        """Return a warning if the correlation is not significantly above 0, otherwise ""."""
        if self.is_shown:
            return ""
        return (
            f"a correlation of {100 * self.correlation:.1f} (Pearson's r × 100, 95 % CI {100 * self.low:.1f} to "
            f"{100 * self.high:.1f}, n = {self.rows} examples) is not significantly above the chance level of 0"
        )


def fisher_interval(correlation: float, rows: int) -> tuple[float, float]:
    """Return the 95 % interval of Pearson's r over 4 or more examples (Fisher 1921): arctanh r, SE 1 / sqrt(n - 3)."""
    reach = NormalDist().inv_cdf(0.975) / math.sqrt(rows - 3)
    centre = math.atanh(min(max(correlation, -1 + 1e-12), 1 - 1e-12))
    return math.tanh(centre - reach), math.tanh(centre + reach)


def above_zero(correlation: float, rows: int) -> AboveZero:
    """Test whether Pearson's r over at least 4 examples is significantly above 0."""
    return AboveZero(correlation, *fisher_interval(correlation, rows), rows)
