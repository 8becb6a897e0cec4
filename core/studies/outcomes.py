"""How right predictions are, as the studies of disabled heads judge it, and their pieces put together again."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from ..scoring import effects
from ..tasks.glue import Task


@runtime_checkable
class RowPartial(Protocol):
    """A partial result that has places of rows, and arrays whose last axis is those rows."""

    @property
    def rows(self) -> np.ndarray: ...


def in_order(pieces: Sequence[RowPartial], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Arrays of all pieces, put together in the order of the task's rows.

    Args:
        pieces: their `rows` say the order.
        names: of the arrays; the last axis of each is the rows.

    Returns:
        The arrays by name. *Shape:* (..., row).
    """
    order = np.argsort(np.concatenate([piece.rows for piece in pieces]))
    return {name: np.concatenate([getattr(piece, name) for piece in pieces], axis=-1)[..., order] for name in names}


def metrics_of(task: Task) -> tuple[str, ...]:
    """The task's metrics that can be resampled; the first one ranks."""
    return ("pearson",) if task.is_score else tuple(task.metrics)


def outcomes(task: Task, gold: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """How right each row is, so that the mean over rows is the metric that ranks.

    Args:
        gold: labels or scores. *Shape:* (row,).
        predicted: likewise. *Shape:* (row,) or (variant, row).

    Returns:
        1 or 0 for classes, the row's share of Pearson's r for scores. *Shape:* that of `predicted`, float.
    """
    return effects.row_correlations(gold, predicted) if task.is_score else (predicted == gold).astype(float)


def finite(value: float) -> float | None:
    """The value, or None where it is not defined."""
    return float(value) if np.isfinite(value) else None
