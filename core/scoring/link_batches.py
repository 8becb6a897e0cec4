"""Word links of inputs of equal length, found once and read from the word maps of every layer.

`core.scoring.tokens` defines weight, excess, contrast and accuracy of a link. Nothing here is as large as all pairs of
words, so inputs may have thousands of words; `LinkBlocks` reads links without maps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from .definitions import QUANTITIES
from .link_contrasts import Hexagons, Pieces, by_draw, contrasts_of, hexagons_of_inputs, weights_at

Link = tuple[int, int]
Words = Int[np.ndarray, "..."]  # numbers of words, or which input each is of, for every link or pair


@dataclass(frozen=True)
class LinkedWords:
    """The words of one input, and the links between them for each relation.

    Attributes:
        sentence: index of the sentence of each word, -1 for special tokens.
        links: for each relation, (from, to) as word indices; never a word to itself.
        spellings: equal numbers for equal words; empty if unknown.
    """

    words: Sequence[tuple[int, ...]]
    sentence: Sequence[int]
    links: Sequence[Sequence[Link]]
    spellings: Sequence[int] = ()


class WordTable:
    """A table with the sentence, number of tokens and spelling ID of every word. It has one padded row per input."""

    def __init__(self, words_of_inputs: Sequence[LinkedWords]) -> None:
        shape = (len(words_of_inputs), max(len(words.words) for words in words_of_inputs))
        self.sentence, self.sizes, self.spelling = np.full(shape, -1), np.zeros(shape, dtype=int), np.full(shape, -1)
        for row, words in enumerate(words_of_inputs):
            count = len(words.words)
            self.sentence[row, :count] = words.sentence
            self.sizes[row, :count] = [len(positions) for positions in words.words]
            self.spelling[row, : len(words.spellings)] = words.spellings

    def reachable(self, batch: Words, query: Words, key: Words, across: Bool[np.ndarray, "..."]) -> np.ndarray:
        """Return whether two words may be linked. They must be in the same sentence or, where `across` is True, in
        different sentences.

        False for special tokens, and from a word to itself. All arguments are broadcast.
        """
        sentence, key_sentence = self.sentence[batch, query], self.sentence[batch, key]
        within = (sentence == key_sentence) & (query != key)
        return (sentence >= 0) & (key_sentence >= 0) & np.where(across, sentence != key_sentence, within)

    def alike(self, batch: Words, query: Words, key: Words) -> np.ndarray:
        """Return whether two different words of an input have the same spelling; False if spellings are unknown."""
        spelling = self.spelling[batch, query]
        return (spelling >= 0) & (spelling == self.spelling[batch, key]) & (query != key)


class LinkBatch:
    """The links between words in inputs of equal length, by relation and direction, computed once for all layers.

    The group of a link is its input, turn and distance or, across sentences, its input, turn and query. Its baseline is
    all reachable pairs of its group that are not links of that turn.

    Attributes:
        crossing, backward: whether each link is between sentences, and whether its key is the first word of the link.
        pairs: group, input and words of each pair of a baseline.
    """

    def __init__(
        self, inputs: list[int], words_of_inputs: Sequence[LinkedWords], length: int, across: Sequence[bool],
        *, numbers: Sequence[int], causal: bool,
    ):  # fmt: skip
        self.inputs, self.some, self.length = list(inputs), words_of_inputs, length
        rows = [
            (k, turn, *((b, a) if turn % 2 else (a, b)), across[turn // 2])
            for k, words in enumerate(words_of_inputs)
            for turn in range(2 * len(across))
            for a, b in words.links[turn // 2]
        ]
        rows = [row for row in rows if not causal or row[3] < row[2]]  # where the query sees the key
        self.batch, turn, self.query, self.key, crossing = np.array(rows, dtype=int).reshape(-1, 5).T
        self.crossing, self.backward = crossing.astype(bool), turn % 2 == 1
        self.table = WordTable(words_of_inputs)
        if len(rows):
            linked = _Pairs(self.table.sentence.shape[1], self.batch, turn, self.query, self.key)
            self._find_nulls(turn, linked)
            self._find_contrasts(turn, linked, numbers, causal=causal)
            self._count(len(words_of_inputs), 2 * len(across), turn)

    def _find_nulls(self, turn: Words, linked: "_Pairs") -> None:
        """Find the pairs (input, query, key) of each group's baseline, and the group of each link."""
        offset = np.where(self.crossing, self.query, self.key - self.query)
        columns = np.stack([self.batch, turn, self.crossing, offset])
        groups, self.group = np.unique(columns, axis=1, return_inverse=True)
        self.group = self.group.reshape(-1)
        batch, of_turn, across, offset = (coordinate[:, None] for coordinate in groups)
        words, count = np.arange(self.table.sentence.shape[1])[None], self.table.sentence.shape[1]
        query, key = np.where(across, offset, words), np.where(across, words, words + offset)
        is_null = (key >= 0) & (key < count)
        key = key.clip(0, count - 1)
        is_null &= self.table.reachable(batch, query, key, across.astype(bool))
        owner, position = np.nonzero(is_null)
        at = (batch[owner, 0], of_turn[owner, 0], query[owner, position], key[owner, position])
        free = ~linked(*at)
        self.pairs = owner[free], at[0][free], at[2][free], at[3][free]
        self.others = np.bincount(self.pairs[0], minlength=len(batch))

    def _find_contrasts(self, turn: Words, linked: "_Pairs", numbers: Sequence[int], *, causal: bool) -> None:
        """Find the cells of every link's contrasts; draws depend on the index of the input, not on the batch."""
        ends: list[list[tuple[tuple[int, ...], tuple[int, ...]]]] = [[] for _ in self.some]
        for number, *words in zip(self.batch.tolist(), self.query.tolist(), self.key.tolist(), strict=True):
            start, end = (self.some[number].words[word] for word in words)
            ends[number].append((start, end))

        def taken(link: Words, query: Words, key: Words) -> np.ndarray:
            batch = self.batch[link]
            return linked(batch, turn[link], query, key) | self.table.alike(batch, query, key)

        pieces = [Pieces.of(words.words, words.sentence, self.length) for words in self.some]
        seeds = [[number] for number in numbers]
        self.hexagons = hexagons_of_inputs(pieces, ends, taken, causal=causal, seeds=seeds)

    def _count(self, inputs: int, turns: int, turn: np.ndarray) -> None:
        """Find the links of each input in each turn, and how many of them count for each quantity."""
        places = self.batch * turns + turn  # ascending, as the rows were made
        self.starts = np.flatnonzero(np.diff(places, prepend=-1))
        self.filled = np.divmod(places[self.starts], turns)
        counted = np.ones((len(places), len(QUANTITIES)))
        counted[:, QUANTITIES.index("excess")] = self.others[self.group] > 0
        counted[:, QUANTITIES.index("contrast")] = self.hexagons.fits.any(1)
        counts = np.zeros((inputs, turns, len(QUANTITIES)))
        counts[self.filled] = np.add.reduceat(counted, self.starts)
        self.counts = counts.reshape(inputs, -1)

    @cached_property
    def _asked(self) -> list[tuple[np.ndarray, ...]]:
        """Forward and backward: the links, their input and first word, and 1 if another possible answer precedes the
        right one, and if one follows it."""
        questions = []
        for way in (False, True):
            links = np.flatnonzero(self.backward == way)
            of, answer = (self.key, self.query) if way else (self.query, self.key)
            batch, of, words = self.batch[links, None], of[links, None], np.arange(self.table.sentence.shape[1])
            shown = self.table.reachable(batch, of, words, self.crossing[links, None])
            sides = ((shown & side(words, answer[links, None]))[..., None] for side in (np.less, np.greater))
            questions.append((links, batch[:, 0], of[:, 0], *(side.astype(np.float32) for side in sides)))
        return questions

    def values(
        self, maps: Float[np.ndarray, "batch word word head"], cells: Float[np.ndarray, "batch query key head"]
    ) -> Float[np.ndarray, "link quantity head"]:
        """Return four values per link from the maps of one layer, as [link, value, head]. The values are attention
        weight, attention above baseline, accuracy and contrast."""
        weight = maps[self.batch, self.query, self.key]
        owner, batch, query, key = self.pairs
        by_piece = maps[batch, query, key] / self.table.sizes[batch, key, None].astype(maps.dtype)
        total = np.zeros((len(self.others), weight.shape[1]), dtype=weight.dtype)
        if len(owner):
            starts = np.flatnonzero(np.diff(owner, prepend=-1))
            total[owner[starts]] = np.add.reduceat(by_piece, starts)
        right = np.empty_like(weight)
        for backward, (links, of_input, word, *sides) in enumerate(self._asked):
            looked = maps[of_input, :, word] if backward else maps[of_input, word]
            before, after = ((looked * side).max(1) for side in sides)
            nothing = ~sides[0].any(1) & (after == 0)  # the first of several that have no weight is looked at
            answer_weight = weight[links]
            right[links] = ((answer_weight > before) | nothing) & (answer_weight >= after)
        drawn = self.hexagons.cells
        contrast = contrasts_of(weights_at(cells, self.batch[drawn.link], drawn.queries, drawn.keys), self.hexagons)
        return self.quantities(weight, total, right, contrast)

    def quantities(
        self,
        weight: Float[np.ndarray, "link head"],
        total: Float[np.ndarray, "group head"],
        right: Float[np.ndarray, "link head"],
        contrast: Float[np.ndarray, "link head"],
    ) -> Float[np.ndarray, "link quantity head"]:
        """Return the values of every link, in the order of QUANTITIES. If a link has no baseline, its attention above
        baseline is 0 and is not included in the mean."""
        sizes = self.table.sizes[self.batch, self.key][:, None].astype(weight.dtype)
        null = (total / np.maximum(self.others, 1)[:, None].astype(total.dtype))[self.group] * sizes
        excess = (weight - null) * (self.others > 0)[self.group, None]
        return np.stack([weight, excess, right, contrast.astype(weight.dtype)], 1)

    def pooled(self, values: Float[np.ndarray, "link quantity head"]) -> Float[np.ndarray, "batch head statistic"]:
        """Sum each quantity over the links of each input, relation and direction, as float64; 0 if there are no
        links."""
        sums = np.add.reduceat(values.astype(np.float64), self.starts)  # [group, quantity, head]
        turns = self.counts.shape[1] // len(QUANTITIES)
        by_input = np.zeros((len(self.inputs), values.shape[2], turns, len(QUANTITIES)))
        by_input[self.filled[0], :, self.filled[1]] = sums.swapaxes(1, 2)
        return by_input.reshape(*by_input.shape[:2], -1)


class _Pairs:
    """A set of pairs of words without a table of all pairs."""

    def __init__(self, words: int, batch: Words, turn: Words, query: Words, key: Words) -> None:
        self.words, self.turns = words, int(turn.max(initial=0)) + 1
        self.known = np.unique(self._code(batch, turn, query, key))

    def _code(self, batch: Words, turn: Words, query: Words, key: Words) -> Words:
        return ((batch * self.turns + turn) * self.words + query) * self.words + key

    def __call__(self, batch: Words, turn: Words, query: Words, key: Words) -> np.ndarray:
        codes = self._code(batch, turn, query, key)
        at = np.searchsorted(self.known, codes).clip(0, len(self.known) - 1)
        return np.asarray(self.known[at] == codes)


# ---------------------------------------------------------------- blocks of queries


def in_order(words: LinkedWords, length: int) -> bool:
    """Return whether the words contain exactly the tokens of the input, in order. Otherwise, the input cannot be
    processed in blocks of queries."""
    return [piece for positions in words.words for piece in positions] == list(range(length))


@dataclass(frozen=True)
class LinkSums:
    """The attention along the links of one input in one layer.

    Attributes:
        weight: of each link, between words.
        right: 1 if the linked word gets most attention, otherwise 0.
        contrast: of each link, in nats; 0 without draws.
        total: total weight of the pairs of each baseline, per token of the key.
    """

    weight: Float[np.ndarray, "link head"]
    right: Float[np.ndarray, "link head"]
    contrast: Float[np.ndarray, "link head"]
    total: Float[np.ndarray, "group head"]


class LinkBlocks:
    """An accumulator for the attention along the links of one input in one layer, from blocks of queries. `cells`
    contains the (query, key) positions that are needed for contrasts."""

    def __init__(self, batch: LinkBatch, number: int, heads: int) -> None:
        self.batch, self.number, self.heads = batch, number, heads
        links, pairs = np.flatnonzero(batch.batch == number), np.flatnonzero(batch.pairs[1] == number)
        self.first = np.cumsum([0, *(len(positions) for positions in batch.some[number].words)])
        self.sizes = np.diff(self.first)
        self.query, self.key, self.crossing = batch.query[links], batch.key[links], batch.crossing[links]
        self.links = np.argsort(self.query, kind="stable")
        self.backward = np.flatnonzero(batch.backward[links])
        self.is_forward = ~batch.backward[links]
        self.pairs = pairs[np.argsort(batch.pairs[2][pairs], kind="stable")]
        drawn = batch.hexagons
        self.hexagons = Hexagons(drawn.queries[links], drawn.keys[links], drawn.fits[links])
        cells = self.hexagons.cells
        self.cells = np.stack([cells.queries.ravel(), cells.keys.ravel()], -1)
        self._clear()

    def _clear(self) -> None:
        links, heads = len(self.query), self.heads
        self.weight, self.right = (np.zeros((links, heads), dtype=np.float32) for _ in range(2))
        self.total = np.zeros((len(self.batch.others), heads))
        self.most = np.full((len(self.backward), heads), -np.inf, dtype=np.float32)
        self.unfinished: dict[int, np.ndarray] = {}

    def take(self, head: int, start: int, weights: Any) -> None:
        """Add a block of attention rows to the running sums of one head. The block begins at query `start`."""
        block = weights.float().cpu().numpy()[:, : self.first[-1]]
        rows = block[:, self.first[:-1]]  # weight on each word: its first piece, then its others
        for more in range(1, int(self.sizes.max())):
            words = np.flatnonzero(self.sizes > more)
            rows[:, words] += block[:, self.first[words] + more]
        low, high = np.searchsorted(self.first, (start, start + len(rows) - 1), side="right") - 1
        sums = np.add.reduceat(rows, np.maximum(self.first[low : high + 1] - start, 0), axis=0)
        if head in self.unfinished:
            sums[0] += self.unfinished.pop(head)
        if self.first[high + 1] > start + len(rows):  # the block ends within a word
            self.unfinished[head], sums, high = sums[-1], sums[:-1], high - 1
        if len(sums):
            self._read(head, int(low), sums / self.sizes[low : high + 1, None].astype(np.float32))

    def _read(self, head: int, low: int, rows: Float[np.ndarray, "query word"]) -> None:
        """Read rows of whole words from index `low` on."""
        links = self.links[_between(self.query[self.links], low, len(rows))]
        self.weight[links, head] = rows[self.query[links] - low, self.key[links]]
        asking = links[self.is_forward[links]]
        reachable = self._seen(self.query[asking, None], np.arange(rows.shape[1]), asking)
        shown = np.where(reachable, rows[self.query[asking] - low], -np.inf)
        self.right[asking, head] = shown.argmax(1) == self.key[asking]
        owner, _, query, key = (part[self.pairs] for part in self.batch.pairs)
        inside = _between(query, low, len(rows))
        by_piece = rows[query[inside] - low, key[inside]] / self.sizes[key[inside]]
        self.total[:, head] += np.bincount(owner[inside], by_piece, len(self.total))
        if len(self.backward):
            self._read_columns(head, low, rows)

    def _read_columns(self, head: int, low: int, rows: Float[np.ndarray, "query word"]) -> None:
        """Find which word attends most to the keys of links that ask about their key."""
        links = self.backward
        queries = np.arange(low, low + len(rows))[:, None]
        reachable = self._seen(self.key[links], queries, links)
        shown = np.where(reachable, rows[:, self.key[links]], -np.inf)
        at = shown.argmax(0)
        most = shown[at, np.arange(len(links))]
        more = most > self.most[:, head]
        self.most[more, head] = most[more]
        self.right[links[more], head] = (at + low == self.query[links])[more]

    def _seen(self, of: Words, words: Words, links: Words) -> Any:
        """Which words are possible answers of these links."""
        across = self.crossing[links] if of.ndim == 1 else self.crossing[links, None]
        return self.batch.table.reachable(np.array(self.number), of, words, across)

    def result(self, cells: Float[np.ndarray, "head cell"]) -> LinkSums:
        """Return the attention along the links in one layer, and reset the running sums. The argument has the attention
        weights at the positions in the attribute `cells`."""
        contrast = contrasts_of(by_draw(cells, 6), self.hexagons)
        sums = LinkSums(self.weight, self.right, contrast, self.total)
        self._clear()
        return sums


def _between(ascending: Int[np.ndarray, " word"], low: int, count: int) -> slice:
    first, last = np.searchsorted(ascending, (low, low + count))
    return slice(int(first), int(last))
