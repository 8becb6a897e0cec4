"""Metrics of the tasks, by scikit-learn and SciPy, and what constant predictions score.

Accuracy and F1 lie between 0 and 1, correlations between -1 and 1. A correlation with constant predictions does
not exist: it is None here and "undefined" wherever a person reads it, never NaN.
"""

import warnings
from collections.abc import Sequence

import numpy as np
import scipy  # its parts load when they are used

from ..errors import InputError
from .glue import Task

Number = float | None
Values = Sequence[int | float] | np.ndarray
UNDEFINED = "undefined"


def metrics(task: Task, gold: Values, predicted: Values) -> dict[str, Number]:
    """The task's metrics of predictions against gold labels; published tables print them x 100.

    Accuracy; F1 of class 1 where the task asks for it; for STS-B Pearson's r, Spearman's rho and the mean squared error
    on its 0-to-5 scale. Source: methods of Kovaleva et al. 2019, run_classifier.

    Returns:
        By name. F1 is 0 where nothing is predicted as 1, as scikit-learn has it; a correlation is None where the scores
            or the predictions are constant.

    Raises:
        InputError: no row, or not one prediction a row.
    """
    if len(gold) != len(predicted) or not len(gold):
        raise InputError(f"Every row needs one prediction; seen {len(gold)} rows and {len(predicted)} predictions.")
    if task.is_score:
        return _correlations(np.asarray(gold, dtype=float), np.asarray(predicted, dtype=float))
    from sklearn.metrics import accuracy_score, f1_score  # 1 s of start-up

    scores: dict[str, Number] = {"accuracy": float(accuracy_score(gold, predicted))}
    if "f1" in task.metrics:
        scores["f1"] = float(f1_score(gold, predicted, pos_label=1, zero_division=0.0))
    return scores


def _correlations(gold: np.ndarray, predicted: np.ndarray) -> dict[str, Number]:
    from sklearn.metrics import mean_squared_error  # 1 s of start-up

    scores: dict[str, Number] = {"pearson": None, "spearman": None, "mse": float(mean_squared_error(gold, predicted))}
    if len(gold) < 2 or is_constant(gold) or is_constant(predicted):
        return scores
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # near-constant input: the value is judged below
        scores["pearson"] = _finite(scipy.stats.pearsonr(gold, predicted).statistic)
        scores["spearman"] = _finite(scipy.stats.spearmanr(gold, predicted).statistic)
    return scores


def _finite(value: float) -> Number:
    return float(value) if np.isfinite(value) else None


def is_constant(predicted: Values) -> bool:
    """Whether every prediction is the same, up to the noise of float32 sums for scores; of no prediction too."""
    values = np.asarray(predicted, dtype=float)
    return bool(np.ptp(values) <= 1e-4 * max(1.0, float(np.abs(values).max()))) if len(values) else True


def shown(value: Number, digits: int = 1) -> str:
    """A metric as tables print it (x 100), or "undefined"."""
    return UNDEFINED if value is None else f"{100 * value:.{digits}f}"


def majority(task: Task, train: Values, dev: Values) -> tuple[str, dict[str, Number]]:
    """The commonest train label, and what it scores on dev.

    Returns:
        The label's name (of the smaller index on a tie) and its metrics by name; "mean" of scores, whose correlations
            are None.
    """
    if task.is_score:
        return "mean", metrics(task, dev, [float(np.mean(train))] * len(dev))
    commonest = int(np.argmax(np.bincount(np.asarray(train, dtype=int), minlength=len(task.labels))))
    return task.labels[commonest], metrics(task, dev, [commonest] * len(dev))
