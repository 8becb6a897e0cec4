"""Parts of maps that are drawn from the words of a class, so that their class is known before anything is trained."""

from typing import Any

import numpy as np

from .measures import Map

Random = np.random.Generator


def normalised(weights: Any, *, causal: bool = False) -> Map:
    """Rows that sum to 1; of a causal map nothing after the token itself."""
    weights = np.tril(weights) if causal else weights
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def background(rng: Random, length: int) -> Map:
    """Weights of a query on everything, a little uneven."""
    return rng.uniform(0.2, 1.0, (length, length)) / length


def columns(rng: Random, length: int, count: int = 2) -> Map:
    """Dark columns, the first of them on the first key."""
    picture = np.zeros((length, length))
    picture[:, [0, *rng.choice(length - 1, count - 1, replace=False) + 1]] = 1
    return picture


def line(rng: Random, length: int) -> Map:
    """The diagonal, or the line beside it."""
    return np.eye(length, k=int(rng.choice([-1, 0, 1])))


def halves(rng: Random, length: int) -> Map:
    """A square for each of two sentences."""
    cut = int(rng.integers(length // 3, 2 * length // 3))
    picture = np.zeros((length, length))
    picture[:cut, :cut], picture[cut:, cut:] = 1 / cut, 1 / (length - cut)
    return picture
