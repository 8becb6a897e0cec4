"""A number with its 95 % interval: as statistics compute it, and as records store it."""

import math
from dataclasses import dataclass
from typing import TypedDict


class IntervalFields(TypedDict):
    """An `Interval` as fields of a record."""

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
        """Return the interval as fields of a record."""
        return IntervalFields(value=self.value, low=self.low, high=self.high, n=self.n)


class RecordFields(TypedDict):
    """A `RecordInterval` as fields of a record."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class RecordInterval:
    """A number with its 95 % interval as records store it; None if undefined."""

    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, value: float, low: float, high: float) -> "RecordInterval":
        """Return the interval of numbers that are NaN or infinite if undefined; both bounds are stored, or neither."""
        if not math.isfinite(value):
            return cls(None, None, None)
        bounded = math.isfinite(low) and math.isfinite(high)
        return cls(float(value), *((float(low), float(high)) if bounded else (None, None)))

    def fields(self) -> RecordFields:
        """Return the interval as fields of a record."""
        return RecordFields(value=self.value, low=self.low, high=self.high)
