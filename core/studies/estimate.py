"""A number with its 95 % interval."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval; low and high None where there is none."""

    value: float
    low: float | None = None
    high: float | None = None

    def __neg__(self) -> "Estimate":
        """The estimate with its sign turned."""
        ends = [None if end is None else -end for end in (self.high, self.low)]
        return Estimate(-self.value, *ends)

    def __sub__(self, other: "Estimate") -> "Estimate":
        """The difference, as wide as the sum."""
        return self + -other

    def __add__(self, other: "Estimate") -> "Estimate":
        """The sum, with the sum of the ends: never too narrow, whatever the two have in common."""
        return Estimate(self.value + other.value, _sum(self.low, other.low), _sum(self.high, other.high))


class HasInterval(Protocol):
    """A value with the ends of its interval, as statistics leave it (core.scoring.effects.Interval)."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def estimate_of(measured: HasInterval) -> Estimate | None:
    """What was measured, or None where it is not defined."""
    return None if measured.value is None else Estimate(measured.value, measured.low, measured.high)


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def estimate_in(row: Mapping[str, Any], name: str, low: str, high: str) -> Estimate | None:
    """The estimate whose number and ends stand in these columns; None where the number is not defined."""
    value, ends = row.get(name), [row.get(low), row.get(high)]
    return (
        None
        if value is None or value != value
        else Estimate(float(value), *((None if end is None or end != end else float(end)) for end in ends))
    )
