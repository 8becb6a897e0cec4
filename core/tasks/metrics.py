"""Metrics of tasks, and the scores of constant predictions.

Accuracy and F1 are from 0 to 1, correlations from -1 to 1. A correlation with constant predictions is undefined (None).
"""

import warnings
from collections.abc import Sequence

import numpy as np
import scipy  # its parts load when they are used

from ..errors import InputError
from ..interval import finite
from .glue import Task

Number = float | None
Values = Sequence[int | float] | np.ndarray
UNDEFINED = "undefined"


def metrics(task: Task, gold: Values, predicted: Values) -> dict[str, Number]:
    """Compute the metrics of a task from gold and predicted labels. Accuracy and F1 are fractions, not percentages.

    Accuracy; F1 of class 1 if the task uses it; for STS-B Pearson's r, Spearman's rho and the mean squared error on its
    0-to-5 scale (Kovaleva et al. 2019, run_classifier). F1 is 0 if nothing is predicted as 1; a correlation is None if
    scores or predictions are constant. Raises InputError without examples, or for another number of predictions.
    """
    if len(gold) != len(predicted) or not len(gold):
        raise InputError(
            f"Metrics need at least one example, and one prediction for each example; got {len(gold)} examples and "
            f"{len(predicted)} predictions. Predict all examples."
        )
    from sklearn.metrics import accuracy_score, f1_score, mean_squared_error  # 1 s at start

    scores: dict[str, Number]
    if not task.is_score:
        scores = {"accuracy": float(accuracy_score(gold, predicted))}
        if "f1" in task.metrics:
            scores["f1"] = float(f1_score(gold, predicted, pos_label=1, zero_division=0.0))
        return scores
    wanted, given = np.asarray(gold, dtype=float), np.asarray(predicted, dtype=float)
    scores = {"pearson": None, "spearman": None, "mse": float(mean_squared_error(wanted, given))}
    if len(wanted) > 1 and not is_constant(wanted) and not is_constant(given):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # near-constant input is handled below
            scores["pearson"] = finite(scipy.stats.pearsonr(wanted, given).statistic)
            scores["spearman"] = finite(scipy.stats.spearmanr(wanted, given).statistic)
    return scores


def is_constant(predicted: Values) -> bool:
    """Return whether all predictions are equal within 1e-4, relative to the largest absolute value if it exceeds 1."""
    values = np.asarray(predicted, dtype=float)
    return bool(np.ptp(values) <= 1e-4 * max(1.0, float(np.abs(values).max()))) if len(values) else True


def shown(value: Number, digits: int = 1) -> str:
    """Return a metric in percent as text, such as "91.2"; "undefined" if the metric is None."""
    return UNDEFINED if value is None else f"{100 * value:.{digits}f}"


def majority(task: Task, train: Values, dev: Values) -> tuple[str, dict[str, Number]]:
    """Return the most frequent train label, and the metrics of predicting this label for every dev example.

    For scores, the label is "mean", and the correlations are None.
    """
    if task.is_score:
        return "mean", metrics(task, dev, [float(np.mean(train))] * len(dev))
    commonest = int(np.argmax(np.bincount(np.asarray(train, dtype=int), minlength=len(task.labels))))
    return task.labels[commonest], metrics(task, dev, [commonest] * len(dev))
