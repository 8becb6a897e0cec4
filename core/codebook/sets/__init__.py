"""Bundled class sets, one file each: `CLASS_SET` is the complete declaration. The functions here draw the shapes of
which their synthetic maps consist.
"""

from typing import Any

import numpy as np

from ..measures import Map

Random = np.random.Generator


def normalised(weights: Any, *, causal: bool = False) -> Map:
    """Scale the rows of an attention map to a sum of 1. If `causal`, first set weights on later tokens to 0."""
    weights = np.tril(weights) if causal else weights
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def background(rng: Random, length: int) -> Map:
    """Return a synthetic attention map with random, roughly uniform weights on all keys."""
    return rng.uniform(0.2, 1.0, (length, length)) / length


def columns(rng: Random, length: int, count: int = 2) -> Map:
    """Return a synthetic map with dark columns, one of them on the first key."""
    picture = np.zeros((length, length))
    picture[:, [0, *rng.choice(length - 1, count - 1, replace=False) + 1]] = 1
    return picture


def line(rng: Random, length: int) -> Map:
    """Return a synthetic map with a line on the diagonal or next to it."""
    return np.eye(length, k=int(rng.choice([-1, 0, 1])))


def halves(rng: Random, length: int) -> Map:
    """Return a synthetic map of two sentences, with one square on the diagonal for each sentence."""
    cut = int(rng.integers(length // 3, 2 * length // 3))
    picture = np.zeros((length, length))
    picture[:cut, :cut], picture[cut:, cut:] = 1 / cut, 1 / (length - cut)
    return picture
