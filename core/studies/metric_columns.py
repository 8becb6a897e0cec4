"""The metrics of a task in a row, whose columns are named after them: accuracy, accuracy_change, accuracy_low ..."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.studies.estimate import Estimate, estimate_in

RANKING = ("accuracy", "f1", "pearson")  # the first that a row has ranks


@dataclass(frozen=True)
class Metric:
    """A metric of some predictions; None where it is undefined. change: from the untouched model's, with its interval.

    full: of the whole inputs, on the same rows. Of a group of near-duplicate heads also: apart, what its heads cost one
    at a time, added up; control, what random heads cost; beyond_apart, beyond_control: what it costs beyond each.
    """

    name: str
    value: float | None = None
    change: Estimate | None = None
    full: float | None = None
    apart: Estimate | None = None
    control: Estimate | None = None
    beyond_apart: Estimate | None = None
    beyond_control: Estimate | None = None


@dataclass(frozen=True)
class Metrics:
    """The metrics of a row, that which ranks first."""

    every: tuple[Metric, ...]

    @property
    def first(self) -> Metric:
        """The metric that ranks. Raises LookupError for a row without metrics."""
        return self.every[0]

    def of(self, name: str) -> Metric | None:
        """The metric of that name, or None."""
        return next((metric for metric in self.every if metric.name == name), None)


def _contrast(row: Mapping[str, Any], name: str) -> Estimate | None:
    return estimate_in(row, name, f"{name}_low", f"{name}_high")


def _value(row: Mapping[str, Any], name: str) -> float | None:
    known = estimate_in(row, name, "", "")
    return None if known is None else known.value


def _metric(row: Mapping[str, Any], name: str) -> Metric:
    return Metric(
        name,
        _value(row, name),
        estimate_in(row, f"{name}_change", f"{name}_low", f"{name}_high"),
        _value(row, f"{name}_full"),
        *(_contrast(row, f"{name}_{beside}") for beside in ("apart", "control", "beyond_apart", "beyond_control")),
    )


def _metrics(row: Mapping[str, Any]) -> Metrics:
    there = [name for name in RANKING if name in row or f"{name}_change" in row]
    return Metrics(tuple(_metric(row, name) for name in there))


METRICS = {"read": _metrics}  # metadata of the field that holds the metrics of a row
