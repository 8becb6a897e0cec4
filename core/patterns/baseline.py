"""A baseline that a network must beat: logistic regression on statistics a person would think of.

Every statistic is between 0 and 1 or a length-free ratio, so maps of all lengths share one scale.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float64

OFFSETS = (-2, -1, 0, 1, 2)  # key minus query: two back ... two on
BANDS = 8  # blocks a side of the coarse picture
STATISTICS = (
    *(f"mass at offset {k:+d}" for k in OFFSETS),
    "first column",
    "last column",
    "strongest column",
    "second column",
    "strongest inner column",
    "columns above 3x uniform",
    "entropy over ln of visible keys",
    "largest weight",
    "mean of row maxima",
    "lower-left half",
    "two blocks best cut",
    "first half of keys",
    "column variation",
    "row variation",
    *(f"coarse {r},{c}" for r in range(BANDS) for c in range(BANDS)),
)

Map = Float[np.ndarray, "_query _key"]  # square; one length each, so the axes are not bound across a sequence


def statistics(attention: Map) -> Float64[np.ndarray, " statistic"]:
    """Hand-made statistics of one map.

    Args:
        attention: the map, rows sum to 1.

    Returns:
        In the order of STATISTICS, all finite.
    """
    weights = np.asarray(attention, dtype=np.float64)
    columns = weights.mean(0)
    return np.concatenate(
        [
            [_diagonal(weights, k) for k in OFFSETS],
            _columns(columns),
            _spread(weights),
            [
                np.tril(weights, -1).sum() / len(weights),
                _best_blocks(weights),
                weights[:, : (len(weights) + 1) // 2].sum() / len(weights),
                columns.std() * len(columns) / (1 + columns.std() * len(columns)),
                weights.std(0).mean(),
            ],
            _coarse(weights).ravel(),
        ]
    )


def features(maps: Sequence[Map]) -> Float64[np.ndarray, "map statistic"]:
    """The `statistics` of every map.

    Args:
        maps: at least one, of any lengths; rows sum to 1.

    Returns:
        In the order of the maps and of STATISTICS, all finite.
    """
    return np.stack([statistics(weights) for weights in maps])


def _diagonal(weights: np.ndarray, offset: int) -> float:
    """Mean weight on key = query + offset, over the queries that have such a key."""
    line = np.diagonal(weights, offset) if abs(offset) < len(weights) else np.zeros(0)
    return float(line.mean()) if line.size else 0.0


def _columns(columns: np.ndarray) -> list[float]:
    ordered = np.sort(columns)[::-1]
    inner = columns[1:-1]
    return [
        columns[0],
        columns[-1],
        ordered[0],
        ordered[1] if len(ordered) > 1 else 0.0,
        inner.max() if inner.size else 0.0,
        float((columns > 3 / len(columns)).mean()),
    ]


def _spread(weights: np.ndarray) -> list[float]:
    positive = np.clip(weights, 1e-12, None)
    entropy = -(weights * np.log(positive)).sum(-1)
    visible = np.maximum((weights > 0).sum(-1), 2)
    return [float((entropy / np.log(visible)).mean()), float(weights.max()), float(weights.max(-1).mean())]


def _best_blocks(weights: np.ndarray) -> float:
    """Largest mean mass of rows inside their own of two blocks on the diagonal, over every cut, less its chance."""
    length = len(weights)
    if length < 4:
        return 0.0
    total = np.zeros((length + 1, length + 1))
    total[1:, 1:] = weights.cumsum(0).cumsum(1)
    cuts = np.arange(2, length - 1)
    inside = total[cuts, cuts] + total[-1, -1] - total[cuts, -1] - total[-1, cuts] + total[cuts, cuts]
    chance = (cuts**2 + (length - cuts) ** 2) / length
    return float(((inside - chance) / length).max())


def _coarse(weights: np.ndarray) -> np.ndarray:
    """The map as BANDS x BANDS mean weights times the length of a band, so that uniform is 1/BANDS everywhere."""
    edges = np.linspace(0, len(weights), BANDS + 1)
    overlap = np.clip(
        np.minimum(edges[1:, None], np.arange(1, len(weights) + 1))
        - np.maximum(edges[:-1, None], np.arange(len(weights))),
        0,
        None,
    )
    return overlap @ weights @ overlap.T / (len(weights) / BANDS)
