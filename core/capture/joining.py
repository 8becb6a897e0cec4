"""Maps on their way to observers: a layer at a time, or of short inputs all layers of a batch at once.

What a measure does with maps of 25 tokens takes longer to call than to compute. So an observer that reads every head
alike may take all layers' heads as those of one layer (`Joining`); long inputs' maps come a layer at a time, and none
is held.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

JOINED_BYTES = 32_000_000  # of all layers' maps of a batch: more are handed over as they come


@runtime_checkable
class Joining(Protocol):
    """An observer that may be handed all layers of a batch at once."""

    def update_layers(self, weights: Float[Tensor, "batch layer_head query key"], inputs: list[int]) -> None:
        """Take the maps of a batch, one layer's heads after another's; they must not be kept or written to.

        Args:
            weights: rows sum to 1; head `head` of layer `layer` is number layer * heads + head.
            inputs: which encodings the rows of the batch are, by their places in the pass.
        """


class MapsOfBatch:
    """Hands one batch's maps to observers, a layer at a time or all layers at once.

    Args:
        observers: `Observer`s; those that are `Joining` get all layers at once where they are short.
        layers: how many will come, from the first on; 0: it is not known.
    """

    def __init__(self, observers: Sequence[Any], inputs: list[int], layers: int) -> None:
        self.by_layer, self.inputs, self.layers = list(observers), inputs, layers
        self.joining: list[Joining] = []
        self.held: list[Tensor] = []

    def take(self, layer: int, weights: Float[Tensor, "batch head query key"]) -> None:
        """Hand over one layer's maps, or hold them until all layers of the batch can be handed over at once.

        Args:
            layer: from 0, in order.
            weights: rows sum to 1.
        """
        if layer == 0 and 1 < self.layers <= JOINED_BYTES / weights.nbytes:
            self.joining = [observer for observer in self.by_layer if isinstance(observer, Joining)]
            self.by_layer = [observer for observer in self.by_layer if not isinstance(observer, Joining)]
        for observer in self.by_layer:
            observer.update(layer, weights, self.inputs)
        if self.joining:
            self.held.append(weights)
        if self.joining and len(self.held) == self.layers:
            whole, self.held = _heads_side_by_side(torch.cat(self.held, 1)), []
            for joined in self.joining:
                joined.update_layers(whole, self.inputs)


def _heads_side_by_side(maps: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
    """The same numbers, those of one cell next to each other in memory: measures read cells of all heads at once."""
    if maps.device.type != "cpu":
        return maps
    batch, heads, queries, keys = maps.shape
    cells = np.ascontiguousarray(maps.numpy().reshape(batch, heads, -1).transpose(0, 2, 1))  # twice as fast as torch
    return torch.from_numpy(cells).view(batch, queries, keys, heads).permute(0, 3, 1, 2)
