"""Attention along a link: from the tokens of a frame element to those of its target, or back.

A link is (element positions, target positions) of one input; inputs have one or several. (Kovaleva et al. 2019, section
4.2; their notebook scores `query = element, key = target`, their text describes the other direction.)
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..errors import check_choice
from ..frames.records import AnnotatedSentence, Spans, links_of
from ..map_sums import MapSums, Needs

Positions = tuple[int, ...]
Link = tuple[Positions, Positions]
Links = tuple[Link, ...]
Pair = tuple[int, int]  # query, key

DIRECTIONS = {
    "element_to_target": "query = frame element, key = target (the paper's code)",
    "target_to_element": "query = target, key = frame element (the paper's prose)",
    "later_to_earlier": "query = the later of the two, key = the earlier (what a decoder can do)",
}
ALONE = 1e-6  # least weight of a row outside the sink
PAIRINGS = {
    "product": "every piece of one side with every piece of the other",
    "zip": "the paper's code: pieces of both sides taken one by one until the shorter side ends",
}


def positions(encoding: Any, spans: Spans) -> tuple[int, ...]:
    """Return the positions of the tokens that overlap any of the character spans, in order."""
    return tuple(sorted({piece for start, end in spans for piece in encoding.pieces(start, end)}))


def links_in_pieces(encoding: Any, sentence: AnnotatedSentence, *, core: str = "core_sets") -> Links:
    """Return the frame links of a sentence as token positions; links in truncated text are left out."""
    places = (
        (positions(encoding, link.element), positions(encoding, link.target)) for link in links_of(sentence, core=core)
    )
    return tuple((element, target) for element, target in places if element and target)


def pairs_of(
    links: Links, *, direction: str = "element_to_target", pairing: str = "product", causal: bool = False
) -> tuple[Pair, ...]:
    """Return the distinct (query, key) pairs whose attention weights are needed to score the links in an input.

    "zip" joins the tokens of all elements, then of all targets, as the notebook does. `causal` leaves out pairs whose
    key follows the query. Raises InputError for an unknown direction or pairing.
    """
    check_choice("The direction of a link score", direction, DIRECTIONS)
    check_choice("The pairing of a link score", pairing, PAIRINGS)
    if pairing == "product":
        pairs = [(piece, target_piece) for element, target in links for piece in element for target_piece in target]
    else:
        elements = [piece for element, _ in links for piece in element]
        targets = list(dict.fromkeys(piece for _, target in links for piece in target))
        pairs = list(zip(elements, targets, strict=False))
    if direction == "target_to_element":
        pairs = [(target, element) for element, target in pairs]
    elif direction == "later_to_earlier":
        pairs = [(max(pair), min(pair)) for pair in pairs]
    return tuple(dict.fromkeys(pair for pair in pairs if not causal or pair[1] <= pair[0]))


def relation_score(
    weights: Float[Any, "*heads query key"],
    links: Links,
    *,
    direction: str = "element_to_target",
    pairing: str = "product",
    causal: bool = False,
) -> Float[Any, "*heads"]:
    """Return the largest attention weight among the query-key pairs of all links in an input. NaN if there are no
    pairs. The mean of this score over inputs is the link score of Kovaleva et al. (2019)."""
    pairs = pairs_of(links, direction=direction, pairing=pairing, causal=causal)
    if not pairs:
        return weights[..., 0, 0] * float("nan")
    chosen = weights[..., [query for query, _ in pairs], [key for _, key in pairs]]
    return chosen.max(-1) if isinstance(weights, np.ndarray) else chosen.amax(-1)


def without_key(weights: Float[Any, "*heads query key"], key: int) -> Float[Any, "*heads query key"]:
    """Return attention weights without one key (an attention sink), rescaled so that each row sums to 1.

    Rows are divided by the sum of the other keys, because 1 minus the weight of a strong sink is mostly rounding. A row
    that attends only to that key (query 0 of a causal map) is unchanged.
    """
    without = weights * 1.0
    without[..., :, key] = 0
    left = without.sum(-1)[..., None]
    alone = left < ALONE
    return without / (left + alone) * ~alone + weights * alone


# ---------------------------------------------------------------- other places for the same links


def shifted(links: Links, places: Sequence[int]) -> tuple[Links, ...]:
    """Return the links of an input, followed by shifted copies. There is one copy for each nonzero shift that keeps all
    positions within `places`."""
    used = [position for element, target in links for position in (*element, *target)]
    allowed = set(places)
    if not used or not allowed:
        return (links,)
    offsets = range(min(allowed) - min(used), max(allowed) - max(used) + 1)
    shifts = [step for step in offsets if step and all(position + step in allowed for position in used)]
    moved = (tuple((tuple(k + step for k in a), tuple(k + step for k in b)) for a, b in links) for step in shifts)
    return (links, *moved)


def exchange_groups(lengths: Sequence[int], *, seed: int = 0, most: int = 40) -> list[list[int]]:
    """Divide inputs of equal length into random groups of at most `most`. Tests permute links within each group."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for number in np.random.default_rng(seed).permutation(len(lengths)).tolist():
        by_length[lengths[number]].append(number)
    groups = []
    for _, members in sorted(by_length.items()):
        parts = -(-len(members) // most)
        groups += [sorted(members[k::parts]) for k in range(parts)]
    return groups


# ---------------------------------------------------------------- many inputs at once


class Placement(NamedTuple):
    """A group of query-key pairs in one input, scored by the largest attention weight or, with `average`, the mean."""

    input: int
    name: Any
    pairs: tuple[Pair, ...]
    average: bool = False


class PairScores:
    """An observer of the largest or mean attention weight in groups of query-key pairs, for every head."""

    def __init__(self, placements: Sequence[Placement], *, layers: int, heads: int) -> None:
        self._shape = (layers, heads)
        self._slots = {(placement.input, placement.name): number for number, placement in enumerate(placements)}
        self._scores = np.full((len(placements), layers, heads), np.nan, dtype=np.float32)
        self._by_input: dict[int, list[tuple[int, Placement]]] = defaultdict(list)
        for number, placement in enumerate(placements):
            self._by_input[placement.input].append((number, placement))

    def update(self, layer: int, weights: Float[Any, "batch head query key"], inputs: list[int]) -> None:
        rows_by_pairs: dict[tuple[tuple[Pair, ...], bool], list[tuple[int, int]]] = defaultdict(list)
        for row, input_number in enumerate(inputs):
            for number, placement in self._by_input.get(input_number, ()):
                rows_by_pairs[placement.pairs, placement.average].append((row, number))
        maps = np.asarray(weights if isinstance(weights, np.ndarray) else weights.detach().float().cpu().numpy())
        for (pairs, average), cells in rows_by_pairs.items():
            if not pairs:
                continue
            chosen = maps[:, :, [query for query, _ in pairs], [key for _, key in pairs]]
            rows, numbers = [row for row, _ in cells], [number for _, number in cells]
            self._scores[numbers, layer] = (chosen[rows].mean(-1) if average else chosen[rows].max(-1)).astype(
                "float32"
            )

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs]:
        """Request the attention weights at all query-key pairs of each long input."""
        placements = [[placement for _, placement in self._by_input.get(k, ())] for k in inputs]
        pairs = [
            [pair for placement in placements_of_input for pair in placement.pairs]
            for placements_of_input in placements
        ]
        return [Needs(cells=np.array(pairs_of_input, dtype=int).reshape(-1, 2)) for pairs_of_input in pairs]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        for input_sums, input_number in zip(sums, inputs, strict=True):
            start = 0
            for number, placement in self._by_input.get(input_number, ()):
                chosen = input_sums.cells[:, start : start + len(placement.pairs)]
                start += len(placement.pairs)
                if placement.pairs:
                    self._scores[number, layer] = chosen.mean(1) if placement.average else chosen.max(1)

    def result(self) -> dict[tuple[int, Any], Float[np.ndarray, "layer head"]]:
        """Return the scores [layer, head] of each group of query-key pairs, as a dictionary by (input, name). Scores
        are float32, and NaN if the group is empty."""
        return {name: self._scores[number] for name, number in self._slots.items()}


# ---------------------------------------------------------------- heads that know no frames


def fixed_scores(links: Links, length: int, *, direction: str, pairing: str, causal: bool) -> dict[str, float]:
    """Return the link scores of artificial heads that attend to the previous, next or first token, or uniformly."""
    pairs = pairs_of(links, direction=direction, pairing=pairing, causal=causal)
    if not pairs:
        return dict.fromkeys(("previous", "next", "first", "uniform"), float("nan"))
    return {
        "previous": float(any(key == query - 1 for query, key in pairs)),
        "next": float(any(key == query + 1 for query, key in pairs)),
        "first": float(any(key == 0 for _, key in pairs)),
        "uniform": max(1 / (query + 1 if causal else length) for query, _ in pairs),
    }


def habits(pairs: Sequence[Pair], length: int, *, causal: bool) -> dict[str, tuple[Pair, ...]]:
    """Pair each query in `pairs` with the previous, next and first token, as controls. Return a dictionary by name."""
    queries = sorted({query for query, _ in pairs})
    return {
        "previous": tuple((q, q - 1) for q in queries if q > 0),
        "next": () if causal else tuple((q, q + 1) for q in queries if q + 1 < length),
        "first": tuple((q, 0) for q in queries),
    }


# ---------------------------------------------------------------- null of queries


WEIGHTINGS = ("weight", "share")


class Looked(NamedTuple):
    """The query-key pairs in one input whose attention is measured. `ordinary` lists the positions of all tokens that
    are not special tokens."""

    input: int
    pairs: tuple[Pair, ...]
    ordinary: tuple[int, ...]


def other_queries(looked: Looked, *, causal: bool) -> tuple[tuple[Pair, ...], ...]:
    """Return the query-key pairs of a link, followed by a copy for each allowed shift of its queries.

    Queries stay on ordinary positions and off the keys; with `causal`, they follow their keys.
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
    """An observer that compares linked queries with other queries by their attention to the same keys.

    `places` has the pairs of each link at their true query, then at every other query. The mean attention at each
    distance is also stored.
    """

    def __init__(self, looked: Sequence[Looked], *, layers: int, heads: int, longest: int, causal: bool) -> None:
        self._looked, self._causal, self._longest = list(looked), causal, longest
        self.places = [other_queries(link, causal=causal) for link in self._looked]
        self._pairs = [list(dict.fromkeys(pair for pairs in places for pair in pairs)) for places in self.places]
        self._weights = {
            kind: [np.zeros((layers, heads, len(pairs)), dtype=np.float32) for pairs in self._pairs]
            for kind in WEIGHTINGS
        }
        self._sums = {kind: np.zeros((layers, heads, 2 * longest + 1)) for kind in WEIGHTINGS}
        self._counts = np.zeros((layers, 2 * longest + 1))
        self._by_input: dict[int, list[int]] = defaultdict(list)
        self._blocks: list[_LayerParts | None] = []
        for number, link in enumerate(self._looked):
            self._by_input[link.input].append(number)

    def update(self, layer: int, weights: Float[Any, "batch head query key"], inputs: list[int]) -> None:
        maps = np.asarray(weights if isinstance(weights, np.ndarray) else weights.detach().float().cpu().numpy())
        for row, number in enumerate(inputs):
            if self._by_input.get(number):
                layer_parts = self._found(number, maps.shape[-1])
                layer_parts.add(slice(None), 0, maps[row])
                self._take(layer, layer_parts, number)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs]:
        """Request all attention weights of each long input, in blocks of queries."""
        self._blocks = [self._found(k, keys) if self._by_input.get(k) else None for k in inputs]
        return [Needs(blocks=None if layer_parts is None else layer_parts.take) for layer_parts in self._blocks]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
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
        for kind in WEIGHTINGS:
            self._sums[kind][layer] += layer_parts.curves[kind]
            for link, weights in zip(self._by_input[number], layer_parts.weights[kind], strict=True):
                self._weights[kind][link][layer] = weights

    def curve(self, kind: str) -> Float[np.ndarray, "layer head distance"]:
        """Return the mean relative attention of each head by distance (key minus query), from -longest to longest.

        In multiples of uniform attention; for decoders, log odds. 0 if no pair has that distance.
        """
        return self._sums[kind] / np.maximum(self._counts, 1)[:, None]

    def result(self, kind: str) -> list[Float[np.ndarray, "place cell"]]:
        """Return the largest residual of each link, as one array per link. A residual is attention minus mean attention
        at the same distance. In each array, row 0 has the true queries, and the other rows have shifted queries."""
        curve, largest = self.curve(kind), []
        for pairs, places, weights in zip(self._pairs, self.places, self._weights[kind], strict=True):
            away = [key - query + self._longest for query, key in pairs]
            residuals = (weights - curve[:, :, away]).reshape(-1, len(pairs))
            number = {pair: k for k, pair in enumerate(pairs)}
            largest.append(np.stack([residuals[:, [number[pair] for pair in pairs]].max(1) for pairs in places]))
        return largest


class _LayerParts:
    """Sums of the map of one input in one layer, from blocks of queries or all at once.

    Attributes:
        curves: for each kind, sums of relative weights (head, distance).
        weights: for each kind and link, the weights of its pairs (head, pair).
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
        bins = 2 * self.longest + 1
        self.counts = np.zeros(bins)
        self.curves = {kind: np.zeros((self.heads, bins)) for kind in WEIGHTINGS}
        self.weights = {
            kind: [np.zeros((self.heads, len(input_pairs)), np.float32) for input_pairs in self.pairs]
            for kind in WEIGHTINGS
        }

    def take(self, head: int, start: int, weights: Any) -> None:
        """Add a block of attention rows to the running sums of one head. The block begins at query `start`."""
        self.add(slice(head, head + 1), start, weights.float().cpu().numpy()[None])

    def add(self, heads: slice, start: int, maps: Float[np.ndarray, "head query key"]) -> None:
        """Add a block of attention rows to the running sums of some heads. The block begins at query `start`."""
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
        for kind, values in zip(WEIGHTINGS, relative, strict=True):
            self.curves[kind][heads] += np.stack([np.bincount(at, rows[visible], bins) for rows in values])
            for weights, input_pairs, of in zip(self.weights[kind], self.pairs, inside, strict=True):
                weights[heads, of] = values[:, input_pairs[of, 0] - low, input_pairs[of, 1]]


def _log_odds(
    weights: Float[np.ndarray, "head query key"], visible: Int[np.ndarray, " query"]
) -> Float[np.ndarray, "head query key"]:
    """ln(A (n - 1) / (1 - A)) with A clipped to 1e-6 and 1 - 1e-6; 0 if the query sees one key."""
    clipped = np.clip(weights, 1e-6, 1 - 1e-6)
    competitors = np.maximum(visible - 1, 1)[:, None]
    return np.where(visible[:, None] > 1, np.log(clipped * competitors / (1 - clipped)), 0.0)
