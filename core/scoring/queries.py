"""Is it the linked word that looks there, or would any word? Weights at a link's keys, distance taken out.

A head that attends to pronouns, or to content words, whatever the query, scores high on links that end in such words.
So the linked query is compared with the other queries of its text at the same keys. Near queries get more anyway, so
the head's curve over distance is taken out first: c[d] = mean over all pairs of ordinary pieces of all inputs with
key - query = d. Weights count relative to an even spread, w = A[q, k] n with n the number of keys, so that long and
short texts share one curve; the residual is w - c[d]. A decoder's queries see n_q keys each, and what a key gets falls
as more of them compete, the faster the more it gets; so there w is the log odds against the mean of the other keys,
w = ln(A (n_q - 1) / (1 - A)), which the number of competitors leaves alone.

Two versions. "weight": A as it is. "share": each row over its sum on ordinary pieces, so that a query that merely
leaves [SEP] or the first token alone (row mass) is not taken for one that looks.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..map_sums import MapSums, Needs
from .links import Pair

KINDS = ("weight", "share")


class Looked(NamedTuple):
    """The pairs of one link (or of all links of an input), and the input's ordinary positions."""

    input: int
    pairs: tuple[Pair, ...]
    ordinary: tuple[int, ...]


def other_queries(looked: Looked, *, causal: bool) -> tuple[tuple[Pair, ...], ...]:
    """The pairs of a link, then the same pairs with all queries moved by one offset, keys where they are.

    Args:
        causal: whether a query must see its keys, which come before it then.

    Returns:
        The pairs themselves first, then one entry an offset; queries stay on ordinary positions and off the keys.
    """
    keys, allowed = {key for _, key in looked.pairs}, set(looked.ordinary)
    queries = [query for query, _ in looked.pairs]
    offsets = range(min(allowed) - min(queries), max(allowed) - max(queries) + 1)
    moved = (tuple((query + step, key) for query, key in looked.pairs) for step in offsets if step)
    fitting = (
        pairs
        for pairs in moved
        if all(query in allowed and query not in keys and (key <= query or not causal) for query, key in pairs)
    )
    return (looked.pairs, *fitting)


class QueryResiduals:
    """Observer: weights at every query of the links' keys, and the curve over distance of all inputs.

    `places` has, of each link, its pairs at their own query and then at every other (`other_queries`).
    """

    def __init__(self, looked: Sequence[Looked], *, layers: int, heads: int, longest: int, causal: bool) -> None:
        self._looked, self._causal, self._longest = list(looked), causal, longest
        self.places = [other_queries(link, causal=causal) for link in self._looked]
        self._pairs = [list(dict.fromkeys(pair for pairs in places for pair in pairs)) for places in self.places]
        self._weights = {
            kind: [np.zeros((layers, heads, len(pairs)), dtype=np.float32) for pairs in self._pairs] for kind in KINDS
        }
        self._sums = {kind: np.zeros((layers, heads, 2 * longest + 1)) for kind in KINDS}
        self._counts = np.zeros((layers, 2 * longest + 1))
        self._by_input: dict[int, list[int]] = defaultdict(list)
        self._blocks: list[_LayerParts | None] = []
        for number, link in enumerate(self._looked):
            self._by_input[link.input].append(number)

    def update(self, layer: int, weights: Float[Any, "batch head query key"], inputs: list[int]) -> None:
        """Add one layer's maps of some inputs."""
        maps = np.asarray(weights if isinstance(weights, np.ndarray) else weights.detach().float().cpu().numpy())
        for row, number in enumerate(inputs):
            if self._by_input.get(number):
                layer_parts = self._found(number, maps.shape[-1])
                layer_parts.add(slice(None), 0, maps[row])
                self._take(layer, layer_parts, number)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs]:
        """Blocks of queries of long inputs, because the curve is a mean over all pairs."""
        self._blocks = [self._found(k, keys) if self._by_input.get(k) else None for k in inputs]
        return [Needs(blocks=None if layer_parts is None else layer_parts.take) for layer_parts in self._blocks]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        """Add one layer whose blocks were taken."""
        for layer_parts, number in zip(self._blocks, inputs, strict=True):
            if layer_parts is not None:
                self._take(layer, layer_parts, number)
                layer_parts.clear()

    def _found(self, number: int, keys: int) -> "_LayerParts":
        links = self._by_input[number]
        ordinary, pairs = self._looked[links[0]].ordinary, [self._pairs[link] for link in links]
        return _LayerParts(ordinary, pairs, self._sums["weight"].shape[1], self._longest, keys, causal=self._causal)

    def _take(self, layer: int, layer_parts: "_LayerParts", number: int) -> None:
        self._counts[layer] += layer_parts.counts
        for kind in KINDS:
            self._sums[kind][layer] += layer_parts.curves[kind]
            for link, weights in zip(self._by_input[number], layer_parts.weights[kind], strict=True):
                self._weights[kind][link][layer] = weights

    def curve(self, kind: str) -> Float[np.ndarray, "layer head distance"]:
        """Mean relative weight of every head at every distance.

        Returns:
            By key - query, from -longest to longest. Times an even spread; of decoders, log odds. 0 where no pair has
            that distance.
        """
        return self._sums[kind] / np.maximum(self._counts, 1)[:, None]

    def result(self, kind: str) -> list[Float[np.ndarray, "place cell"]]:
        """The largest residual of each link's pairs, at their own query and at every other.

        Returns:
            An array for each link: places as in `places`, the true one first; cells are layers x heads. Units as in
            `curve`.
        """
        curve, largest = self.curve(kind), []
        for pairs, places, weights in zip(self._pairs, self.places, self._weights[kind], strict=True):
            away = [key - query + self._longest for query, key in pairs]
            residuals = (weights - curve[:, :, away]).reshape(-1, len(pairs))
            number = {pair: k for k, pair in enumerate(pairs)}
            largest.append(np.stack([residuals[:, [number[pair] for pair in pairs]].max(1) for pairs in places]))
        return largest


class _LayerParts:
    """What one layer's maps of one input add, from blocks of queries or all at once.

    Attributes:
        curves: of each kind, sums of relative weights. *Shape:* (head, distance).
        weights: of each kind and link, those of its pairs. *Shape:* (head, pair).
    """

    def __init__(
        self, ordinary: tuple[int, ...], pairs: Sequence[Sequence[Pair]], heads: int, longest: int, keys: int,
        *, causal: bool,
    ) -> None:  # fmt: skip
        self.ordinary, self.heads, self.longest = np.array(ordinary), heads, longest
        self.keys, self.causal = keys, causal
        row_of = {position: k for k, position in enumerate(ordinary)}
        self.pairs = [np.array([(row_of[query], row_of[key]) for query, key in input_pairs]) for input_pairs in pairs]
        self.clear()

    def clear(self) -> None:
        """Begin again, for the next layer."""
        bins = 2 * self.longest + 1
        self.counts = np.zeros(bins)
        self.curves = {kind: np.zeros((self.heads, bins)) for kind in KINDS}
        self.weights = {
            kind: [np.zeros((self.heads, len(input_pairs)), np.float32) for input_pairs in self.pairs] for kind in KINDS
        }

    def take(self, head: int, start: int, weights: Any) -> None:
        """Add a block of one head (`core.map_sums.Needs.blocks`)."""
        self.add(slice(head, head + 1), start, weights.float().cpu().numpy()[None])

    def add(self, heads: slice, start: int, maps: Float[np.ndarray, "head query key"]) -> None:
        """Add the rows of queries from `start` on, of some heads."""
        low, high = np.searchsorted(self.ordinary, (start, start + maps.shape[1]))
        queries = self.ordinary[low:high]
        block = maps[:, queries - start][:, :, self.ordinary]
        shares = block / np.maximum(block.sum(-1, keepdims=True), 1e-9)
        if self.causal:
            relative = (_log_odds(block, queries + 1), _log_odds(shares, np.arange(low + 1, high + 1)))
        else:
            relative = block * self.keys, shares * len(self.ordinary)
        distances = self.ordinary - queries[:, None] + self.longest
        visible = distances <= self.longest if self.causal else np.ones_like(distances, dtype=bool)
        at, bins = distances[visible], len(self.counts)
        if not heads.start:  # once, of the first head or of all
            self.counts += np.bincount(at, minlength=bins)
        inside = [(input_pairs[:, 0] >= low) & (input_pairs[:, 0] < high) for input_pairs in self.pairs]
        for kind, values in zip(KINDS, relative, strict=True):
            self.curves[kind][heads] += np.stack([np.bincount(at, rows[visible], bins) for rows in values])
            for weights, input_pairs, of in zip(self.weights[kind], self.pairs, inside, strict=True):
                weights[heads, of] = values[:, input_pairs[of, 0] - low, input_pairs[of, 1]]


def _log_odds(
    weights: Float[np.ndarray, "head query key"], visible: Int[np.ndarray, " query"]
) -> Float[np.ndarray, "head query key"]:
    """ln(A (n - 1) / (1 - A)) with A held between 1e-6 and 1 - 1e-6; 0 where the query sees one key."""
    clipped = np.clip(weights, 1e-6, 1 - 1e-6)
    competitors = np.maximum(visible - 1, 1)[:, None]
    return np.where(visible[:, None] > 1, np.log(clipped * competitors / (1 - clipped)), 0.0)
