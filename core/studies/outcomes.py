"""How accurate predictions are, and how ablations and perturbations change them."""

from typing import Required, TypedDict

import numpy as np

from ..interval import Interval, estimate_of, finite
from ..scoring import effects
from ..scoring.intervals import wilson_interval
from ..tasks.glue import Task
from .metric_columns import Metric, Metrics


def metrics_of(task: Task) -> tuple[str, ...]:
    """Return the names of a task's metrics that can be bootstrapped. Results are ranked by the first metric."""
    return ("pearson",) if task.is_score else tuple(task.metrics)


def outcomes(task: Task, gold: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return one number per example, whose mean is the metric of the task: accuracy or, for scores, Pearson's r."""
    return effects.row_correlations(gold, predicted) if task.is_score else (predicted == gold).astype(float)


class ChangeFields(TypedDict, total=False):
    """The changes that an ablation causes in predictions. Rates and McNemar's p are None for regression."""

    n: Required[int]
    metrics: Required[Metrics]
    flipped: Required[int | None]
    changed_rate: float | None
    changed_low: float | None
    changed_high: float | None
    mcnemar: Required[float | None]
    p: Required[float]


def metrics_before(task: Task, gold: np.ndarray, plain: np.ndarray) -> Metrics:
    """Return the metrics of the unmodified model without confidence intervals. An undefined metric is None."""
    ones = np.ones((1, len(gold)))
    values = {name: finite(effects.counted(name, gold, plain[None], ones)[0, 0]) for name in metrics_of(task)}
    return Metrics(tuple(Metric(name, value) for name, value in values.items()))


def prediction_changes(
    task: Task, gold: np.ndarray, plain: np.ndarray, changed: np.ndarray, *, seed: int
) -> list[ChangeFields]:
    """Measure how ablations [target, example] change predictions, with p corrected over all ablations (max-T)."""
    before, after = outcomes(task, gold, plain), outcomes(task, gold, changed)
    corrected = effects.max_t(before, after, seed=seed)
    whole = metrics_before(task, gold, plain)
    measured = {name: effects.metric_intervals(name, gold, plain, changed) for name in metrics_of(task)}
    told = []
    for k in range(len(changed)):
        metrics = Metrics(tuple(_changed(metric, measured[metric.name][k]) for metric in whole.every))
        fields = ChangeFields(n=len(gold), metrics=metrics, flipped=None, mcnemar=None, p=float(corrected[k]))
        if not task.is_score:
            fields["flipped"] = int(effects.flips(plain, changed)[k])
            fields["changed_rate"], fields["changed_low"], fields["changed_high"] = share_interval(changed[k] != plain)
            fields["mcnemar"] = effects.mcnemar(before.astype(bool), after[k].astype(bool))
        told.append(fields)
    return told


def _changed(before: Metric, change: Interval) -> Metric:
    value = None if change.value is None or before.value is None else before.value + change.value
    return Metric(before.name, value, estimate_of(change, before.name))


def share_interval(hits: np.ndarray) -> tuple[float, float, float]:
    """Return the fraction of True values and its 95 % Wilson interval, or NaN for an empty array."""
    if not len(hits):
        return (float("nan"),) * 3
    value, low, high = share_intervals(hits.sum(), len(hits))
    return float(value), float(low), float(high)


def share_intervals(counts: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counts as fractions of all examples, with 95 % Wilson intervals."""
    low, high = wilson_interval(np.asarray(counts), rows)
    return counts / rows, np.where(counts > 0, low, 0.0), np.where(counts < rows, high, 1.0)  # exactly 0 or 1
