"""Rows with a value, its interval and a name, as the studies of probes and of weights leave them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from .estimate import Estimate
from .records import Result

V = TypeVar("V", bound="Valued")


@dataclass(frozen=True, kw_only=True)
class Valued(Result):
    """A value with its 95 % interval over n of what the row counts; None where it is undefined."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int
    note: str | None = None

    @property
    def estimate(self) -> Estimate:
        """The value with its interval; 0 without one where it is undefined."""
        return Estimate(float(self.value or 0.0), self.low, self.high)

    @classmethod
    def defined(cls: type[V], rows: Iterable[Mapping[str, Any]]) -> list[V]:
        """The records of its kind whose value is defined, in order."""
        return [record for record in cls.among(rows) if record.value is not None]
