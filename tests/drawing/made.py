"""Maps that no model made, of any size, for pages and payloads."""

import numpy as np

from core.attention import AttentionMaps
from core.drawing.panes import Pane, scored_pane


def random_maps(layers: int, heads: int, length: int, *, seed: int = 0) -> AttentionMaps:
    """Sharp and flat rows, every value different."""
    raw = np.random.default_rng(seed).standard_normal((layers, heads, length, length)).astype(np.float32) * 3
    weights = np.exp(raw - raw.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return AttentionMaps(weights, tuple(f"token{k}" for k in range(length)), (0,) * length)


def random_pane(layers: int, heads: int, length: int, title: str = "random") -> Pane:
    maps = random_maps(layers, heads, length)
    return scored_pane(title, maps, first=0, separators=[length - 1])
