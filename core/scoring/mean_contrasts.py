"""An observer of the mean contrast of links (`core.scoring.link_contrasts`) as a run of a checkpoint gives its maps."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from ..map_sums import MapSums, Needs
from .link_contrasts import SIGNS, Hexagons, Pieces, by_draw, contrasts, contrasts_of, hexagons


class LinkEnds(NamedTuple):
    """The links whose contrasts count as one.

    Attributes:
        pieces: which word and sentence each of its pieces is of.
        links: positions of the pieces of the query's and of the key's word.
        taken: the pairs (query's word, key's word) that no other cell may lie between.
    """

    input: int
    pieces: Pieces
    links: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    taken: Bool[np.ndarray, "word word"]


class MeanContrasts:
    """Observer: the mean contrast of each entry's links, of every head.

    Args:
        entries: what is measured, several of one input if need be.
        causal: whether queries see only keys before them.
        seed: of the draws; an entry's are drawn by its input too, whatever it is measured with.
    """

    def __init__(self, entries: Sequence[LinkEnds], *, layers: int, heads: int, causal: bool, seed: int) -> None:
        self._means = np.full((len(entries), layers, heads), np.nan)
        self._hexagons: list[Hexagons] = []
        self._by_input: dict[int, list[int]] = defaultdict(list)
        for number, entry in enumerate(entries):
            blocked = np.broadcast_to(entry.taken, (len(entry.links), *entry.taken.shape))
            drawn = hexagons(entry.pieces, entry.links, blocked, causal=causal, seed=[seed, entry.input])
            self._hexagons.append(drawn)
            if drawn.fits.any():
                self._by_input[entry.input].append(number)

    def update(self, layer: int, weights: Tensor, inputs: list[int]) -> None:
        """Read one layer's maps of some inputs [batch, head, query, key]."""
        for row, number in enumerate(inputs):
            for entry in self._by_input.get(number, ()):
                drawn = self._hexagons[entry]
                layer_contrasts = contrasts(weights[row : row + 1], np.zeros(len(drawn.fits), dtype=int), drawn)
                self._means[entry, layer] = layer_contrasts[drawn.fits.any(1)].mean(0)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs]:
        """The cells of all draws of long inputs, one entry after another."""
        drawn = [[self._hexagons[entry].cells for entry in self._by_input.get(k, ())] for k in inputs]
        cells = [
            [np.stack([hexagon.queries.ravel(), hexagon.keys.ravel()], -1) for hexagon in hexagons_of_input]
            for hexagons_of_input in drawn
        ]
        return [Needs(cells=np.concatenate([np.zeros((0, 2), dtype=int), *cells_of_input])) for cells_of_input in cells]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        """Read one layer off the weights that `needs` asked for."""
        for input_sums, number in zip(sums, inputs, strict=True):
            start = 0
            for entry in self._by_input.get(number, ()):
                drawn = self._hexagons[entry]
                count = drawn.cells.queries.size
                weights = by_draw(input_sums.cells[:, start : start + count], len(SIGNS))
                self._means[entry, layer] = contrasts_of(weights, drawn)[drawn.fits.any(1)].mean(0)
                start += count

    def result(self) -> Float[np.ndarray, "entry cell"]:
        """In natural logarithms, cells by layer and head; NaN where an entry has no draw."""
        return self._means.reshape(len(self._means), -1)
