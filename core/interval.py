"""A number with its 95 % interval: as statistics compute it, as records store it, and as estimates are compared."""

import math
from dataclasses import dataclass, field
from typing import TypedDict


class IntervalFields(TypedDict):
    """The fields of an `Interval` in a stored record."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % interval; NaN if undefined.

    n: how many words, pairs of runs, ... it was computed from, as stated by the function that returns it.
    """

    value: float
    low: float
    high: float
    n: int = 0

    def fields(self) -> IntervalFields:
        """Return the number and its interval as fields of a record."""
        return IntervalFields(value=self.value, low=self.low, high=self.high, n=self.n)


class RecordFields(TypedDict):
    """The fields of a `RecordInterval` in a stored record."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class RecordInterval:
    """A number with its 95 % interval in the form that records store; None if undefined.

    `unit` says what the number measures, such as "weight", "share" or "accuracy"; "" if it is not stated.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    unit: str = field(default="", compare=False)

    @classmethod
    def of(cls, value: float, low: float, high: float) -> "RecordInterval":
        """Create the stored form of a number with an interval; NaN or infinite values become None. Both bounds are
        stored, or neither."""
        if not math.isfinite(value):
            return cls(None, None, None)
        bounded = math.isfinite(low) and math.isfinite(high)
        return cls(float(value), *((float(low), float(high)) if bounded else (None, None)))

    def fields(self) -> RecordFields:
        """Return the number and its interval as fields of a record."""
        return RecordFields(value=self.value, low=self.low, high=self.high)


@dataclass(frozen=True)
class Estimate(RecordInterval):
    """A defined number with its 95 % interval, if there is one. Estimates with different units cannot be added."""

    value: float

    def __neg__(self) -> "Estimate":
        """Return the estimate with its sign reversed."""
        low, high = (None if end is None else -end for end in (self.high, self.low))
        return Estimate(-self.value, low, high, self.unit)

    def __sub__(self, other: "Estimate") -> "Estimate":
        """Return the difference, with an interval as wide as the sum's. Raises TypeError for other units."""
        return self + -other

    def __add__(self, other: "Estimate") -> "Estimate":
        """Return the sum of two estimates. Interval ends are added, so the interval is never too narrow, however the
        two depend on each other.

        Raises TypeError if the units differ.
        """
        if self.unit and other.unit and self.unit != other.unit:
            raise TypeError(f'Estimates must have the same unit; got "{self.unit}" and "{other.unit}".')
        pairs = ((self.low, other.low), (self.high, other.high))
        low, high = (None if one is None or two is None else one + two for one, two in pairs)
        return Estimate(self.value + other.value, low, high, self.unit or other.unit)


def estimate_of(measured: RecordInterval, unit: str = "") -> Estimate | None:
    """Return a measured value and its interval as an estimate; None if the value is undefined."""
    return None if measured.value is None else Estimate(measured.value, measured.low, measured.high, unit)
