"""A number with its 95 % interval, and the arithmetic of such numbers."""

import math
from dataclasses import dataclass, field
from typing import Any


def finite(value: float) -> float | None:
    """Return the value as a float, or None if the value is not finite."""
    return float(value) if math.isfinite(value) else None


def or_nan(value: float | None) -> float:
    """Return the value, or NaN if it is None."""
    return math.nan if value is None else value


def in_points(share: float | None) -> float | None:
    """Convert a fraction to percentage points. None stays None."""
    return None if share is None else 100 * share


@dataclass(frozen=True)
class Interval:
    """A number with the bounds of its 95 % confidence interval. Numbers that are undefined are None.

    Attributes:
        unit: what the number measures, such as "weight", "share" or "accuracy"; "" if it is not stated.
        n: number of words, pairs of runs, ... from which it was computed, as stated by the function that returns it.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    unit: str = field(default="", compare=False)
    n: int | None = None

    @classmethod
    def of(cls, value: float, low: float, high: float, n: int | None = None) -> "Interval":
        """Create an interval from numbers that may be NaN or infinite. If the value is not finite, all three numbers
        become None; if a bound is not finite, both bounds become None."""
        if not math.isfinite(value):
            return cls(None, n=n)
        if not (math.isfinite(low) and math.isfinite(high)):
            return cls(float(value), n=n)
        return cls(float(value), float(low), float(high), n=n)

    def shifted(self, by: float) -> "Interval":
        """Return the interval after adding a constant to the number and both bounds."""
        value, low, high = (None if end is None else end + by for end in (self.value, self.low, self.high))
        return Interval(value, low, high, self.unit, self.n)

    def fields(self) -> dict[str, Any]:
        """Return a dictionary with the value, its bounds and, if known, n, as columns of a result row."""
        stated = {} if self.n is None else {"n": self.n}
        return {"value": self.value, "low": self.low, "high": self.high} | stated


@dataclass(frozen=True)
class Estimate(Interval):
    """A number that is always defined, with its 95 % confidence interval if there is one."""

    value: float

    def __neg__(self) -> "Estimate":
        low, high = (None if end is None else -end for end in (self.high, self.low))
        return Estimate(-self.value, low, high, self.unit)

    def __sub__(self, other: "Estimate") -> "Estimate":
        """Return the difference, with an interval as wide as the sum's. Raises TypeError for other units."""
        return self + -other

    def __add__(self, other: "Estimate") -> "Estimate":
        """Return the sum of two estimates. Interval ends are added, so the interval is never too narrow, however the
        two depend on each other. Raises TypeError if the units differ."""
        if self.unit and other.unit and self.unit != other.unit:
            raise TypeError(
                f'Estimates can only be added or subtracted if they have the same unit; got "{self.unit}" and '
                f'"{other.unit}". Convert one of them first.'
            )
        pairs = ((self.low, other.low), (self.high, other.high))
        low, high = (None if one is None or two is None else one + two for one, two in pairs)
        return Estimate(self.value + other.value, low, high, self.unit or other.unit)


def estimate_of(measured: Interval, unit: str = "") -> Estimate | None:
    """Return a measured value and its interval as an estimate; None if the value is undefined."""
    return None if measured.value is None else Estimate(measured.value, measured.low, measured.high, unit)
