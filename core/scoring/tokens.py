"""Attention between the two ends of a link, between words (Kovaleva et al. 2019, section 4.5; Clark et al. 2019, 4.2).

Maps are first brought to words: attention to a word is the sum over its pieces, from a word the mean. A link goes from
word a to word b (dependent to governor, first sentence to second). Two directions: "forward" is W[a, b], "backward" is
W[b, a]; each query then looks at a key. Causal models see only keys before the query, so there a link counts in the
direction that looks back, and n says how many do.

    weight    mean over links of the weight
    excess    weight less what the head gives to the same distance elsewhere: the mean of W[q, q + d] over the other
              words q of the input, d the link's distance; across sentences, the mean over the other words there. Each
              counts by the piece of the key, times the pieces of the link's (a word of more pieces gets more anyway)
    contrast  log weight with what the query, the key and the distance do anyway taken out (link_contrasts): 0 for a
              head that looks at nouns, or at the first word, whatever the query is; no pair of equal words is compared
              with, which a head of the same word has weight on
    accuracy  share of the words a whose b is the word that a looks at most (forward: argmax of row a; backward: argmax
              of column a), special tokens and a itself left out (Clark et al.)

Previous- and next-word heads show no excess, and their accuracy is no better than that of the best fixed distance. A
link is claimed where both excess and contrast are above 0.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from core.scoring.definitions import DIRECTIONS, QUANTITIES
from core.scoring.intervals import Means, StatisticEstimate
from core.scoring.link_contrasts import Pieces, contrasts, hexagons_of_inputs

FARTHEST = 8  # fixed distances that baselines try, both ways
Link = tuple[int, int]


@dataclass(frozen=True)
class LinkedWords:
    """The words of one input. words: positions of each word's pieces. sentence: of each word, -1 for special tokens.
    links: of each relation, (from, to) as numbers of words; never a word to itself. spellings: of each word a number,
    the same for equal words; none known where empty."""

    words: Sequence[tuple[int, ...]]
    sentence: Sequence[int]
    links: Sequence[Sequence[Link]]
    spellings: Sequence[int] = ()

    def alike(self, size: int) -> Bool[np.ndarray, "word word"]:
        """Which words are spelled alike, a word and itself left out.

        Args:
            size: number of words to pad to.

        Returns:
            Symmetric; False for padding.
        """
        equal = np.zeros((size, size), dtype=bool)
        spellings = np.array(self.spellings, dtype=int)
        equal[: len(spellings), : len(spellings)] = spellings[:, None] == spellings
        np.fill_diagonal(equal, False)
        return equal


def word_maps(
    weights: Float[Tensor, "batch head query key"], inputs: Sequence[LinkedWords]
) -> Float[Tensor, "batch head word word"]:
    """Sum over each word's key pieces, mean over its query pieces; inputs with fewer words are padded with zeros."""
    member = _member(inputs, weights.shape[-1]).to(weights.device, weights.dtype)
    return _between_words(weights, member)


def _member(inputs: Sequence[LinkedWords], length: int) -> Float[Tensor, "batch key word"]:
    member = np.zeros((len(inputs), length, max(len(words.words) for words in inputs)), dtype=np.float32)
    for number, words in enumerate(inputs):
        pieces = [(piece, k) for k, word in enumerate(words.words) for piece in word]
        member[number][tuple(zip(*pieces, strict=True))] = 1
    return torch.from_numpy(member)


def _between_words(weights: Tensor, member: Tensor) -> Tensor:
    batch, heads, length = weights.shape[:3]
    to_words = (weights.reshape(batch, -1, length) @ member).reshape(batch, heads, length, -1)
    from_words = (member / member.sum(1, keepdim=True).clamp_min(1)).transpose(1, 2)
    mixed = from_words @ to_words.transpose(1, 2).reshape(batch, length, -1)  # all heads at once: [batch, word, rest]
    return mixed.reshape(batch, -1, heads, member.shape[-1]).transpose(1, 2)


class RelationAttention:
    """Observer: weight, excess and accuracy of every relation in both directions, pooled over links.

    across: which relations link words of different sentences. Results are [layer, head, statistic].
    """

    def __init__(self, layers: int, heads: int, relations: Sequence[str], *, across: Sequence[bool], causal: bool):
        self.relations, self.across, self.causal = tuple(relations), tuple(across), causal
        self.means = Means(layers, heads, len(relations) * len(DIRECTIONS) * len(QUANTITIES))
        self.distances: list[Counter[int]] = [Counter() for _ in relations]
        self._inputs: Sequence[LinkedWords] = ()
        self._numbers: Sequence[int] = ()
        self._batch: _Batch | None = None

    def take(self, inputs: Sequence[LinkedWords], numbers: Sequence[int]) -> "RelationAttention":
        """The inputs of the next run, and their numbers in the whole study."""
        self._inputs, self._numbers, self._batch = inputs, numbers, None
        for words in inputs:
            for counter, links in zip(self.distances, words.links, strict=True):
                counter.update(b - a for a, b in links)
        return self

    def update(self, layer: int, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        """Reduce one layer's maps."""
        if self._batch is None or self._batch.inputs != inputs:  # the same for all layers of a batch
            linked_words = [self._inputs[k] for k in inputs]
            numbers = [self._numbers[k] for k in inputs]
            self._batch = _Batch(inputs, linked_words, weights, self.across, numbers=numbers, causal=self.causal)
        batch = self._batch
        if len(batch.query):
            sums = batch.pooled(_between_words(weights, batch.member).cpu(), weights)
            self.means.update(layer, sums, batch.counts, [self._numbers[k] for k in inputs])

    def merge(self, other: "RelationAttention") -> None:
        """Add what another observer of other inputs saw."""
        self.means.merge(other.means)
        for mine, its in zip(self.distances, other.distances, strict=True):
            mine.update(its)

    def result(self) -> Iterator[tuple[str, str, dict[str, StatisticEstimate]]]:
        """(relation, direction, estimate of each quantity); estimates are [layer, head, 1]."""
        whole, index = self.means.result(), 0
        for relation in self.relations:
            for direction in DIRECTIONS:
                yield relation, direction, {name: whole.part(index + k) for k, name in enumerate(QUANTITIES)}
                index += len(QUANTITIES)


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


Reach = Bool[Tensor, "batch word word"]


def reachable(inputs: Sequence[LinkedWords]) -> tuple[Reach, Reach]:
    """Which word may be asked about which: others of its own sentence, and (across) all of the other sentence."""
    sentence = np.full((len(inputs), max(len(words.words) for words in inputs)), -1)
    for row, words in zip(sentence, inputs, strict=True):
        row[: len(words.sentence)] = words.sentence
    both = (sentence >= 0)[:, :, None] & (sentence >= 0)[:, None, :]
    same = sentence[:, :, None] == sentence[:, None, :]
    return torch.from_numpy(both & same & ~np.eye(sentence.shape[1], dtype=bool)), torch.from_numpy(both & ~same)


class _Batch:
    """The links of inputs of one length in every turn (relation and direction), found once and used for every layer.

    A link's group is its input, turn and distance, or (across sentences) its input, turn and query; its null is all
    pairs of its group that may be asked about and are no links of that turn.
    """

    def __init__(
        self, inputs: list[int], some: Sequence[LinkedWords], like: Tensor, across: Sequence[bool],
        *, numbers: Sequence[int], causal: bool,
    ):  # fmt: skip
        self.inputs, device = list(inputs), like.device
        self.member = _member(some, like.shape[-1]).to(device, like.dtype)
        rows = [
            (k, turn, *((b, a) if turn % 2 else (a, b)), across[turn // 2])
            for k, words in enumerate(some)
            for turn in range(2 * len(across))
            for a, b in words.links[turn // 2]
        ]
        rows = [row for row in rows if not causal or row[3] < row[2]]  # where the query sees the key
        self.batch, turn, self.query, self.key, crossing = torch.tensor(rows, dtype=torch.long).reshape(-1, 5).T
        if len(rows):
            inside, other = reachable(some)
            self._find_asked(inside, other, turn % 2 == 1, crossing.bool())
            linked = self._find_nulls(inside, other, turn, crossing)
            self._find_contrasts(some, turn.numpy(), linked.numpy(), like.shape[-1], numbers, causal=causal)
            self.pieces = self.member.sum(1).cpu()
            self._count(len(some), 2 * len(across), turn.numpy())

    def _find_asked(self, inside: Tensor, other: Tensor, backward: Tensor, crossing: Tensor) -> None:
        """Of which word each link asks, what is the answer, and which words may be answered."""
        self.asked = []
        for way in (False, True):
            links = torch.nonzero(backward == way)[:, 0]
            of, answer = (self.key[links], self.query[links]) if way else (self.query[links], self.key[links])
            reach = torch.where(crossing[links, None], other[self.batch[links], of], inside[self.batch[links], of])
            self.asked.append((links, self.batch[links], of, answer[:, None], ~reach[:, None]))

    def _find_nulls(self, inside: Tensor, other: Tensor, turn: Tensor, crossing: Tensor) -> Tensor:
        """The pairs (input, query, key) of each group's null, and which group each link is of. Returns what is linked
        [input, turn, query, key]."""
        offset = torch.where(crossing.bool(), self.query, self.key - self.query)
        groups, self.group = torch.stack([self.batch, turn, crossing, offset]).unique(dim=1, return_inverse=True)
        batch, of_turn, across, offset = (coordinate[:, None] for coordinate in groups)
        words = torch.arange(inside.shape[1])[None]
        query, key = torch.where(across.bool(), offset, words), torch.where(across.bool(), words, words + offset)
        fits = (key >= 0) & (key < inside.shape[1])
        key = key.clamp(0, inside.shape[1] - 1)
        linked = torch.zeros(len(inside), int(turn.max()) + 1, *inside.shape[1:], dtype=torch.bool)
        linked[self.batch, turn, self.query, self.key] = True
        reach = torch.where(across.bool(), other[batch, query, key], inside[batch, query, key])
        is_null = fits & reach & ~linked[batch, of_turn, query, key]
        owner, _ = torch.nonzero(is_null, as_tuple=True)
        self.pairs = (
            owner,
            batch.expand_as(is_null)[is_null],
            query.expand_as(is_null)[is_null],
            key.expand_as(is_null)[is_null],
        )
        self.others = is_null.sum(1)
        return linked

    def _find_contrasts(
        self, some: Sequence[LinkedWords], turn: np.ndarray, linked: np.ndarray, length: int, numbers: Sequence[int],
        *, causal: bool,
    ) -> None:  # fmt: skip
        """The cells of every link's contrasts; an input's are drawn by its number, whatever it shares a batch with."""
        batch, query, key = (places.numpy() for places in (self.batch, self.query, self.key))
        ends: list[list[tuple[tuple[int, ...], tuple[int, ...]]]] = [[] for _ in some]
        for number, *words in zip(batch.tolist(), query.tolist(), key.tolist(), strict=True):
            start, end = (some[number].words[word] for word in words)
            ends[number].append((start, end))
        pieces = [Pieces.of(words.words, words.sentence, length) for words in some]
        alike = np.stack([words.alike(linked.shape[-1]) for words in some])
        self.hexagons = hexagons_of_inputs(
            pieces, ends, linked[batch, turn] | alike[batch], causal=causal, seeds=[[number] for number in numbers]
        )

    def _count(self, inputs: int, turns: int, turn: np.ndarray) -> None:
        """Which links each input has in each turn, and how many of them count for each quantity."""
        places = self.batch.numpy() * turns + turn  # ascending, as the rows were made
        self.starts = np.flatnonzero(np.diff(places, prepend=-1))
        self.filled = np.divmod(places[self.starts], turns)
        counted = np.ones((len(places), len(QUANTITIES)))
        counted[:, QUANTITIES.index("excess")] = (self.others[self.group] > 0).numpy()
        counted[:, QUANTITIES.index("contrast")] = self.hexagons.fits.any(1)
        counts = np.zeros((inputs, turns, len(QUANTITIES)))
        counts[self.filled] = np.add.reduceat(counted, self.starts)
        self.counts = counts.reshape(inputs, -1)

    def values(
        self, maps: Float[Tensor, "batch head word word"], weights: Float[Tensor, "batch head piece piece"]
    ) -> Float[Tensor, "link quantity head"]:
        """Weight, excess, accuracy and contrast of every link."""
        weight = maps[self.batch, :, self.query, self.key]
        owner, batch, query, key = self.pairs
        by_piece = maps[batch, :, query, key] / self.pieces[batch, key][:, None]
        total = weight.new_zeros(len(self.others), weight.shape[1]).index_add_(0, owner, by_piece)
        null = (total / self.others.clamp_min(1)[:, None])[self.group] * self.pieces[self.batch, self.key][:, None]
        excess = (weight - null) * (self.others > 0)[self.group, None]
        right = torch.empty_like(weight)
        for backward, (links, batch, of, answer, hidden) in enumerate(self.asked):
            looked = maps.transpose(2, 3) if backward else maps
            right[links] = (looked[batch, :, of].masked_fill(hidden, -torch.inf).argmax(-1) == answer).to(right.dtype)
        contrast = torch.from_numpy(contrasts(weights, self.batch.numpy(), self.hexagons)).to(right.dtype)
        return torch.stack([weight, excess, right, contrast], 1)

    def pooled(
        self, maps: Float[Tensor, "batch head word word"], weights: Float[Tensor, "batch head piece piece"]
    ) -> Float[np.ndarray, "batch head statistic"]:
        """Sums of every quantity over the links of each input and turn."""
        sums = np.add.reduceat(self.values(maps, weights).double().numpy(), self.starts)  # [group, quantity, head]
        by_input = np.zeros((len(self.inputs), maps.shape[1], self.counts.shape[1] // len(QUANTITIES), len(QUANTITIES)))
        by_input[self.filled[0], :, self.filled[1]] = sums.swapaxes(1, 2)
        return by_input.reshape(*by_input.shape[:2], -1)
