"""Attention along links between words (Kovaleva et al. 2019, section 4.5; Clark et al. 2019, 4.2).

Maps are converted to words: attention to a word is the sum over its tokens, from a word the mean. A link leads from
word a to word b (dependent to governor, first sentence to second). "forward" is W[a, b], "backward" is W[b, a]. Causal
models see only earlier keys, so a link counts only in the direction that looks back, and n is the number of such links.

    weight    mean weight over links
    excess    weight minus the mean weight of the head at the same distance elsewhere, W[q, q + d] over other words q of
              the input; across sentences, the mean over the other words there. Weights are per token of the key, times
              the number of tokens of the link's key, because longer words get more weight
    contrast  log weight without the effects of query, key and distance (link_contrasts); pairs of equal words are left
              out, because same-word heads have weight on them
    accuracy  fraction of words a whose b gets most attention from a (forward: argmax of row a; backward: argmax of
              column a), without special tokens and a itself (Clark et al.)

Previous- and next-word heads have no excess, and an accuracy no better than the best fixed distance. A link is claimed
if excess and contrast are above 0.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..map_sums import MapSums, Needs
from .definitions import DIRECTIONS, QUANTITIES
from .intervals import EVERY_LAYER, Means, StatisticEstimate
from .link_batches import LinkBatch, LinkBlocks, LinkedWords, in_order
from .link_contrasts import cells_of

FARTHEST = 8  # fixed distances that baselines try, both ways


def word_maps(
    cells: Float[np.ndarray, "batch query key head"], inputs: Sequence[LinkedWords]
) -> Float[np.ndarray, "batch word word head"]:
    """Convert attention maps between tokens to maps between words, padded with 0. Weights are summed over the tokens of
    the key word and averaged over the tokens of the query word."""
    batch, length, _, heads = cells.shape
    weights = torch.from_numpy(np.ascontiguousarray(cells))
    marked = np.zeros((len(inputs), length, max(len(words.words) for words in inputs)), dtype=np.float32)
    for number, words in enumerate(inputs):
        pieces = [(piece, k) for k, word in enumerate(words.words) for piece in word]
        marked[number][tuple(zip(*pieces, strict=True))] = 1
    member = torch.from_numpy(marked).to(weights.dtype)
    from_words = (member / member.sum(1, keepdim=True).clamp_min(1)).transpose(1, 2)
    mixed = torch.bmm(from_words, weights.view(batch, length, -1))  # all heads at once
    return _to_words(mixed.view(batch, -1, length, heads).numpy(), inputs)


def _to_words(
    weights: Float[np.ndarray, "batch word key head"], inputs: Sequence[LinkedWords]
) -> Float[np.ndarray, "batch word word head"]:
    """Sum over each word's key tokens: the first one, then the others, because most words have one."""
    batch, words, length, heads = weights.shape
    owner, word, piece = np.array(
        [
            (row, k, piece)
            for row, input_words in enumerate(inputs)
            for k, pieces in enumerate(input_words.words)
            for piece in pieces
        ]
    ).T
    first = np.flatnonzero(np.diff(owner * words + word, prepend=-1))
    keys = np.zeros((batch, words), dtype=int)
    keys[owner[first], word[first]] = piece[first]
    rows = (np.arange(batch * words) * length).reshape(batch, words, 1) + keys[:, None]
    summed = np.take(weights.reshape(-1, heads), rows, axis=0)
    rank = np.arange(len(owner)) - np.repeat(first, np.diff(first, append=len(owner)))
    for more in range(1, int(rank.max()) + 1):
        of_rank = rank == more
        summed[owner[of_rank], :, word[of_rank]] += weights[owner[of_rank], :, piece[of_rank]]
    for row, input_words in enumerate(inputs):
        summed[row, :, len(input_words.words) :] = 0
    return summed


class RelationAttention:
    """An observer that measures attention along links, for every relation in both directions. It averages the
    attention, the attention above baseline, the accuracy and the contrast.

    `across` states which relations link words of different sentences.
    """

    def __init__(self, layers: int, heads: int, relations: Sequence[str], *, across: Sequence[bool], causal: bool):
        self.relations, self.across, self.causal = tuple(relations), tuple(across), causal
        self.means = Means(layers, heads, len(relations) * len(DIRECTIONS) * len(QUANTITIES))
        self.distances: list[Counter[int]] = [Counter() for _ in relations]
        self._inputs: Sequence[LinkedWords] = ()
        self._numbers: Sequence[int] = ()
        self._batch: LinkBatch | None = None
        self._blocks: list[LinkBlocks] = []

    def take(self, inputs: Sequence[LinkedWords], numbers: Sequence[int]) -> "RelationAttention":
        """Set the linked words of the inputs in the next model run, and the indices of these inputs in the study."""
        self._inputs, self._numbers, self._batch = inputs, numbers, None
        for words in inputs:
            for counter, links in zip(self.distances, words.links, strict=True):
                counter.update(b - a for a, b in links)
        return self

    def update(self, layer: int | slice, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        if self._batch is None or self._batch.inputs != inputs:  # the same for all layers of a batch
            self._batch = self._batch_of(inputs, weights.shape[-1])
        if len(self._batch.query):
            cells = cells_of(weights)
            self._add(layer, self._batch.values(word_maps(cells, self._batch.some), cells), self._batch)

    def update_layers(self, weights: Float[Tensor, "batch layer_head query key"], inputs: list[int]) -> None:
        self.update(EVERY_LAYER, weights, inputs)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs] | None:
        """Request the attention weights of each long input, in blocks of queries and at the random positions for
        contrasts. Return None if whole maps are needed."""
        if queries != keys or not all(in_order(self._inputs[k], keys) for k in inputs):
            return None
        self._batch = batch = self._batch_of(inputs, keys)
        self._blocks = []
        if not len(batch.query):
            return [Needs() for _ in inputs]
        self._blocks = [LinkBlocks(batch, k, self.means.sums.shape[2]) for k in range(len(inputs))]
        return [Needs(blocks=blocks.take, cells=blocks.cells) for blocks in self._blocks]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        batch = self._batch
        if batch is not None and self._blocks:
            parts = [blocks.result(input_sums.cells) for blocks, input_sums in zip(self._blocks, sums, strict=True)]
            weight, right, contrast = (
                np.concatenate([getattr(part, name) for part in parts]) for name in ("weight", "right", "contrast")
            )
            total = np.sum([part.total for part in parts], 0).astype(weight.dtype)
            self._add(layer, batch.quantities(weight, total, right, contrast), batch)

    def _batch_of(self, inputs: list[int], length: int) -> LinkBatch:
        chosen_inputs, numbers = [self._inputs[k] for k in inputs], [self._numbers[k] for k in inputs]
        return LinkBatch(inputs, chosen_inputs, length, self.across, numbers=numbers, causal=self.causal)

    def _add(self, layer: int | slice, values: Float[np.ndarray, "link quantity head"], batch: LinkBatch) -> None:
        self.means.update(layer, batch.pooled(values), batch.counts, [self._numbers[k] for k in batch.inputs])

    def result(self) -> Iterator[tuple[str, str, dict[str, StatisticEstimate]]]:
        """Yield each relation and direction with its estimates by quantity, as arrays [layer, head, 1]."""
        estimate, index = self.means.result(), 0
        for relation in self.relations:
            for direction in DIRECTIONS:
                yield relation, direction, {name: estimate.part(index + k) for k, name in enumerate(QUANTITIES)}
                index += len(QUANTITIES)


def best_distance(distances: Counter[int]) -> tuple[int, float]:
    """Return the most frequent distance between linked words, and the accuracy of always predicting this distance.

    Distances are 1 to FARTHEST both ways. The nearest in a tie; (0, NaN) without links.
    """
    total = sum(distances.values())
    if not total:
        return 0, float("nan")
    tried = (d for d in range(-FARTHEST, FARTHEST + 1) if d)
    chosen = max(tried, key=lambda d: (distances[d], -abs(d)))
    return chosen, distances[chosen] / total
