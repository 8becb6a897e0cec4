"""Predictions that changed under variants: the metric's change, flips, McNemar, one correction for all."""

from typing import Required, TypedDict

import numpy as np

from ..scoring import effects
from ..scoring.intervals import wilson_interval
from ..tasks.glue import Task
from .estimate import estimate_of
from .metric_columns import Metric, Metrics
from .outcomes import finite, metrics_of, outcomes


class ChangeFields(TypedDict, total=False):
    """What a record says of predictions under one variant; shares and McNemar's p are not of scores."""

    n: Required[int]
    metrics: Required[Metrics]
    flipped: Required[int | None]
    changed_rate: float | None
    changed_low: float | None
    changed_high: float | None
    mcnemar: Required[float | None]
    p: Required[float]


def metrics_before(task: Task, gold: np.ndarray, plain: np.ndarray) -> Metrics:
    """The metrics of the untouched model's predictions, without intervals.

    Args:
        gold: labels or scores. *Shape:* (row,).
        plain: predictions. *Shape:* (row,).

    Returns:
        Those of `metrics_of(task)`, in that order; None for one that is not defined.
    """
    ones = np.ones((1, len(gold)))
    values = {name: finite(effects.counted(name, gold, plain[None], ones)[0, 0]) for name in metrics_of(task)}
    return Metrics(tuple(Metric(name, value) for name, value in values.items()))


def prediction_changes(
    task: Task, gold: np.ndarray, plain: np.ndarray, changed: np.ndarray, *, seed: int
) -> list[ChangeFields]:
    """What each variant changes.

    Args:
        gold: labels or scores. *Shape:* (row,).
        plain: predictions of the untouched model. *Shape:* (row,).
        changed: predictions under every variant. *Shape:* (variant, row).

    Returns:
        Of each variant every metric with its change and paired interval; of classes how many predictions flipped, their
        share with Wilson's interval (of none too) and McNemar's p; p corrected over the variants (max-T).
    """
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


def _changed(before: Metric, change: effects.Interval) -> Metric:
    value = None if change.value is None or before.value is None else before.value + change.value
    return Metric(before.name, value, estimate_of(change))


def share_interval(hits: np.ndarray) -> tuple[float, float, float]:
    """A share of rows with its 95 % Wilson interval.

    Args:
        hits: whether each row counts. *Shape:* (row,), bool.

    Returns:
        The share and the ends of its interval, 0 to 1; NaN for no rows.
    """
    if not len(hits):
        return (float("nan"),) * 3
    value, low, high = share_intervals(hits.sum(), len(hits))
    return float(value), float(low), float(high)


def share_intervals(counts: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shares of rows with their 95 % Wilson intervals.

    Args:
        counts: of each share, 0 to rows. *Shape:* (...).
        rows: that all of them are shares of; at least 1.

    Returns:
        Values and the lower and upper ends, 0 to 1. *Shape:* (...).
    """
    low, high = wilson_interval(np.asarray(counts), rows)
    return counts / rows, np.where(counts > 0, low, 0.0), np.where(counts < rows, high, 1.0)  # not 3e-18
