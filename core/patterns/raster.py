"""Attention maps of any length as one array: centre-padded with zeros, never resized, never normalised.

The same rule in training and inference (the paper's later code trained on centre-padded maps and classified
top-left crops, which are different pictures to a convolution).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Float32

SMALLEST = 32  # the paper's eight valid convolutions and two pools need at least this many rows
Map = Float[np.ndarray, "_query _key"]  # square; one length each, so the axes are not bound across a sequence


def training_size(lengths: Sequence[int], *, limit: int | None = None) -> int:
    """Rows and columns of the raster: the longest labelled map, at least SMALLEST, at most `limit` if given."""
    longest = max([SMALLEST, *lengths])
    return longest if limit is None else max(SMALLEST, min(longest, limit))


def rasterize(maps: Sequence[Map], size: int) -> tuple[Float32[np.ndarray, "map size size"], int]:
    """Maps of any length as one array.

    A shorter map lies in the middle, the odd row below and to the right; of a longer one the top-left corner stays,
    where the first token's column and the start of the diagonal are.

    Args:
        maps: weights, 0 to 1.

    Returns:
        The maps, 0 around them; and how many were cropped.
    """
    out = np.zeros((len(maps), size, size), dtype=np.float32)
    for target, weights in zip(out, maps, strict=True):
        length = min(len(weights), size)
        start = (size - length) // 2
        target[start : start + length, start : start + length] = weights[:length, :length]
    return out, sum(len(weights) > size for weights in maps)


def from_float16(weights: bytes, length: int) -> Any:
    """The map [query, key] of stored bytes (float16, row by row), float32."""
    return np.frombuffer(weights, dtype="<f2").reshape(length, length).astype(np.float32)
