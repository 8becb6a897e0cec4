"""Attention maps of any length as one array: zero-padded around the centre, never resized or normalised.

The same rule applies in training and in use. (The later code of the paper trained on centre-padded maps but classified
top-left crops, which look different to a convolution.)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Float32

SMALLEST = 32  # least size for the paper's eight valid convolutions and two pooling layers
Map = Float[np.ndarray, "_query _key"]  # square; each map has its own length


def training_size(lengths: Sequence[int]) -> int:
    """Return the size to which attention maps are padded for training. This is the size of the longest map, but at
    least SMALLEST."""
    return max([SMALLEST, *lengths])


def rasterize(maps: Sequence[Map], size: int) -> tuple[Float32[np.ndarray, "map size size"], int]:
    """Pad or crop attention maps to one size. Returns the maps as one array, and the number of cropped maps.

    A shorter map is centred, with an odd row below and to the right. A longer map is cropped to its top-left corner.
    """
    out = np.zeros((len(maps), size, size), dtype=np.float32)
    for target, weights in zip(out, maps, strict=True):
        length = min(len(weights), size)
        start = (size - length) // 2
        target[start : start + length, start : start + length] = weights[:length, :length]
    return out, sum(len(weights) > size for weights in maps)


def from_float16(weights: bytes, length: int) -> Any:
    """Convert an attention map that is stored as float16 bytes to a float32 array [query, key]."""
    return np.frombuffer(weights, dtype="<f2").reshape(length, length).astype(np.float32)
