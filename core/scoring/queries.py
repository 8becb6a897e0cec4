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
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from core.scoring.links import Pair

KINDS = ("weight", "share")


class Looked(NamedTuple):
    """The pairs of one link (or of all links of an input), and the input's ordinary positions."""

    input: int
    pairs: tuple[Pair, ...]
    ordinary: tuple[int, ...]


def other_queries(looked: Looked, *, causal: bool) -> tuple[tuple[Pair, ...], ...]:
    """The pairs themselves, then with all queries moved by the same offset, keys where they are.

    Queries stay on ordinary positions, off the keys, and see their keys.
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

    update takes weights [batch, head, query, key] of one layer. result(kind) gives, per link, the largest residual of
    its pairs at its own query and at every other: [place, layer x head], the true place first.
    """

    def __init__(self, looked: Sequence[Looked], *, layers: int, heads: int, longest: int, causal: bool) -> None:
        self._looked, self._causal, self._longest = list(looked), causal, longest
        self.places = [other_queries(link, causal=causal) for link in self._looked]
        self._pairs = [list(dict.fromkeys(pair for place in places for pair in place)) for places in self.places]
        self._weights = {
            kind: [np.zeros((layers, heads, len(pairs)), dtype=np.float32) for pairs in self._pairs] for kind in KINDS
        }
        self._sums = {kind: np.zeros((layers, heads, 2 * longest + 1)) for kind in KINDS}
        self._counts = np.zeros((layers, 2 * longest + 1))
        self._by_input: dict[int, list[int]] = defaultdict(list)
        for number, link in enumerate(self._looked):
            self._by_input[link.input].append(number)

    def update(self, layer: int, weights: Float[Any, "batch head query key"], inputs: list[int]) -> None:
        """Add one layer's maps of some inputs."""
        maps = np.asarray(weights if isinstance(weights, np.ndarray) else weights.detach().float().cpu().numpy())
        for row, number in enumerate(inputs):
            links = self._by_input.get(number, [])
            if links:
                self._add(layer, maps[row], self._looked[links[0]].ordinary, links)

    def _add(
        self, layer: int, maps: Float[np.ndarray, "head query key"], ordinary: tuple[int, ...], links: list[int]
    ) -> None:
        distances = _distances(ordinary, self._longest, self._causal)
        block = maps[:, ordinary][:, :, ordinary]
        shares = block / np.maximum(block.sum(-1, keepdims=True), 1e-9)
        if self._causal:
            visible, among = np.array(ordinary) + 1, np.arange(1, len(ordinary) + 1)
            relative = {"weight": _log_odds(block, visible), "share": _log_odds(shares, among)}
        else:
            relative = {"weight": block * maps.shape[-1], "share": shares * len(ordinary)}
        self._counts[layer] += np.bincount(distances[distances >= 0], minlength=2 * self._longest + 1)
        index = {position: k for k, position in enumerate(ordinary)}
        for kind, values in relative.items():
            for head, rows in enumerate(values):
                self._sums[kind][layer, head] += np.bincount(
                    distances[distances >= 0], rows[distances >= 0], minlength=2 * self._longest + 1
                )
            for link in links:
                queries, keys = zip(*((index[query], index[key]) for query, key in self._pairs[link]), strict=True)
                self._weights[kind][link][layer] = values[:, list(queries), list(keys)]

    def curve(self, kind: str) -> Float[np.ndarray, "layer head distance"]:
        """Mean relative weight by key - query, from -longest to longest; 0 where no pair has that distance."""
        return self._sums[kind] / np.maximum(self._counts, 1)[:, None]

    def result(self, kind: str) -> list[Float[np.ndarray, "place cell"]]:
        """Per link, the largest residual of its pairs at each place, the true one first."""
        curve, largest = self.curve(kind), []
        for pairs, places, weights in zip(self._pairs, self.places, self._weights[kind], strict=True):
            away = [key - query + self._longest for query, key in pairs]
            residuals = (weights - curve[:, :, away]).reshape(-1, len(pairs))
            number = {pair: k for k, pair in enumerate(pairs)}
            largest.append(np.stack([residuals[:, [number[pair] for pair in place]].max(1) for place in places]))
        return largest


def _log_odds(
    weights: Float[np.ndarray, "head query key"], visible: Int[np.ndarray, " query"]
) -> Float[np.ndarray, "head query key"]:
    """ln(A (n - 1) / (1 - A)) with A held between 1e-6 and 1 - 1e-6; 0 where the query sees one key."""
    clipped = np.clip(weights, 1e-6, 1 - 1e-6)
    others = np.maximum(visible - 1, 1)[:, None]
    return np.where(visible[:, None] > 1, np.log(clipped * others / (1 - clipped)), 0.0)


@lru_cache(maxsize=512)
def _distances(ordinary: tuple[int, ...], longest: int, causal: bool) -> Int[np.ndarray, "query key"]:
    """key - query + longest of ordinary positions; -1 where a query does not see the key."""
    places = np.array(ordinary)
    distances = places[None, :] - places[:, None]
    return np.where(causal & (distances > 0), -1, distances + longest)
