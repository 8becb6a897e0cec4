"""The attention budget of a head: how its attention is divided among categories of keys, as shares that add up to 1.

Every visible key of a query is in the first of CATEGORIES that applies. The share of a category in one input is the
mean over queries of the attention to its keys. Queries are the tokens of the text (without [CLS], [SEP]) that see at
least two keys; the token that classifiers read has a separate budget. Enrichment is share / share under uniform
attention. The effect beyond distance is the share minus the attention of the head to other words at the same distances
in the same input. Contested attention is on keys that are a syntactic head or dependent but are counted in an earlier
category.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.spatial.distance import jensenshannon
from torch import Tensor

from ..attention import visible_keys
from ..map_sums import MapSums, Needs
from .corrections import holm_adjusted
from .definitions import BUDGET_CATEGORIES, QUERY_CLASSES
from .intervals import EVERY_LAYER, Means

CATEGORIES = tuple(BUDGET_CATEGORIES)
START, SEPARATOR, ITSELF, PIECE, PREVIOUS, NEXT, REPEATED, GOVERNOR, DEPENDENT, PUNCTUATION, OWN, OTHER, REST = range(
    13
)
BEYOND = (REPEATED, GOVERNOR, DEPENDENT)  # compared with other words at the same distance
CONTESTED = (PIECE, PREVIOUS, NEXT)  # special tokens are no word's head, so categories 1 and 2 cannot be


@dataclass(frozen=True)
class BudgetTokens:
    """The words, sentences and special tokens of one input, by position.

    Attributes:
        word: number of the word, equal for all its tokens; -1 for special tokens.
        spelling: number of the lower-case spelling; -1 for special tokens.
        sentence: 0 or 1; for a special token, that of its segment.
        governors: (word, its syntactic head) as numbers of words; empty if syntax is unknown.
        classifying: the position that classifiers read.
        classes: index of each word's class in QUERY_CLASSES, -1 for other tokens; then the same with the words of each
            sentence permuted, once per draw. None if budgets by class are not measured. *Shape:* (1 + draw, position).
    """

    start: int | None
    separators: Sequence[int]
    word: Int[np.ndarray, " position"]
    spelling: Int[np.ndarray, " position"]
    sentence: Int[np.ndarray, " position"]
    punctuation: Bool[np.ndarray, " position"]
    governors: Sequence[tuple[int, int]]
    classifying: int
    classes: Int[np.ndarray, "draw position"] | None = None


def categories_of(
    tokens: BudgetTokens, some: slice = slice(None)
) -> tuple[Int[np.ndarray, "query key"], Bool[np.ndarray, "query key"]]:
    """Return the category of each query-key pair, such as "previous token", for some queries. Also return a mask of the
    pairs whose words are linked by syntax. Keys that a query cannot attend to are included."""
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
CLASSES = len(QUERY_CLASSES)


class _Input:
    """One input, prepared for all layers.

    Attributes:
        queries: positions over which the shares are averaged.
        even: shares under uniform attention, also of the classifying token, by window of a layer.
        even_by_class: the same, summed over the queries of each class; no rows if classes are not measured.
    """

    def __init__(self, tokens: BudgetTokens, heads: int, windows: Sequence[int | None], *, causal: bool) -> None:
        self.tokens, self.heads, self.causal, self.length = tokens, heads, causal, len(tokens.word)
        many = np.arange(1, self.length + 1) > 1 if causal else np.full(self.length, self.length > 1)
        self.queries = (tokens.word >= 0) & many
        self.n = max(int(self.queries.sum()), 1)
        self.has_classifying = bool(many[tokens.classifying])
        self.even = {window: np.zeros((2, WIDTH)) for window in dict.fromkeys(windows)}
        self.even_by_class = {window: np.zeros((len(self.members[:CLASSES]), WIDTH)) for window in self.even}
        positions = np.arange(self.length)
        for start in range(0, self.length, ROWS):
            some = slice(start, start + ROWS)
            is_category = _one_hot(self.rows(some)[0])
            for window, shares in self.even.items():
                within = visible_keys(positions[some], self.length, causal=causal, window=window)
                counts = (within[:, None].astype(np.float32) @ is_category)[:, 0]
                even = counts / within.sum(1)[:, None]
                shares[0] += even[self.queries[some]].sum(0) / self.n
                self.even_by_class[window] += self.members[:CLASSES, some] @ even
                if start <= tokens.classifying < start + ROWS:
                    shares[1] = even[tokens.classifying - start]
        self._taken: tuple[int, np.ndarray, np.ndarray] | None = None
        self._sums = np.zeros((heads, SUMS))
        self._by_class = np.zeros((heads, len(self.members), WIDTH))

    @cached_property
    def members(self) -> Float[np.ndarray, "draw_class query"]:
        """Return one mask of queries per class, first for the true classes and then for each random permutation of the
        classes. The result is empty if classes are not measured."""
        classes = self.tokens.classes
        if classes is None:
            return np.zeros((0, self.length), dtype=np.float32)
        is_class = classes[:, None] == np.arange(CLASSES)[:, None]
        return (is_class & self.queries).reshape(-1, self.length).astype(np.float32)

    def rows(self, some: slice) -> tuple[Int[np.ndarray, "query key"], Bool[np.ndarray, "query key"]]:
        """Return the category of each key for some queries; WIDTH for masked keys. Also return a mask of the syntactic
        heads and dependents that are counted in a category of CONTESTED."""
        if self.length > ROWS:
            return self._rows_of(some)
        categories, contested = self._rows
        return categories[some], contested[some]

    @cached_property
    def _rows(self) -> tuple[Int[np.ndarray, "query key"], Bool[np.ndarray, "query key"]]:
        return self._rows_of(slice(None))

    def _rows_of(self, some: slice) -> tuple[Int[np.ndarray, "query key"], Bool[np.ndarray, "query key"]]:
        categories, syntax = categories_of(self.tokens, some)
        if self.causal:
            seen = visible_keys(np.arange(self.length)[some], self.length, causal=True, window=None)
            categories[~seen] = WIDTH
        return categories, syntax & np.isin(categories, CONTESTED)

    @cached_property
    def cells(self) -> Float[np.ndarray, "cell sum"]:
        """Return a matrix [query-key pair, sum] that converts a flattened attention map to the attention to each
        category of keys. In the last columns, the attention to other keys at the same distance is subtracted."""
        categories, contested = self._rows
        length, at, position = self.length, self.tokens.classifying, np.arange(self.length)
        sums = np.zeros((length, length, SUMS + len(BEYOND)))
        is_category = _one_hot(categories)
        sums[self.queries, :, :WIDTH] = np.divide(is_category[self.queries], self.n, dtype=np.float64)
        sums[at, :, WIDTH : SUMS - 1] = is_category[at]
        sums[self.queries, :, SUMS - 1] = contested[self.queries] / self.n
        offset = position - position[:, None] + length - 1
        words = self.queries[:, None] & (categories >= REPEATED) & (categories < REST)
        count = np.bincount(offset[words], minlength=2 * length - 1)
        for number, category in enumerate(BEYOND):
            own = self.queries[:, None] & (categories == category)
            own_count = np.bincount(offset[own], minlength=len(count))
            others = count - own_count
            usual = np.where(others > 0, own_count / others.clip(1), 0.0)
            compared = own & (others > 0)[offset]
            sums[..., SUMS + number] = (compared - (words & ~own) * usual[offset]) / self.n
            self.compared[number] = compared.any()
        return sums.reshape(length * length, -1)

    @cached_property
    def compared(self) -> Bool[np.ndarray, " beyond"]:
        """Return a mask of the categories in BEYOND that can be compared with other keys at the same distance. All
        values are False until `cells` has been computed."""
        return np.zeros(len(BEYOND), dtype=bool)

    def take(self, head: int, start: int, weights: Any) -> None:
        """Add a block of attention rows to the running sums of one head. The block begins at query `start`."""
        stop = start + len(weights)
        if self._taken is None or self._taken[0] != start:  # the same for all heads
            self._taken = (start, *self.rows(slice(start, stop)))
        _, categories, contested = self._taken
        block, queries = weights.double().cpu().numpy()[:, : self.length], self.queries[start:stop]
        place = np.arange(len(block))[:, None] * (WIDTH + 1) + categories
        shares = np.bincount(place.ravel(), block.ravel(), len(block) * (WIDTH + 1)).reshape(len(block), -1)[:, :WIDTH]
        self._sums[head, :WIDTH] += shares[queries].sum(0) / self.n
        self._by_class[head] += self.members[:, start:stop] @ shares
        self._sums[head, -1] += (block[queries] * contested[queries]).sum() / self.n
        if start <= (at := self.tokens.classifying) < stop:
            row = np.bincount(categories[at - start], block[at - start], WIDTH + 1)
            self._sums[head, WIDTH:-1] = row[:WIDTH]

    def taken_by_class(self) -> Float[np.ndarray, "draw_class head category"]:
        """Return the attention from each class of queries to each category of keys in one layer, and reset the sums."""
        sums, self._by_class = self._by_class, np.zeros_like(self._by_class)
        return sums.swapaxes(0, 1)

    def taken(self) -> Float[np.ndarray, "head sum"]:
        """Return the accumulated attention to each category of keys in one layer, and reset the running sums."""
        sums, self._sums, self._taken = self._sums, np.zeros((self.heads, SUMS)), None
        return sums


class BudgetAttention:
    """An observer that measures how every head divides its attention among categories of keys. The attribute `means`
    contains the fraction of attention to each category, averaged over inputs.

    Attributes:
        draws: number of permutations in `BudgetTokens.classes`; None if budgets by class are not measured.
        by_class: mean share over the queries of each class, class by class.
        drawn: sums of shares over the queries of each class with permuted classes. *Shape:* (draw, class, layer, head,
            category).
        counts: number of queries of each class, unpermuted first. *Shape:* (1 + draw, class, layer).
        even: sums of shares over the queries of each class under uniform attention. *Shape:* (class, layer, category).
    """

    def __init__(
        self, layers: int, heads: int, *, causal: bool, windows: Sequence[int | None] = (), draws: int | None = None
    ) -> None:
        self.causal, self.heads, self.windows = causal, heads, tuple(windows) or (None,) * layers
        self.means = Means(layers, heads, STATISTICS)
        self.draws = draws
        self.by_class = Means(layers, heads, 0 if draws is None else CLASSES * WIDTH)
        self.drawn = np.zeros((draws or 0, CLASSES, layers, heads, WIDTH), dtype=np.float32)
        self.counts = np.zeros((0 if draws is None else 1 + draws, CLASSES, layers))
        self.even = np.zeros((0 if draws is None else CLASSES, layers, WIDTH))
        self._tokens: Sequence[BudgetTokens] = ()
        self._numbers: Sequence[int] = ()
        self._batch: dict[int, _Input] = {}

    def take(self, tokens: Sequence[BudgetTokens], numbers: Sequence[int]) -> "BudgetAttention":
        """Set the inputs of the next model run, and their indices in the study."""
        self._tokens, self._numbers, self._batch = tokens, numbers, {}
        return self

    def update(self, layer: int | slice, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        prepared = self._prepared(inputs)
        cells = torch.from_numpy(np.stack([ready.cells for ready in prepared]))
        sums = torch.bmm(weights.double().cpu().flatten(2), cells).numpy()
        compared = np.stack([ready.compared for ready in prepared])[:, None]
        self._add(layer, sums[..., :SUMS], np.where(compared, sums[..., SUMS:], np.nan), inputs)
        if self.draws is not None:
            is_category = torch.from_numpy(np.stack([_one_hot(ready.rows(slice(None))[0]) for ready in prepared]))
            members = torch.from_numpy(np.stack([ready.members for ready in prepared]))
            shares = weights.float().cpu().transpose(1, 2) @ is_category  # batch, query, head, category
            by_class = (members @ shares.flatten(2)).unflatten(2, shares.shape[2:])
            self._add_classes(layer, by_class.numpy(), inputs)

    def update_layers(self, weights: Float[Tensor, "batch layer_head query key"], inputs: list[int]) -> None:
        self.update(EVERY_LAYER, weights, inputs)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs] | None:
        """Request all attention weights of each long input, in blocks of queries. Return None if whole maps are needed.
        The comparison with other keys at the same distance is omitted for long inputs."""
        return [Needs(blocks=ready.take) for ready in self._prepared(inputs)] if queries == keys else None

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        taken = np.stack([ready.taken() for ready in self._prepared(inputs)])
        self._add(layer, taken, np.full((*taken.shape[:2], len(BEYOND)), np.nan), inputs)
        if self.draws is not None:
            self._add_classes(layer, np.stack([ready.taken_by_class() for ready in self._prepared(inputs)]), inputs)

    def _add_classes(
        self, layer: int | slice, sums: Float[np.ndarray, "batch draw_class layer_head category"], inputs: list[int]
    ) -> None:
        """Add the sums of shares over the queries of each class."""
        by_draw = sums.reshape(len(inputs), -1, CLASSES, *sums.shape[2:])
        members = np.stack([ready.members for ready in self._prepared(inputs)]).sum(-1).reshape(by_draw.shape[:3])
        values = by_draw[:, 0].swapaxes(1, 2).reshape(len(inputs), sums.shape[2], -1)
        numbers = [self._numbers[k] for k in inputs]
        self.by_class.update(layer, values.astype(float), np.repeat(members[:, 0], WIDTH, -1).astype(float), numbers)
        where = layer if isinstance(layer, slice) else slice(layer, layer + 1)
        drawn = by_draw[:, 1:].sum(0)
        self.drawn[:, :, where] += drawn.reshape(*drawn.shape[:2], drawn.shape[2] // self.heads, self.heads, WIDTH)
        self.counts[:, :, where] += members.sum(0)[..., None]
        for ready in self._prepared(inputs):
            self.even[:, where] += np.stack([ready.even_by_class[window] for window in self.windows[where]], 1)

    def _prepared(self, inputs: list[int]) -> list[_Input]:
        if list(self._batch) != inputs:
            self._batch = {
                number: _Input(self._tokens[number], self.heads, self.windows, causal=self.causal) for number in inputs
            }
        return list(self._batch.values())

    def _add(
        self,
        layer: int | slice,
        sums: Float[np.ndarray, "batch layer_head sum"],
        beyond: Float[np.ndarray, "batch layer_head beyond"],
        inputs: list[int],
    ) -> None:
        """Add the statistics of inputs, and what each is divided by."""
        layers = range(len(self.windows)) if isinstance(layer, slice) else [layer]
        prepared = self._prepared(inputs)
        values = np.zeros((len(inputs), len(layers), self.heads, STATISTICS))
        counts = np.zeros((len(inputs), len(layers), STATISTICS))
        found = sums.reshape(len(inputs), len(layers), self.heads, SUMS)
        values[..., SHARES] = values[..., ENRICHED] = found[..., :WIDTH]
        values[..., CLASSIFYING] = values[..., CLASSIFYING_ENRICHED] = found[..., WIDTH:-1]
        values[..., CONTEST] = found[..., -1]
        values[..., BEYOND_DISTANCE] = beyond.reshape(*found.shape[:3], -1)
        even = np.array([[ready.even[self.windows[number]] for number in layers] for ready in prepared])
        values[..., EXPECTED], values[..., CLASSIFYING_EXPECTED] = even[:, :, :1], even[:, :, 1:]
        known = np.array([[[ready.queries.any()], [ready.has_classifying]] for ready in prepared], dtype=float)
        text, classifying = known[:, :1], known[:, 1:]
        counts[..., SHARES] = counts[..., EXPECTED] = counts[..., CONTEST : CONTEST + 1] = text
        counts[..., ENRICHED] = even[:, :, 0] * text
        counts[..., CLASSIFYING] = counts[..., CLASSIFYING_EXPECTED] = classifying
        counts[..., CLASSIFYING_ENRICHED] = even[:, :, 1] * classifying
        counts[..., BEYOND_DISTANCE] = np.isfinite(values[:, :, 0, BEYOND_DISTANCE])
        numbers = [self._numbers[k] for k in inputs]
        of_layers = counts if isinstance(layer, slice) else counts[:, 0]
        self.means.update(layer, values.reshape(len(inputs), -1, STATISTICS), of_layers, numbers)


def _one_hot(categories: Int[np.ndarray, "query key"]) -> Float[np.ndarray, "query key category"]:
    return (categories[..., None] == np.arange(WIDTH, dtype=np.int8)).astype(np.float32)


# ---------------------------------------------------------------- budgets by class of the query


FEWEST = 20  # queries of a class that is compared with the others


@dataclass(frozen=True)
class ClassDistances:
    """How much each class of queries differs from all other queries in its attention to the categories of keys.

    Attributes:
        value: Jensen-Shannon distance (base 2, 0 to 1); NaN if the class or the others have fewer than FEWEST queries.
        even: the same under uniform attention, because words of each class have other neighbours and dependents.
        p: of the permutation test, corrected over classes (Holm).
    """

    value: Float[np.ndarray, "layer head query_class"]
    even: Float[np.ndarray, "layer head query_class"]
    p: Float[np.ndarray, "layer head query_class"]


def class_distances(
    by_class: Means,
    drawn: Float[np.ndarray, "draw query_class layer head category"],
    counts: Float[np.ndarray, "_ query_class layer"],
    even: Float[np.ndarray, "query_class layer category"],
) -> ClassDistances:
    """Compare each class of queries with all other queries by their attention to the categories of keys."""
    layers, heads = by_class.sums.shape[1:3]
    own = by_class.sums.sum(0).reshape(layers, heads, CLASSES, WIDTH)
    every = np.concatenate([own.transpose(2, 0, 1, 3)[None], drawn]).astype(float)

    def apart(sums: np.ndarray, axis: int) -> np.ndarray:
        others = (sums.sum(axis, keepdims=True) - sums).clip(0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num(jensenshannon(sums, others, base=2, axis=-1))

    distances = apart(every, 1)
    known = (counts[0] >= FEWEST) & (counts[0].sum(0) - counts[0] >= FEWEST)
    p = ((distances[1:] >= distances[:1] - 1e-9).sum(0) + 1) / (1 + len(drawn))
    corrected = np.full((layers, heads, CLASSES), np.nan)
    for layer, head in np.ndindex(layers, heads):
        corrected[layer, head, known[:, layer]] = holm_adjusted(p[known[:, layer], layer, head])
    mask = np.where(known.T[:, None], 1.0, np.nan)
    uniform = np.broadcast_to(apart(even, 0).T[:, None], corrected.shape)
    return ClassDistances(distances[0].transpose(1, 2, 0) * mask, uniform * mask, corrected)
