"""A number with its 95 % interval."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..interval import RecordInterval


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval. `low` and `high` are None if there is no interval.

    `unit` says what the number measures, such as "weight", "share" or "accuracy"; "" if it is not stated. Estimates
    with different units cannot be added or subtracted.
    """

    value: float
    low: float | None = None
    high: float | None = None
    unit: str = field(default="", compare=False)

    def __neg__(self) -> "Estimate":
        """Return the estimate with its sign reversed."""
        low, high = (None if end is None else -end for end in (self.high, self.low))
        return Estimate(-self.value, low, high, self.unit)

    def __sub__(self, other: "Estimate") -> "Estimate":
        """Return the difference of two estimates, with an interval as wide as that of their sum. Raises TypeError if
        the units differ.
        """
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


def estimate_in(row: Mapping[str, Any], name: str, low: str, high: str, unit: str = "") -> Estimate | None:
    """Return the estimate stored in three columns of a row (value, low and high); None if the value is undefined."""
    found = (row.get(column) for column in (name, low, high))
    value, start, end = (None if number is None or number != number else float(number) for number in found)
    return None if value is None else Estimate(value, start, end, unit)
