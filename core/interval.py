"""A number with its 95 % interval: as statistics compute it, and as records store it."""

import math
from dataclasses import dataclass
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
    """A number with its 95 % interval in the form that records store; None if undefined."""

    value: float | None
    low: float | None
    high: float | None

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
