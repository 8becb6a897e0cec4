"""Contrasts: log weights of a link without the effects of query, key and distance.

A head that attends to nouns anywhere, to the first word, or to a distance has weights A[q, k] whose logarithm is a sum
of a part for the query (its softmax), one for the key and one for the distance k - q. In

    ln A[a, b] + ln A[a+s, b+s-t] + ln A[a+t, b+s] - ln A[a, b+s-t] - ln A[a+s, b+s] - ln A[a+t, b]

each query, key and distance occurs once with either sign, so such a head has contrast 0. A head that attends from a to
b because they are linked has a positive contrast. The contrast of a link is the mean over drawn s and t (and drawn
tokens of both words). All other cells are between other words of the same two sentences that are not linked and not
equal.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..map_sums import MapSums, Needs

DRAWS = 8  # of s and t for each link
TRIED = 48  # candidates: some fall outside the sentence or onto a link
FLOOR = 1e-30  # a draw with a smaller weight in a cell is not used
NOTHING = 1e-3  # a smaller contrast is rounding
_PLUS, _MINUS = ((0, 0), (1, 1), (2, 2)), ((0, 1), (1, 2), (2, 0))  # (query, key) of a, a+s, a+t; b, b+s-t, b+s
SIGNS = np.repeat([1.0, -1.0], 3)


@dataclass(frozen=True)
class Pieces:
    """The word and sentence of each token in an input. Tokens outside words have the word -1 and the sentence -1.
    Special tokens have the sentence -1."""

    word: Int[np.ndarray, " piece"]
    sentence: Int[np.ndarray, " piece"]

    @classmethod
    def of(cls, words: Sequence[tuple[int, ...]], sentence: Sequence[int], length: int) -> "Pieces":
        of_word, of_sentence = np.full(length, -1), np.full(length, -1)
        places = [position for positions in words for position in positions]
        of_word[places] = np.repeat(np.arange(len(words)), [len(positions) for positions in words])
        of_sentence[places] = np.asarray(sentence, dtype=int)[of_word[places]]
        return cls(of_word, of_sentence)


@dataclass(frozen=True)
class Hexagons:
    """Random control positions for each link (pair of words). Each draw consists of three queries and three keys.

    `fits` marks valid draws: all other positions are inside the input, between other words, and not linked. The
    positions of invalid draws are undefined.
    """

    queries: Int[np.ndarray, "link draw three"]
    keys: Int[np.ndarray, "link draw three"]
    fits: Bool[np.ndarray, "link draw"]

    @cached_property
    def cells(self) -> "HexagonCells":
        """Return the six query-key positions of each valid random draw."""
        link, draw = np.nonzero(self.fits)
        queries, keys = self.queries[link, draw], self.keys[link, draw]
        each = (*_PLUS, *_MINUS)
        return HexagonCells(link, queries[:, [query for query, _ in each]], keys[:, [key for _, key in each]])


@dataclass(frozen=True)
class HexagonCells:
    """Six (query, key) positions for each valid random draw. The contrast of a draw is the sum of the log attention at
    the first three positions minus the sum at the last three."""

    link: Int[np.ndarray, " draw"]
    queries: Int[np.ndarray, "draw six"]
    keys: Int[np.ndarray, "draw six"]


Links = Sequence[tuple[tuple[int, ...], tuple[int, ...]]]


def hexagons(
    pieces: Pieces, links: Links, linked: Bool[np.ndarray, "link word word"], *, causal: bool, seed: Sequence[int]
) -> Hexagons:
    """Draw up to DRAWS random control sets (hexagons of positions) for each pair of linked words in an input.

    Args:
        links: token positions of the words of the query and of the key.
        linked: for each link, the pairs (query's word, key's word) that none of its other cells may be in.
        causal: keys must precede their queries.
    """

    def taken(link: np.ndarray, query: np.ndarray, key: np.ndarray) -> np.ndarray:
        return np.asarray(linked[link, query, key])

    return hexagons_of_inputs([pieces], [links], taken, causal=causal, seeds=[seed])


def hexagons_of_inputs(
    pieces: Sequence[Pieces],
    links: Sequence[Links],
    is_taken: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    *,
    causal: bool,
    seeds: Sequence[Sequence[int]],
) -> Hexagons:
    """Draw random control positions (hexagons of six positions) for each link. All inputs must have equal length.

    `is_taken` receives the link index, the word of the query and the word of the key of each draw, and returns whether
    no other cell of that link may be in this pair.
    """
    owner = np.repeat(np.arange(len(links)), [len(links_of_input) for links_of_input in links])
    if not len(owner):
        empty = np.zeros((0, DRAWS, 3), dtype=int)
        return Hexagons(empty, empty, np.zeros((0, DRAWS), dtype=bool))
    words, sentences = (
        np.stack([getattr(input_pieces, name) for input_pieces in pieces]) for name in ("word", "sentence")
    )
    sides = [side for links_of_input in links for link in links_of_input for side in link]
    sizes = np.array([len(side) for side in sides]).reshape(-1, 2)
    places = np.array([piece for side in sides for piece in side])
    begins = np.cumsum(sizes).reshape(-1, 2) - sizes
    home = sentences[owner, places[begins[:, 0]]]  # of each link; a word lies in one sentence
    within = (sentences[owner] == home[:, None]).sum(1)
    drawn = np.zeros((4, len(owner), TRIED), dtype=int)
    end = 0
    for links_of_input, seed in zip(links, seeds, strict=True):
        mine = slice(end, end + len(links_of_input))
        end = mine.stop
        if links_of_input:
            _draw(drawn[:, mine], sizes[mine], home[mine], within[mine], seed)
    drawn[:2] = places[begins.T[:, :, None] + drawn[:2]]
    order = np.argsort(sentences, axis=1, kind="stable")  # of each input its pieces, by sentence
    before = (sentences[owner] < home[:, None]).sum(1)
    drawn[2:] = order[owner[:, None], before[:, None] + drawn[2:]]
    start, key, first, alternative = drawn
    second, third = key + first - alternative, key + first - start
    fits = (first != start) & (alternative != start) & (first != alternative)
    for positions in (second, third):
        fits &= (positions >= 0) & (positions < words.shape[1])
    at = np.flatnonzero(fits)
    queries, keys = (
        np.stack([positions.ravel()[at] for positions in three])
        for three in ((start, first, alternative), (key, second, third))
    )
    link = at // TRIED
    allowed = _allowed(queries, keys, words, sentences, is_taken, (owner[link], link), causal=causal)
    # At most the first DRAWS of each link; link: of each draw, ascending
    link, number = link[allowed], len(start)
    counts = np.bincount(link, minlength=number)
    rank = np.arange(len(link)) - (np.cumsum(counts) - counts)[link]
    is_early = rank < DRAWS
    link, rank = link[is_early], rank[is_early]
    of_queries, of_keys = (np.zeros((number, DRAWS, 3), dtype=int) for _ in range(2))
    fits = np.zeros((number, DRAWS), dtype=bool)
    of_queries[link, rank] = queries[:, allowed].T[is_early]
    of_keys[link, rank] = keys[:, allowed].T[is_early]
    fits[link, rank] = True
    return Hexagons(of_queries, of_keys, fits)


def _draw(
    drawn: Int[np.ndarray, "four link draw"],
    sizes: Int[np.ndarray, "link two"],
    home: Int[np.ndarray, " link"],
    within: Int[np.ndarray, " link"],
    seed: Sequence[int],
) -> None:
    """Draw for one input: a token of each end, and two tokens of its sentence."""
    rng = np.random.default_rng(list(seed))
    several = sizes > 1
    if several.any():
        choices = rng.integers(0, np.repeat(sizes[several], TRIED)).reshape(-1, TRIED)
        drawn[:2].swapaxes(0, 1)[several] = choices
    sentences = np.unique(home) if (home != home[0]).any() else home[:1]
    for places in drawn[2:]:
        for sentence in sentences:
            in_sentence = home == sentence
            places[in_sentence] = rng.integers(0, within[in_sentence][0], (int(in_sentence.sum()), TRIED))


def _allowed(
    queries: Int[np.ndarray, "three draw"],
    keys: Int[np.ndarray, "three draw"],
    words: Int[np.ndarray, "input piece"],
    sentences: Int[np.ndarray, "input piece"],
    is_taken: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    owner: tuple[Int[np.ndarray, " draw"], Int[np.ndarray, " draw"]],
    *,
    causal: bool,
) -> Int[np.ndarray, " kept"]:
    """Draws whose cells are between different words of the link's two sentences, and not taken. `owner` has the input
    and the link of each draw."""
    cells = (*_PLUS, *_MINUS)
    row = owner[0] * words.shape[1]
    sentence_of_key = sentences.ravel()[row + keys]
    fits = (sentence_of_key[1:] == sentence_of_key[:1]).all(0)
    if causal:
        for query, key in cells:
            fits &= keys[key] < queries[query]
    left = np.flatnonzero(fits)
    of, to = (words.ravel()[row[left] + positions[:, left]] for positions in (queries, keys))
    link, fits = owner[1][left], (to >= 0).all(0)
    for number, (query, key) in enumerate(cells):
        fits &= of[query] != to[key]
        if number:
            fits &= ~is_taken(link, of[query], to[key])
    return left[fits]


def cells_of(weights: Float[Tensor, "batch head query key"]) -> Float[np.ndarray, "batch query key head"]:
    """Convert attention weights to a NumPy array with heads as the last axis, without a copy if possible. Half
    precision becomes float32."""
    exact = weights.float() if weights.element_size() < 4 else weights
    return exact.permute(0, 2, 3, 1).cpu().numpy()


def weights_at(
    cells: Float[np.ndarray, "batch query key head"],
    batch: Int[np.ndarray, " draw"],
    queries: Int[np.ndarray, "draw cell"],
    keys: Int[np.ndarray, "draw cell"],
) -> Float[np.ndarray, "cell draw head"]:
    """Return the attention weights at the query-key positions of each random draw, as [position, draw, head]."""
    if not cells.flags.c_contiguous:
        return cells[batch, queries.T, keys.T]
    rows = cells.reshape(-1, cells.shape[-1])
    return np.take(rows, (batch * cells.shape[1] + queries.T) * cells.shape[2] + keys.T, axis=0)


def contrasts(
    weights: Float[Tensor, "batch head query key"], batch: Int[np.ndarray, " link"], drawn: Hexagons
) -> Float[np.ndarray, "link head"]:
    """Return the contrast of each link in nats, averaged over random draws; 0 without valid draws. A contrast is the
    log attention, corrected for the effects of query, key and distance."""
    cells = drawn.cells
    return contrasts_of(weights_at(cells_of(weights), batch[cells.link], cells.queries, cells.keys), drawn)


def contrasts_of(weights: Float[np.ndarray, "six draw head"], drawn: Hexagons) -> Float[np.ndarray, "link head"]:
    """Return the mean contrast of each link, in nats, given the attention weights at the positions in `drawn.cells`."""
    links = drawn.cells.link
    mean = np.zeros((len(drawn.fits), weights.shape[-1]))
    if len(links):
        starts = np.flatnonzero(np.diff(links, prepend=-1))
        mean[links[starts]] = np.nan_to_num(means_over_draws(weights, SIGNS, starts), nan=0.0)
    return mean


def by_draw(weights: Float[np.ndarray, "head _"], cells: int) -> Float[np.ndarray, "cell draw head"]:
    """Reshape attention weights to [cell, draw, head]. Each random draw has `cells` consecutive query-key positions."""
    return np.ascontiguousarray(weights.reshape(len(weights), -1, cells).transpose(2, 1, 0))


def means_over_draws(
    weights: Float[np.ndarray, "cell draw head"], signs: Float[np.ndarray, " cell"], starts: Int[np.ndarray, " group"]
) -> Float[np.ndarray, "group head"]:
    """Return the mean contrast of each group of random draws, in nats. The contrast of a draw is the sum of its log
    attention weights, each multiplied by 1 or -1.

    Draws with a weight below FLOOR are left out, because FLOOR would give a head of a single distance a nonzero
    contrast. 0 below NOTHING; NaN for groups without draws. `signs` are 1 or -1 in equal numbers, and `starts` the
    first draw of each consecutive group.
    """
    measured = weights.min(0) >= FLOOR
    above, below = (np.prod(weights[signs == sign], 0, dtype=np.float64) for sign in (1, -1))  # far from underflow
    value = np.log(np.divide(above, below, out=np.ones_like(above), where=measured))  # of those left out 0
    total, counts = np.add.reduceat(value, starts, axis=0), np.add.reduceat(measured, starts, axis=0, dtype=int)
    mean = np.divide(total, counts, out=np.full(total.shape, np.nan), where=counts > 0)
    return np.where(np.abs(mean) < NOTHING, 0.0, mean)


# ---------------------------------------------------------------- mean contrasts of a run


class LinkEnds(NamedTuple):
    """A group of links between words in one input. The contrasts of these links are averaged. `taken` [word, word]
    marks the pairs of words that are linked."""

    input: int
    pieces: Pieces
    links: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    taken: Bool[np.ndarray, "word word"]


class MeanContrasts:
    """An observer that computes the mean contrast of each group of links, for every head. One input may have several
    groups (`entries`). Random draws depend only on the seed and the input."""

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
        for row, number in enumerate(inputs):
            for entry in self._by_input.get(number, ()):
                drawn = self._hexagons[entry]
                layer_contrasts = contrasts(weights[row : row + 1], np.zeros(len(drawn.fits), dtype=int), drawn)
                self._means[entry, layer] = layer_contrasts[drawn.fits.any(1)].mean(0)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs]:
        """Request the attention weights from which the contrasts of each input are computed."""
        drawn = [[self._hexagons[entry].cells for entry in self._by_input.get(k, ())] for k in inputs]
        cells = [
            [np.stack([hexagon.queries.ravel(), hexagon.keys.ravel()], -1) for hexagon in hexagons_of_input]
            for hexagons_of_input in drawn
        ]
        return [Needs(cells=np.concatenate([np.zeros((0, 2), dtype=int), *cells_of_input])) for cells_of_input in cells]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        for input_sums, number in zip(sums, inputs, strict=True):
            start = 0
            for entry in self._by_input.get(number, ()):
                drawn = self._hexagons[entry]
                count = drawn.cells.queries.size
                weights = by_draw(input_sums.cells[:, start : start + count], len(SIGNS))
                self._means[entry, layer] = contrasts_of(weights, drawn)[drawn.fits.any(1)].mean(0)
                start += count

    def result(self) -> Float[np.ndarray, "entry cell"]:
        """Return the mean contrast of each group of links for every head, in nats; NaN if there are no valid random
        draws."""
        return self._means.reshape(len(self._means), -1)
