"""Statistics of every head that do not depend on the words: entropy, targets, distance (Clark et al. 2019, 3)."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..map_sums import MapSums, Needs
from .heads import MapBatch, SpecialPositions, SumBatch, special_needs
from .intervals import EVERY_LAYER, Means
from .registry import MAP_SCORES


class HeadStatistics:
    """An observer that averages each statistic in MAP_SCORES for each head, over the inputs in which it is defined."""

    def __init__(self, layers: int, heads: int, *, causal: bool):
        self.causal = causal
        self.means = Means(layers, heads, len(MAP_SCORES))
        self._places: Sequence[SpecialPositions] = ()
        self._numbers: Sequence[int] = ()

    def take(self, places: Sequence[SpecialPositions], numbers: Sequence[int]) -> "HeadStatistics":
        """Set the special tokens for the next model run, and the indices of its inputs in the study."""
        self._places, self._numbers = places, numbers
        return self

    def update(self, layer: int | slice, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        places = [self._places[k] for k in inputs]
        maps = MapBatch(weights, places, self.causal)
        values = torch.stack([score.of(maps) for score in MAP_SCORES if score.of], -1).double().cpu().numpy()
        self._add(layer, values, inputs)

    def update_layers(self, weights: Float[Tensor, "batch layer_head query key"], inputs: list[int]) -> None:
        self.update(EVERY_LAYER, weights, inputs)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs] | None:
        """List what to compute for each long input: entropies, mean distances, and the attention to neighbours and
        special tokens. Return None if whole maps are needed."""
        if queries != keys or not all(score.of_sums for score in MAP_SCORES):
            return None
        return [special_needs(self._places[k], keys) for k in inputs]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        batch = SumBatch(sums, [self._places[k] for k in inputs], self.causal)
        values = np.stack([score.of(batch) for score in MAP_SCORES if score.of], -1)
        self._add(layer, values.astype(np.float64), inputs)

    def _add(self, layer: int | slice, values: Float[np.ndarray, "batch head statistic"], inputs: list[int]) -> None:
        counts = (~np.isnan(values[:, 0])).astype(float)  # an input has a statistic for all heads or for none
        self.means.update(layer, values, counts, [self._numbers[k] for k in inputs])
