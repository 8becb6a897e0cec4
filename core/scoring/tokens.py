"""Attention between the two ends of a link, between words (Kovaleva et al. 2019, section 4.5; Clark et al. 2019, 4.2).

Maps are first brought to words: attention to a word is the sum over its pieces, from a word the mean. A link goes from
word a to word b (dependent to governor, first sentence to second). Two directions: "forward" is W[a, b], "backward" is
W[b, a]; each query then looks at a key. Causal models see only keys before the query, so there a link counts in the
direction that looks back, and n says how many do.

    weight    mean over links of the weight
    excess    weight less what the head gives to the same distance elsewhere: the mean of W[q, q + d] over the other
              words q of the input, d the link's distance; across sentences, the mean over the other words there
    accuracy  share of the words a whose b is the word that a looks at most (forward: argmax of row a; backward: argmax
              of column a), special tokens and a itself left out (Clark et al.)

Previous- and next-word heads show no excess, and their accuracy is no better than that of the best fixed distance.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from core.scoring.definitions import DIRECTIONS, QUANTITIES
from core.scoring.intervals import Estimate, Means

FARTHEST = 8  # fixed distances that baselines try, both ways
Link = tuple[int, int]


@dataclass(frozen=True)
class LinkedWords:
    """The words of one input. words: positions of each word's pieces. sentence: of each word, -1 for special tokens.
    links: of each relation, (from, to) as numbers of words; never a word to itself."""

    words: Sequence[tuple[int, ...]]
    sentence: Sequence[int]
    links: Sequence[Sequence[Link]]


def word_maps(
    weights: Float[Tensor, "batch head query key"], inputs: Sequence[LinkedWords]
) -> Float[Tensor, "batch head word word"]:
    """Sum over each word's key pieces, mean over its query pieces; inputs with fewer words are padded with zeros."""
    most = max(len(one.words) for one in inputs)
    member = torch.zeros(len(inputs), weights.shape[-1], most, dtype=weights.dtype)
    for number, one in enumerate(inputs):
        for k, pieces in enumerate(one.words):
            member[number, list(pieces), k] = 1
    member = member.to(weights.device)
    queries = member / member.sum(1, keepdim=True).clamp_min(1)
    return torch.einsum("bqw,bhqk,bkv->bhwv", queries, weights, member)


class RelationAttention:
    """Observer: weight, excess and accuracy of every relation in both directions, pooled over links.

    across: which relations link words of different sentences. Results are [layer, head, statistic].
    """

    def __init__(
        self, layers: int, heads: int, relations: Sequence[str], *, across: Sequence[bool], causal: bool, seed: int = 0
    ):
        self.relations, self.across, self.causal = tuple(relations), tuple(across), causal
        self.means = Means(layers, heads, len(relations) * len(DIRECTIONS) * len(QUANTITIES), seed=seed)
        self.distances: list[Counter[int]] = [Counter() for _ in relations]
        self._inputs: Sequence[LinkedWords] = ()
        self._numbers: Sequence[int] = ()

    def take(self, inputs: Sequence[LinkedWords], numbers: Sequence[int]) -> "RelationAttention":
        """The inputs of the next run, and their numbers in the whole study."""
        self._inputs, self._numbers = inputs, numbers
        for one in inputs:
            for counter, links in zip(self.distances, one.links, strict=True):
                counter.update(b - a for a, b in links)
        return self

    def update(self, layer: int, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        """Reduce one layer's maps."""
        some = [self._inputs[k] for k in inputs]
        maps = word_maps(weights, some)
        shape = (len(some), maps.shape[1], self.means.sums.shape[-1])
        sums, counts = np.zeros(shape), np.zeros((shape[0], shape[2]))
        asked = {across: _Asked(maps, reachable(some, across=across), across) for across in set(self.across)}
        turns = [(k, direction == "backward") for k in range(len(self.relations)) for direction in DIRECTIONS]
        for place, (relation, backward) in enumerate(turns):
            chosen = _chosen([one.links[relation] for one in some], backward=backward, causal=self.causal)
            if len(chosen):
                first = place * len(QUANTITIES)
                about = asked[self.across[relation]]
                _pool(sums, counts, chosen[:, 0], *_weight(maps, chosen), first)
                _pool(sums, counts, chosen[:, 0], *about.excess(chosen), first + 1)
                _pool(sums, counts, chosen[:, 0], *about.accuracy(chosen, backward=backward), first + 2)
        self.means.update(layer, sums, counts, [self._numbers[k] for k in inputs])

    def merge(self, other: "RelationAttention") -> None:
        """Add what another observer of other inputs saw."""
        self.means.merge(other.means)
        for mine, its in zip(self.distances, other.distances, strict=True):
            mine.update(its)

    def result(self) -> Iterator[tuple[str, str, dict[str, Estimate]]]:
        """(relation, direction, estimate of each quantity); estimates are [layer, head, 1]."""
        whole, place = self.means.result(), 0
        for relation in self.relations:
            for direction in DIRECTIONS:
                yield relation, direction, {name: whole.part(place + k) for k, name in enumerate(QUANTITIES)}
                place += len(QUANTITIES)


def best_distance(distances: Counter[int], *, among: Sequence[int] | None = None) -> tuple[int, float]:
    """The fixed distance that most links have, and the share of links that have it: its accuracy as a baseline.

    among: distances to choose from (default: 1 to FARTHEST both ways). (0, NaN) without links; ties: the nearest.
    """
    total = sum(distances.values())
    if not total:
        return 0, float("nan")
    tried = among or [d for d in range(-FARTHEST, FARTHEST + 1) if d]
    chosen = max(tried, key=lambda d: (distances[d], -abs(d)))
    return chosen, distances[chosen] / total


# ---------------------------------------------------------------- behind them


def reachable(inputs: Sequence[LinkedWords], *, across: bool) -> Bool[Tensor, "batch word word"]:
    """Which word may be asked about which: others of its own sentence, or (across) all of the other sentence."""
    sentence = torch.full((len(inputs), max(len(one.words) for one in inputs)), -1)
    for number, one in enumerate(inputs):
        sentence[number, : len(one.sentence)] = torch.tensor(list(one.sentence))
    both = (sentence >= 0)[:, :, None] & (sentence >= 0)[:, None, :]
    same = sentence[:, :, None] == sentence[:, None, :]
    return both & ~same if across else both & same & ~torch.eye(sentence.shape[1], dtype=torch.bool)


def _chosen(links: Sequence[Sequence[Link]], *, backward: bool, causal: bool) -> Int[Tensor, "link three"]:
    """(input of the batch, query, key) of each link in one direction, where the query sees the key."""
    turned = [(k, b, a) if backward else (k, a, b) for k, some in enumerate(links) for a, b in some]
    return torch.tensor([one for one in turned if not causal or one[2] < one[1]], dtype=torch.long).reshape(-1, 3)


def _weight(maps: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Weight of each link [link, head], and that each counts."""
    batch, query, key = chosen.T
    return maps[batch, :, query, key], torch.ones(len(chosen))


class _Asked:
    """What all relations of one kind ask of a layer's word maps: totals of the null's groups, most looked-at words.

    A group is all pairs at the same distance, or (across) all pairs with the same query.
    """

    def __init__(self, maps: Tensor, reach: Tensor, across: bool):
        reach = reach.to(maps.device)
        kept, each = maps * reach[:, None], reach[:, None].to(maps.dtype)
        self.maps, self.across = maps, across
        self.totals = kept.sum(-1) if across else by_distance(kept)
        self.sizes = (each.sum(-1) if across else by_distance(each))[:, 0]
        masked = maps.masked_fill(~reach[:, None], -torch.inf)
        self.looked_at, self.looked_at_by = masked.argmax(3), masked.argmax(2)

    def excess(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Weight less the mean of its group's other pairs; a link without others does not count."""
        batch, query, key = chosen.T
        group = query if self.across else key - query + self.maps.shape[-1] - 1
        value = self.maps[batch, :, query, key]
        own, linked = torch.zeros_like(self.totals), torch.zeros_like(self.sizes)
        own.transpose(1, 2).index_put_((batch, group), value, accumulate=True)
        linked.index_put_((batch, group), torch.ones_like(value[:, 0]), accumulate=True)
        others = (self.sizes - linked)[batch, group]
        null = (self.totals - own)[batch, :, group] / others.clamp_min(1)[:, None]
        return value - null, (others > 0.5).float()

    def accuracy(self, chosen: Tensor, *, backward: bool) -> tuple[Tensor, Tensor]:
        """Whether each link's `a` looks at its `b` most (backward: is looked at most by it), [link, head]."""
        batch, query, key = chosen.T
        if backward:
            right = self.looked_at_by[batch, :, key] == query[:, None]
        else:
            right = self.looked_at[batch, :, query] == key[:, None]
        return right.to(self.maps.dtype), torch.ones(len(chosen))


def by_distance(maps: Float[Tensor, "batch head word word"]) -> Float[Tensor, "batch head distance"]:
    """Sums over the pairs (q, k) of equal k - q; entry d + words - 1 is distance d."""
    size = maps.shape[-1]
    skewed = torch.nn.functional.pad(maps.flip(2), (0, size)).flatten(2)[..., : size * (2 * size - 1)]
    return skewed.reshape(*maps.shape[:2], size, 2 * size - 1).sum(2)


def _pool(sums: np.ndarray, counts: np.ndarray, batch: Tensor, values: Tensor, counted: Tensor, place: int) -> None:
    """Add values [link, head] of links that count to their inputs' sums."""
    weight = counted.cpu().numpy().astype(float)
    np.add.at(sums[:, :, place], batch.cpu().numpy(), values.double().cpu().numpy() * weight[:, None])
    np.add.at(counts[:, place], batch.cpu().numpy(), weight)
