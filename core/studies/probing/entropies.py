"""How spread attention is, layer by layer, as maps are computed."""

from typing import Any

import numpy as np

from ...scoring.similarity import relative_entropy


class Entropies:
    """An observer: means [input, layer] of each map's relative entropy over heads and queries."""

    def __init__(self, inputs: int, layers: int) -> None:
        self.means = np.full((inputs, layers), np.nan)

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        """One layer's maps [batch, head, query, key] of one batch."""
        maps = weights.float().cpu().numpy()
        self.means[inputs, layer] = np.nanmean(relative_entropy(maps), axis=(1, 2))
