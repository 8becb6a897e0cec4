"""The metrics of a task in a result row, in columns such as accuracy, accuracy_change and accuracy_low."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..interval import Estimate

RANKING = ("accuracy", "f1", "pearson")  # the first that a row has ranks


@dataclass(frozen=True)
class Metric:
    """The value of one metric, such as accuracy, and its change under an ablation. Undefined fields are None."""

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
    """All metrics of one result row. Results are ranked by the first metric."""

    every: tuple[Metric, ...]

    @property
    def first(self) -> Metric:
        return self.every[0]

    def of(self, name: str) -> Metric | None:
        """Return the metric with this name, or None if the row does not have it."""
        return next((metric for metric in self.every if metric.name == name), None)


def _estimate_in(row: Mapping[str, Any], name: str, low: str, high: str, unit: str = "") -> Estimate | None:
    """Return the estimate stored in three columns of a row (value, low and high); None if the value is undefined."""
    found = (row.get(column) for column in (name, low, high))
    value, start, end = (None if number is None or number != number else float(number) for number in found)
    return None if value is None else Estimate(value, start, end, unit)


def _value(row: Mapping[str, Any], name: str) -> float | None:
    known = _estimate_in(row, name, "", "")
    return None if known is None else known.value


def _metrics(row: Mapping[str, Any]) -> Metrics:
    there = [name for name in RANKING if name in row or f"{name}_change" in row]
    return Metrics(
        tuple(
            Metric(
                name,
                _value(row, name),
                _estimate_in(row, f"{name}_change", f"{name}_low", f"{name}_high", name),
                _value(row, f"{name}_full"),
                *(
                    _estimate_in(row, f"{name}_{other}", f"{name}_{other}_low", f"{name}_{other}_high")
                    for other in CONTRASTS
                ),
            )
            for name in there
        )
    )


def _values(metrics: Metrics) -> dict[str, Any]:
    return {metric.name: metric.value for metric in metrics.every}


def _estimate(name: str, estimate: Estimate | None, low: str, high: str) -> dict[str, Any]:
    ends = (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)
    return dict(zip((name, low, high), ends, strict=True))


def _changes(metrics: Metrics) -> dict[str, Any]:
    """Return the columns of a row: contrasts, then metrics with changes, then those of whole inputs."""
    row: dict[str, Any] = {}
    for metric in metrics.every:
        contrasts = {f"{metric.name}_{beside}": getattr(metric, beside) for beside in CONTRASTS}
        for name, contrast in contrasts.items() if any(contrasts.values()) else ():
            row |= _estimate(name, contrast, f"{name}_low", f"{name}_high")
    for metric in metrics.every:
        ends = (f"{metric.name}_low", f"{metric.name}_high")
        row |= {metric.name: metric.value} | _estimate(f"{metric.name}_change", metric.change, *ends)
    return row | {f"{metric.name}_full": metric.full for metric in metrics.every if metric.full is not None}


def _changes_alone(metrics: Metrics) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for metric in metrics.every:
        row |= _estimate(f"{metric.name}_change", metric.change, f"{metric.name}_low", f"{metric.name}_high")
    return row


CONTRASTS = ("apart", "control", "beyond_apart", "beyond_control")
METRICS = {"read": _metrics, "write": _values}  # metadata of the field that holds the metrics of a row
CHANGES = {"read": _metrics, "write": _changes}  # the same of a row whose metrics are told as changes
CHANGES_ALONE = {"read": _metrics, "write": _changes_alone}  # and of one that has the changes only
