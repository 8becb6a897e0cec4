"""The attention budget of a head: how its attention is divided among categories of keys, as shares that add up to 1.

Every visible key of a query is in the first of CATEGORIES that applies. The share of a category in one input is the
mean over queries of the attention to its keys. Queries are the tokens of the text (without [CLS], [SEP]) that see at
least two keys; the token that classifiers read ([CLS] of encoders, the last token of decoders) has a separate budget.
The expected share is that of uniform attention, and enrichment is share / expected share. The effect beyond distance is
the share minus the attention of the head to other words at the same distances in the same input. Contested attention is
on keys that are a syntactic head or dependent but are counted in an earlier category.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..attention import visible_keys
from ..map_sums import MapSums, Needs
from .definitions import BUDGET_CATEGORIES
from .intervals import EVERY_LAYER, Means

CATEGORIES = tuple(BUDGET_CATEGORIES)
START, SEPARATOR, ITSELF, PIECE, PREVIOUS, NEXT, REPEATED, GOVERNOR, DEPENDENT, PUNCTUATION, OWN, OTHER, REST = range(
    13
)
BEYOND = (REPEATED, GOVERNOR, DEPENDENT)  # compared with other words at the same distance
CONTESTED = (PIECE, PREVIOUS, NEXT)  # special tokens are no word's head, so categories 1 and 2 cannot be


@dataclass(frozen=True)
class BudgetTokens:
    """The words, sentences and special tokens at the positions of one input.

    Attributes:
        word: number of the word, equal for all its tokens; -1 for special tokens.
        spelling: number of the lower-case spelling; -1 for special tokens.
        sentence: 0 or 1; for a special token, that of its segment.
        governors: (word, its syntactic head) as numbers of words; empty if syntax is unknown.
        classifying: the position that classifiers read.
    """

    start: int | None
    separators: Sequence[int]
    word: Int[np.ndarray, " position"]
    spelling: Int[np.ndarray, " position"]
    sentence: Int[np.ndarray, " position"]
    punctuation: Bool[np.ndarray, " position"]
    governors: Sequence[tuple[int, int]]
    classifying: int


def categories_of(
    tokens: BudgetTokens, some: slice = slice(None)
) -> tuple[Int[np.ndarray, "query key"], Bool[np.ndarray, "query key"]]:
    """Return the category of each key for some queries, and whether their words are linked, including masked keys."""
    positions, word = np.arange(len(tokens.word)), tokens.word
    query, query_word, is_word = positions[some, None], word[some, None], word >= 0
    both = (query_word >= 0) & is_word
    governor_of = np.full(word.max(initial=0) + 1, -1)
    for dependent, its_governor in tokens.governors:
        governor_of[dependent] = its_governor if dependent != its_governor else -1
    governor = np.where(is_word, governor_of[word], -1)
    governs, depends = both & (governor[some, None] == word), both & (governor == query_word)
    same_sentence = tokens.sentence[some, None] == tokens.sentence
    conditions = {
        START: positions == (0 if tokens.start is None else tokens.start),
        SEPARATOR: np.isin(positions, tokens.separators),
        ITSELF: positions == query,
        PIECE: both & (query_word == word),
        PREVIOUS: positions == query - 1,
        NEXT: positions == query + 1,
        REPEATED: both & (tokens.spelling[some, None] == tokens.spelling),
        GOVERNOR: governs,
        DEPENDENT: depends,
        PUNCTUATION: tokens.punctuation,
        OWN: is_word & same_sentence,
        OTHER: is_word & ~same_sentence,
    }
    categories = np.full(both.shape, REST, dtype=np.int8)
    for category in reversed(conditions):
        np.copyto(categories, np.int8(category), where=conditions[category])
    return categories, governs | depends


ROWS = 256  # queries whose categories are in memory at once, of long inputs
WIDTH = len(CATEGORIES)
SUMS = 2 * WIDTH + 1
SHARES, ENRICHED, CLASSIFYING, CLASSIFYING_ENRICHED = (slice(k * WIDTH, (k + 1) * WIDTH) for k in range(4))
CONTEST = 4 * WIDTH
BEYOND_DISTANCE = slice(CONTEST + 1, CONTEST + 1 + len(BEYOND))
EXPECTED, CLASSIFYING_EXPECTED = (
    slice(BEYOND_DISTANCE.stop + k * WIDTH, BEYOND_DISTANCE.stop + (k + 1) * WIDTH) for k in range(2)
)
STATISTICS = CLASSIFYING_EXPECTED.stop


class _Cells(NamedTuple):
    """The cells of the map of one input, as one row.

    Attributes:
        sums: matrix that turns the row into shares, shares of the classifying token, and contested attention.
        offsets: key - query + length - 1 of each cell.
        others: cells of words and punctuation that queries see.
        beyond: cells of each category of BEYOND.
    """

    sums: Float[Tensor, "cell sum"]
    offsets: Int[Tensor, " cell"]
    others: Int[Tensor, " some"]
    beyond: tuple[Int[Tensor, " some"], ...]


class _Input:
    """One input, prepared for all layers.

    Attributes:
        queries: positions over which the shares are averaged.
        even: shares under uniform attention, also of the classifying token, by window of a layer.
    """

    def __init__(self, tokens: BudgetTokens, heads: int, windows: Sequence[int | None], *, causal: bool) -> None:
        self.tokens, self.heads, self.causal, self.length = tokens, heads, causal, len(tokens.word)
        many = np.arange(1, self.length + 1) > 1 if causal else np.full(self.length, self.length > 1)
        self.queries = (tokens.word >= 0) & many
        self.has_classifying = bool(many[tokens.classifying])
        self.even = {window: np.zeros((2, WIDTH)) for window in dict.fromkeys(windows)}
        positions = np.arange(self.length)
        for start in range(0, self.length, ROWS):
            some = slice(start, start + ROWS)
            categories, _ = self.rows(some)
            for window, shares in self.even.items():
                within = visible_keys(positions[some], self.length, causal=causal, window=window)
                of_row = [((categories == category) & within).sum(1) for category in range(WIDTH)]
                even = np.stack(of_row, -1) / within.sum(1)[:, None]
                shares[0] += even[self.queries[some]].sum(0) / max(self.queries.sum(), 1)
                if start <= tokens.classifying < start + ROWS:
                    shares[1] = even[tokens.classifying - start]
        self._taken: tuple[int, np.ndarray, np.ndarray] | None = None
        self._sums = np.zeros((heads, SUMS))

    def rows(self, some: slice) -> tuple[Int[np.ndarray, "query key"], Bool[np.ndarray, "query key"]]:
        """Return the categories of some queries' keys (WIDTH for masked keys), and which keys fit two categories."""
        categories, syntax = categories_of(self.tokens, some)
        categories[~visible_keys(np.arange(self.length)[some], self.length, causal=self.causal, window=None)] = WIDTH
        return categories, syntax & np.isin(categories, CONTESTED)

    @cached_property
    def cells(self) -> _Cells:
        """Return the sums over query-key cells that the budget needs if whole maps are available."""
        categories, contested = self.rows(slice(None))
        length, at, position = self.length, self.tokens.classifying, np.arange(self.length)
        sums, n = np.zeros((length, length, SUMS)), max(self.queries.sum(), 1)
        is_category = categories[..., None] == np.arange(WIDTH)
        sums[self.queries, :, :WIDTH] = is_category[self.queries] / n
        sums[at, :, WIDTH:-1] = is_category[at]
        sums[self.queries, :, -1] = contested[self.queries] / n
        asked = np.where(self.queries[:, None], categories, WIDTH).ravel()
        return _Cells(
            torch.from_numpy(sums.reshape(length * length, -1)),
            torch.from_numpy((position - position[:, None] + length - 1).ravel()),
            torch.from_numpy(np.flatnonzero((asked >= REPEATED) & (asked < REST))),
            tuple(torch.from_numpy(np.flatnonzero(asked == category)) for category in BEYOND),
        )

    def take(self, head: int, start: int, weights: Any) -> None:
        """Add the attention weights [query, key] of one head for a block of queries that begins at `start`."""
        stop = start + len(weights)
        if self._taken is None or self._taken[0] != start:  # the same for all heads
            self._taken = (start, *self.rows(slice(start, stop)))
        _, categories, contested = self._taken
        block, queries = weights.double().cpu().numpy()[:, : self.length], self.queries[start:stop]
        shares = np.bincount(categories[queries].ravel(), block[queries].ravel(), WIDTH + 1)[:WIDTH]
        self._sums[head, :WIDTH] += shares / max(self.queries.sum(), 1)
        self._sums[head, -1] += (block[queries] * contested[queries]).sum() / max(self.queries.sum(), 1)
        if start <= (at := self.tokens.classifying) < stop:
            row = np.bincount(categories[at - start], block[at - start], WIDTH + 1)
            self._sums[head, WIDTH:-1] = row[:WIDTH]

    def taken(self) -> Float[np.ndarray, "head sum"]:
        """Return the sums over all blocks of one layer and reset them for the next layer."""
        sums, self._sums, self._taken = self._sums, np.zeros((self.heads, SUMS)), None
        return sums


class BudgetAttention:
    """Observer of the attention budget of all heads; `means` has the mean over inputs. `windows` as in
    `AttentionMaps`."""

    def __init__(self, layers: int, heads: int, *, causal: bool, windows: Sequence[int | None] = ()) -> None:
        self.causal, self.heads, self.windows = causal, heads, tuple(windows) or (None,) * layers
        self.means = Means(layers, heads, STATISTICS)
        self._tokens: Sequence[BudgetTokens] = ()
        self._numbers: Sequence[int] = ()
        self._batch: dict[int, _Input] = {}

    def take(self, tokens: Sequence[BudgetTokens], numbers: Sequence[int]) -> "BudgetAttention":
        """Set the inputs of the next run and their indices in the study. Returns this observer."""
        self._tokens, self._numbers, self._batch = tokens, numbers, {}
        return self

    def update(self, layer: int | slice, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        sums, beyond = [], []
        for maps, ready in zip(weights, self._prepared(inputs), strict=True):
            flat = maps.double().cpu().flatten(1)
            sums.append((flat @ ready.cells.sums).numpy())
            # The share of each category of BEYOND less what other words at the same distances get; NaN without such
            # cells
            cells, width = ready.cells, 2 * ready.length - 1
            shares, none = np.full((len(flat), len(BEYOND)), np.nan), flat.new_zeros(len(flat), width)
            total = none.index_add(1, cells.offsets[cells.others], flat[:, cells.others])
            count = torch.bincount(cells.offsets[cells.others], minlength=width)
            for number, own in enumerate(cells.beyond):
                at = cells.offsets[own]
                left = count - torch.bincount(at, minlength=width)
                compared = left[at] > 0
                if compared.any():
                    usual = (total - none.index_add(1, at, flat[:, own])) / left.clamp(min=1)
                    excess = flat[:, own[compared]] - usual[:, at[compared]]
                    shares[:, number] = (excess.sum(1) / ready.queries.sum()).numpy()
            beyond.append(shares)
        self._add(layer, sums, beyond, inputs)

    def update_layers(self, weights: Float[Tensor, "batch layer_head query key"], inputs: list[int]) -> None:
        self.update(EVERY_LAYER, weights, inputs)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs] | None:
        """Request blocks of queries for long inputs; the effect beyond distance is then not measured."""
        return [Needs(blocks=ready.take) for ready in self._prepared(inputs)] if queries == keys else None

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        unknown = np.full((self.heads, len(BEYOND)), np.nan)
        self._add(layer, [ready.taken() for ready in self._prepared(inputs)], [unknown] * len(inputs), inputs)

    def _prepared(self, inputs: list[int]) -> list[_Input]:
        """Return the inputs of a batch, prepared once for all its layers."""
        if list(self._batch) != inputs:
            self._batch = {
                number: _Input(self._tokens[number], self.heads, self.windows, causal=self.causal) for number in inputs
            }
        return list(self._batch.values())

    def _add(
        self, layer: int | slice, sums: Sequence[np.ndarray], beyond: Sequence[np.ndarray], inputs: list[int]
    ) -> None:
        """Add the statistics of inputs, and what each is divided by."""
        layers = range(len(self.windows)) if isinstance(layer, slice) else [layer]
        values = np.zeros((len(inputs), len(layers), self.heads, STATISTICS))
        counts = np.zeros((len(inputs), len(layers), STATISTICS))
        for row, ready in enumerate(self._prepared(inputs)):
            found = sums[row].reshape(len(layers), self.heads, SUMS)
            values[row, ..., SHARES] = values[row, ..., ENRICHED] = found[..., :WIDTH]
            values[row, ..., CLASSIFYING] = values[row, ..., CLASSIFYING_ENRICHED] = found[..., WIDTH:-1]
            values[row, ..., CONTEST] = found[..., -1]
            values[row, ..., BEYOND_DISTANCE] = beyond[row].reshape(len(layers), self.heads, -1)
            counts[row, :, BEYOND_DISTANCE] = np.isfinite(values[row, :, 0, BEYOND_DISTANCE])
            even = np.stack([ready.even[self.windows[number]] for number in layers])
            values[row, ..., EXPECTED], values[row, ..., CLASSIFYING_EXPECTED] = even[:, :1], even[:, 1:]
            is_known = float(ready.queries.any())
            counts[row, :, SHARES] = counts[row, :, EXPECTED] = counts[row, :, CONTEST : CONTEST + 1] = is_known
            counts[row, :, ENRICHED] = even[:, 0] * is_known
            counts[row, :, CLASSIFYING] = counts[row, :, CLASSIFYING_EXPECTED] = ready.has_classifying
            counts[row, :, CLASSIFYING_ENRICHED] = even[:, 1] * ready.has_classifying
        numbers = [self._numbers[k] for k in inputs]
        of_layers = counts if isinstance(layer, slice) else counts[:, 0]
        self.means.update(layer, values.reshape(len(inputs), -1, STATISTICS), of_layers, numbers)
