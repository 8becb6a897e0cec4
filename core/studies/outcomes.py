"""How accurate predictions are, how ablations and perturbations change them, and the columns that hold these numbers.

The metrics of a result row are in columns such as accuracy, accuracy_change and accuracy_low.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..interval import Estimate, Interval, estimate_of, finite
from ..scoring import effects
from ..scoring.intervals import wilson_interval
from ..store.rows import Row
from ..tasks.glue import Task

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
    """The metrics of one result row. Results are ranked by the first metric."""

    every: tuple[Metric, ...]

    def values(self) -> Row:
        return {metric.name: metric.value for metric in self.every}

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


def _estimate(name: str, estimate: Estimate | None, low: str, high: str) -> Row:
    ends = (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)
    return dict(zip((name, low, high), ends, strict=True))


def _changes(metrics: Metrics) -> Row:
    """Return the columns of a row: contrasts, then metrics with changes, then those of whole inputs."""
    row: Row = {}
    for metric in metrics.every:
        contrasts = {f"{metric.name}_{beside}": getattr(metric, beside) for beside in CONTRASTS}
        for name, contrast in contrasts.items() if any(contrasts.values()) else ():
            row |= _estimate(name, contrast, f"{name}_low", f"{name}_high")
    for metric in metrics.every:
        ends = (f"{metric.name}_low", f"{metric.name}_high")
        row |= {metric.name: metric.value} | _estimate(f"{metric.name}_change", metric.change, *ends)
    return row | {f"{metric.name}_full": metric.full for metric in metrics.every if metric.full is not None}


def _changes_alone(metrics: Metrics) -> Row:
    row: Row = {}
    for metric in metrics.every:
        row |= _estimate(f"{metric.name}_change", metric.change, f"{metric.name}_low", f"{metric.name}_high")
    return row


CONTRASTS = ("apart", "control", "beyond_apart", "beyond_control")
METRICS = {"read": _metrics, "write": Metrics.values}  # metadata of the field that holds the metrics of a row
CHANGES = {"read": _metrics, "write": _changes}  # the same of a row whose metrics are told as changes
CHANGES_ALONE = {"read": _metrics, "write": _changes_alone}  # and of one that has the changes only


# ---------------------------------------------------------------- metrics of predictions


def metrics_of(task: Task) -> tuple[str, ...]:
    """Return the names of the task metrics for which intervals are computed. Results are ranked by the first metric."""
    return ("pearson",) if task.is_score else tuple(task.metrics)


def outcomes(task: Task, gold: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return one outcome per example. The mean of the outcomes is the accuracy or, for scores, Pearson's r."""
    return effects.row_correlations(gold, predicted) if task.is_score else (predicted == gold).astype(float)


def metrics_before(task: Task, gold: np.ndarray, plain: np.ndarray) -> Metrics:
    """Return the metrics of the unmodified model without confidence intervals. An undefined metric is None."""
    ones = np.ones((1, len(gold)))
    values = {name: finite(effects.counted(name, gold, plain[None], ones)[0, 0]) for name in metrics_of(task)}
    return Metrics(tuple(Metric(name, value) for name, value in values.items()))


def prediction_changes(task: Task, gold: np.ndarray, plain: np.ndarray, changed: np.ndarray, *, seed: int) -> list[Row]:
    """Compare the predictions `changed` [ablation, example] with the predictions `plain` without ablation. Return the
    fields of one `Changed` record per ablation, with p-values corrected for the number of ablations."""
    before, after = outcomes(task, gold, plain), outcomes(task, gold, changed)
    corrected = effects.max_t(before, after, seed=seed)
    whole = metrics_before(task, gold, plain)
    measured = {name: effects.metric_intervals(name, gold, plain, changed) for name in metrics_of(task)}
    told = []
    for k in range(len(changed)):
        metrics = Metrics(tuple(changed_metric(metric, measured[metric.name][k]) for metric in whole.every))
        fields: Row = {"n": len(gold), "metrics": metrics, "flipped": None, "mcnemar": None, "p": float(corrected[k])}
        if not task.is_score:
            fields["flipped"] = int(effects.flips(plain, changed)[k])
            fields["changed_rate"], fields["changed_low"], fields["changed_high"] = share_interval(changed[k] != plain)
            fields["mcnemar"] = effects.mcnemar(before.astype(bool), after[k].astype(bool))
        told.append(fields)
    return told


def changed_metric(before: Metric, change: Interval) -> Metric:
    """Return the changed value of a metric and the change with its interval. Undefined values and changes are None."""
    value = None if change.value is None or before.value is None else before.value + change.value
    return Metric(before.name, value, estimate_of(change, before.name))


def share_interval(hits: np.ndarray) -> tuple[float, float, float]:
    """Return the fraction of True values with its 95 % Wilson interval. Without values, return three NaNs."""
    if not len(hits):
        return (float("nan"),) * 3
    value, low, high = share_intervals(hits.sum(), len(hits))
    return float(value), float(low), float(high)


def share_intervals(counts: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide counts by the number of examples (`rows`). Return these fractions with their 95 % Wilson intervals."""
    low, high = wilson_interval(np.asarray(counts), rows)
    return counts / rows, np.where(counts > 0, low, 0.0), np.where(counts < rows, high, 1.0)  # exactly 0 or 1
