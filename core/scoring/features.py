"""Attention to tokens with a feature (Kovaleva et al. 2019, section 4.4 and Fig 6; Clark et al. 2019, 3.2).

The column of key k is c[k] = mean over queries of A[query, k]. In causal models, the first query, which attends only to
itself, is left out. DEFINITIONS name the ways to measure the attention to a feature from the columns of its tokens;
max-visible, of causal models, averages over the queries that see the key, because more queries see early keys.

Inputs without the feature are left out. The baseline is as many other tokens of the text near those of the feature,
drawn several times; an effect is a value minus the baseline of its input. The baseline of positional features ([CLS],
the first word, separators) is uniform attention, because more queries see the first tokens of a causal model. A
contrast removes the effect of positions and, for syntactic features, also that of the word class. A head is claimed if
effect and contrast are above 0.
"""

import random
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..map_sums import MapSums, Needs
from .definitions import DEFINITIONS
from .intervals import EVERY_LAYER, Means, StatisticEstimate
from .link_contrasts import by_draw, cells_of, means_over_draws, weights_at

# ---------------------------------------------------------------- feature contrasts


DRAWS = 16  # for each feature of an input
TRIED = 64  # candidates for these draws
WAYS = ("any query", "the classifying token")


@dataclass(frozen=True)
class Rhombi:
    """Query-key positions for comparing the attention to tokens with a feature and to tokens without this feature.

    Attributes:
        queries: positions of q and q+t, for any ordinary query and for the classifying token (WAYS).
        fits: draws with all cells inside, of which only k has the feature.
    """

    queries: Int[np.ndarray, "way feature draw two"]
    keys: Int[np.ndarray, "way feature draw four"]
    fits: Bool[np.ndarray, "way feature draw"]


@dataclass(frozen=True)
class Kinds:
    """The kind of word (such as noun) at each position. For syntactic features, each word is compared only with words
    of the same kind.

    Attributes:
        of: index of the kind, -1 for none.
        roles: syntactic features, whose contrasts stay within kinds.
        words: index of the word, equal for equal spelling, -1 for none; None leaves no cell out.
    """

    of: Int[np.ndarray, " key"]
    roles: Bool[np.ndarray, " feature"]
    words: Int[np.ndarray, " key"] | None = None


class Marked(NamedTuple):
    """An input and its tokens with each feature, which are compared with random tokens without the feature."""

    tokens: Bool[np.ndarray, "feature key"]
    ordinary: Sequence[int]
    kinds: Kinds
    classifying: int
    seed: tuple[int, ...]


def rhombi_of_inputs(inputs: Sequence[Marked], *, causal: bool) -> list[Rhombi]:
    """Draw random comparisons of tokens with and without each feature. For each feature of each input, up to DRAWS
    comparisons use an ordinary token as the query, and up to DRAWS use the classifying token ([CLS]).

    Inputs have equal length and the same features; draws depend only on the seed of the input. `causal`: keys must not
    follow their queries.
    """
    tokens = np.stack([marked.tokens for marked in inputs])
    plain = np.zeros((len(inputs), tokens.shape[-1]), dtype=bool)
    for row, marked in zip(plain, inputs, strict=True):
        row[list(marked.ordinary)] = True
    shape = (len(inputs), len(WAYS), tokens.shape[1], DRAWS)
    queries, keys = (np.zeros((*shape, cells), dtype=int) for cells in (2, 4))
    is_filled = np.zeros(shape, dtype=bool)
    compared = (tokens & plain[:, None]).any(-1) & (~tokens & plain[:, None]).any(-1)  # some inside, some outside
    if compared.any():
        drawn = _Drawn(inputs, tokens, plain, np.nonzero(compared))
        group, cells = drawn.fitting(causal=causal)  # ascending
        counts = np.bincount(group, minlength=len(drawn.number) * len(WAYS))
        rank = np.arange(len(group)) - (np.cumsum(counts) - counts)[group]
        is_early = rank < DRAWS
        row, way = np.divmod(group[is_early], len(WAYS))
        cell = (drawn.number[row], way, drawn.feature[row], rank[is_early])
        keys[cell], queries[cell], is_filled[cell] = cells[is_early, :4], cells[is_early, 4:], True
    return [Rhombi(*rhombi) for rhombi in zip(queries, keys, is_filled, strict=True)]


class _Drawn:
    """Draws of each row (a feature of an input) and way, fitting or not."""

    def __init__(self, inputs: Sequence[Marked], tokens: np.ndarray, plain: np.ndarray, rows: tuple[np.ndarray, ...]):
        self.number, self.feature = rows
        self.own, self.plain = tokens[rows], plain
        self.kinds = np.stack([marked.kinds.of for marked in inputs])
        self.roles = np.stack([marked.kinds.roles for marked in inputs])[rows]
        nothing = np.full(tokens.shape[-1], -1)
        self.words = np.stack([nothing if marked.kinds.words is None else marked.kinds.words for marked in inputs])
        shape = (4, len(WAYS), tokens.shape[1], TRIED)
        drawn = np.empty((len(inputs), *shape))
        for numbers, marked in zip(drawn, inputs, strict=True):
            np.random.default_rng(list(marked.seed)).random(out=numbers)
        chance = drawn[self.number, :, :, self.feature].swapaxes(0, 1)  # [four, row, way, draw]
        self.first = _chosen(self.own & plain[self.number], chance[0])
        self.other = self._others(chance[1])
        self.step = (chance[2] * (2 * tokens.shape[-1] - 1)).astype(int) - tokens.shape[-1] + 1
        self.query = _chosen(plain[self.number], chance[3])
        self.query[:, 1] = np.array([marked.classifying for marked in inputs])[self.number, None]

    def _others(self, chance: Float[np.ndarray, "row way draw"]) -> Int[np.ndarray, "row way draw"]:
        """Tokens without the feature, for roles those of the same kind as `first`; -1 if there are none."""
        lacking = ~self.own & self.plain[self.number]
        alternatives, roles = _chosen(lacking, chance), np.flatnonzero(self.roles)
        if len(roles):
            role, position = np.nonzero(self.own[roles] & self.plain[self.number[roles]])
            ranks = np.zeros((len(roles), self.own.shape[1]), dtype=int)
            ranks[role, position] = np.arange(len(role))
            kinds = self.kinds[self.number[roles]][role]  # for each token with the role, the other tokens of its kind
            kind = kinds[np.arange(len(role)), position][:, None]
            alike = lacking[roles][role] & (kinds == kind) & (kind >= 0)
            token = ranks[np.arange(len(roles))[:, None, None], self.first[roles]]
            alternatives[roles] = np.where(alike.any(1)[token], _positions(alike, token, chance[roles]), -1)
        return alternatives

    def fitting(self, *, causal: bool) -> tuple[Int[np.ndarray, " draw"], Int[np.ndarray, "draw six"]]:
        """Return the group index and the six token positions of each valid random draw. Draws in the same group have
        the same input, feature and type of query.

        The positions are k, o, k+t, o+t, q and q+t: q is the query, k the key, o another key and t a shift.
        """
        length = self.own.shape[1]
        fits = (self.other >= 0) & (self.step != 0)
        for positions in (self.first, self.other, self.query):
            fits &= (positions + self.step >= 0) & (positions + self.step < length)
        at = np.flatnonzero(fits)
        first, alternative, step, query = (part.ravel()[at] for part in (self.first, self.other, self.step, self.query))
        group = at // TRIED
        row = group // len(WAYS)
        number = self.number[row]
        cells = np.stack([first, alternative, first + step, alternative + step, query, query + step])
        moved = self.kinds[number, cells[2:4]]
        valid = (self.plain[number, cells[[2, 3, 5]]] & ~self.own[row, cells[1:4]]).all(0)
        valid &= ~self.roles[row] | ((moved[0] == moved[1]) & (moved[0] >= 0))
        words = self.words[number, cells]
        is_same = (words[:4] == words[[4, 4, 5, 5]]) & (words[[4, 4, 5, 5]] >= 0)  # of a key and its query
        valid &= ~is_same.any(0)
        if causal:
            valid &= (cells[:2] <= query).all(0)
        return group[valid], cells[:, valid].T


def _chosen(
    among: Bool[np.ndarray, "row key"], chance: Float[np.ndarray, "row way draw"]
) -> Int[np.ndarray, "row way draw"]:
    """Uniformly drawn positions of each row. chance: uniform numbers."""
    return _positions(among, np.arange(len(among))[:, None, None], chance)


def _positions(
    among: Bool[np.ndarray, "set key"], of: Int[np.ndarray, "row _ _"], chance: Float[np.ndarray, "row way draw"]
) -> Int[np.ndarray, "row way draw"]:
    """A drawn position of each set; arbitrary if the set is empty."""
    order = np.argsort(~among, axis=1, kind="stable")
    return order[of, (chance * among.sum(1)[of]).astype(int)]


@dataclass(frozen=True)
class RhombusCells:
    """Query-key positions for comparing attention to tokens with and without a feature, computed once for all layers.

    Attributes:
        queries: positions of the queries, with the signs of SIGNS.
        starts: the first draw of each nonempty group (input, way, feature).
        filled: indices of these groups in `shape`.
    """

    batch: Int[np.ndarray, " draw"]
    queries: Int[np.ndarray, "draw four"]
    keys: Int[np.ndarray, "draw four"]
    starts: Int[np.ndarray, " group"]
    filled: Int[np.ndarray, " group"]
    shape: tuple[int, int, int]

    @classmethod
    def of(cls, drawn: Sequence[Rhombi]) -> "RhombusCells":
        """Concatenate the query-key positions of all valid draws for the inputs in a batch."""
        fits = np.stack([cells.fits for cells in drawn])
        queries = np.stack([cells.queries for cells in drawn])[fits]
        keys = np.stack([cells.keys for cells in drawn])[fits]
        groups = np.flatnonzero(fits) // fits.shape[-1]
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        batch = groups // (fits.shape[1] * fits.shape[2])
        return cls(batch, queries[:, [0, 0, 1, 1]], keys, starts, groups[starts], fits.shape[:3])

    def of_input(self, number: int) -> Int[np.ndarray, "cell 2"]:
        """Return the query-key positions at which attention is compared in one input of the batch."""
        in_batch = self.batch == number
        return np.stack([self.queries[in_batch].ravel(), self.keys[in_batch].ravel()], -1)


SIGNS = np.array([1.0, -1.0, -1.0, 1.0])


def contrasts_of(
    weights: Float[np.ndarray, "four draw head"], cells: RhombusCells
) -> Float[np.ndarray, "batch way feature head"]:
    """Return the log attention to tokens with a feature minus that to random tokens without it, for each input.

    The same difference at shifted positions, between tokens without the feature, is subtracted. In nats, averaged over
    draws; NaN without draws. `weights` are those of the cells of each draw, in the order of SIGNS.
    """
    contrasts = np.full((int(np.prod(cells.shape)), weights.shape[-1]), np.nan)
    if len(cells.starts):
        contrasts[cells.filled] = means_over_draws(weights, SIGNS, cells.starts)
    return contrasts.reshape(*cells.shape, -1)


NEAREST = 6  # a token of the null is drawn from so many nearest ones
NULLS = 3  # null draws of an input and feature


@dataclass(frozen=True)
class Marks:
    """The positions of the tokens with each feature in one input, and of random other tokens as a baseline.

    Attributes:
        nulls: positions drawn for the baseline; all False if there are too few other tokens.
        rhombi: cells of contrasts, or None.
        types: word type (token ID) of each position, -1 for none; None if word types are not measured.
    """

    tokens: Bool[np.ndarray, "feature key"]
    nulls: Bool[np.ndarray, "draw feature key"]
    classifying: int
    rhombi: Rhombi | None = None
    types: Int[np.ndarray, " key"] | None = None


def mark(
    tokens: Bool[np.ndarray, "feature key"],
    ordinary: Sequence[int],
    *,
    classifying: int,
    seed: Sequence[int],
    rhombi: Rhombi | None = None,
    types: Int[np.ndarray, " key"] | None = None,
) -> Marks:
    """Mark the tokens of one input that have each feature, and draw NULLS random sets of other tokens as a baseline."""
    chance = random.Random(str(list(seed)))  # noqa: S311 - numpy's takes longer to make than the draws do
    drawn: list[int] = []  # of all cells of the nulls
    features, length = tokens.shape
    for feature, row in enumerate(tokens.tolist()):
        if True not in row:
            continue
        places, unmarked = [k for k, carries in enumerate(row) if carries], [k for k in ordinary if not row[k]]
        for draw in range(NULLS if len(places) <= len(unmarked) else 0):
            start = (draw * features + feature) * length
            drawn += [start + position for position in _near(places, unmarked, chance)]
    nulls = np.zeros((NULLS, features, length), dtype=bool)
    nulls.reshape(-1)[drawn] = True
    return Marks(tokens, nulls, classifying, rhombi, types)


def _near(places: list[int], unmarked: list[int], chance: random.Random) -> list[int]:
    """Return as many of `unmarked` (ascending) as there are places, each drawn from the NEAREST neighbours of a
    place."""
    left, nearest, number = list(unmarked), [], chance.random
    for position in _in_drawn_order(places, chance) if len(places) > 1 else places:
        low, last = max(0, bisect_left(left, position) - NEAREST), len(left) - NEAREST
        while low < last and left[low + NEAREST] - position < position - left[low]:
            low += 1
        nearest.append(left.pop(low + int(number() * min(NEAREST, len(left) - low))))
    return nearest


def _in_drawn_order(places: list[int], chance: random.Random) -> list[int]:
    """All of them in the order of Python 3.11's `random.sample`, without its checks."""
    left, drawn = list(places), []
    for count in range(len(places), 0, -1):
        while (number := chance.getrandbits(count.bit_length())) >= count:
            pass
        drawn.append(left[number])
        left[number] = left[count - 1]
    return drawn


# ---------------------------------------------------------------- word types


BESIDE = 6  # nearest tokens that a token is compared with
SETS, AT_ONCE = 10_000, 1_000  # drawn sets of word types, and how many of them are in memory


def beside_neighbours(weights: Float[np.ndarray, "token head"]) -> Float[np.ndarray, "token head"]:
    """Return the attention to each token minus the median attention to its nearest neighbours. There must be at
    least two tokens."""
    width, token = min(BESIDE + 1, len(weights)), np.arange(len(weights))[:, None]
    window = np.clip(token - BESIDE // 2, 0, len(weights) - width) + np.arange(width)
    nearest = window[window != token].reshape(len(weights), -1)
    return np.asarray(weights - np.median(weights[nearest], axis=1))


def p_of_word_types(types: Mapping[int, Float[np.ndarray, " sum"]], feature: int, features: int, head: int) -> float:
    """Return a one-sided p value for word types with a feature. The alternative hypothesis is that they get more
    attention than equally many random word types.

    Each word type counts once, because a head that prefers a few words seems to attend to every feature of these words.
    A type has the feature if most of its tokens do. p is at least 1 / (SETS + 1); NaN if no or every word type has the
    feature.
    """
    if not types:
        return float("nan")
    table = np.array([types[word] for word in sorted(types)])
    carrying = 2 * table[:, 1 + feature] > table[:, 0]
    weights, chosen = table[:, 1 + features + head] / table[:, 0], int(carrying.sum())
    if not 0 < chosen < len(weights):
        return float("nan")
    reached, generator = 1, np.random.default_rng(0)
    least = weights[carrying].sum() - 1e-9 * np.abs(weights).sum()  # less rounding error of the order
    for _ in range(SETS // AT_ONCE):
        order = generator.random((AT_ONCE, len(weights)), dtype=np.float32)
        drawn = np.argpartition(order, chosen, axis=1)[:, :chosen]
        reached += int((weights[drawn].sum(1) >= least).sum())
    return reached / (SETS + 1)


def columns(
    cells: Float[np.ndarray, "batch query key head"], *, causal: bool = False, visible: bool = False
) -> Float[np.ndarray, "batch key head"]:
    """Return the attention that each key receives, averaged over queries.

    `causal` leaves out query 0, which attends only to itself, unless it is the only one. `visible` averages over the
    queries at or after the key.
    """
    length = cells.shape[2]
    rows = cells[:, 1:] if causal and length > 1 else cells
    if cells.flags.c_contiguous:  # a product is faster than a sum
        total = np.ones(rows.shape[1], dtype=rows.dtype) @ rows.reshape(*rows.shape[:2], -1)
    else:
        total = torch.from_numpy(rows).permute(0, 3, 1, 2).sum(2).transpose(1, 2).numpy()
    queries_seeing = np.arange(length, 0, -1)[:, None].clip(max=rows.shape[1]) if visible else rows.shape[1]
    return total.reshape(len(cells), length, cells.shape[-1]) / np.asarray(queries_seeing, dtype=rows.dtype)


class _Batch:
    """The marked positions of inputs of equal length, found once and used for every layer. A group is one feature of
    one input, as marked (0) or as drawn for the baseline (1 to NULLS)."""

    def __init__(self, inputs: list[int], marks_of_inputs: list[Marks], *, kinds: int):
        self.inputs, self.classifying = list(inputs), [marks.classifying for marks in marks_of_inputs]
        marked = np.stack([np.concatenate([marks.tokens[None], marks.nulls]) for marks in marks_of_inputs])
        self.shape = marked.shape[:-1]  # input, mark, feature
        groups, self.keys = np.nonzero(marked.reshape(-1, marked.shape[-1]))
        self.starts = np.flatnonzero(np.diff(groups, prepend=-1))
        self.filled = groups[self.starts]
        self.owner = groups // (self.shape[1] * self.shape[2])
        present: np.ndarray = np.asarray(marked.any(-1))
        self.counts = np.tile(np.concatenate([present[:, 0], present[:, 1]], 1).astype(float), (1, kinds))
        drawn = [marks.rhombi for marks in marks_of_inputs if marks.rhombi is not None]
        self.cells = RhombusCells.of(drawn) if len(drawn) == len(marks_of_inputs) else None
        self.tokens = [marks.tokens for marks in marks_of_inputs]
        self.types = [marks.types for marks in marks_of_inputs]

    def gathered(self, values: Float[np.ndarray, "batch key head"]) -> Float[np.ndarray, "place head"]:
        """Return the values at the positions of all marked keys, sorted by group."""
        return values[self.owner, self.keys]

    def reduced(
        self, gathered: Float[np.ndarray, "place head"], by: np.ufunc
    ) -> Float[np.ndarray, "batch mark feature head"]:
        """Combine the attention values of each group of marked keys with a ufunc such as np.add. NaN for groups without
        marked keys."""
        reduced = np.full((int(np.prod(self.shape)), gathered.shape[1]), np.nan)
        if len(self.starts):
            exact = gathered.astype(np.float64) if by is np.add else gathered  # maxima need no higher precision
            reduced[self.filled] = by.reduceat(exact, self.starts)
        return reduced.reshape(*self.shape, -1)


@dataclass(frozen=True)
class _Taken:
    """What the definitions need from one layer: the mean over queries of each key, the row of the classifying token, in
    causal models the mean over the queries that see the key, and the cells of the contrasts."""

    mean: Float[np.ndarray, "batch key head"]
    classifying: Float[np.ndarray, "batch key head"]
    visible: Float[np.ndarray, "batch key head"] | None
    cells: Float[np.ndarray, "four draw head"] | None


def _even(length: int, classifying: Sequence[int]) -> _Taken:
    """Return the same for uniform causal attention over the visible keys."""
    keys, share = np.arange(length), 1 / np.arange(1, length + 1)
    share[0] *= length == 1  # the first query has no choice
    received = np.cumsum(share[::-1])[::-1]
    rows = [np.where(keys <= at, 1 / (at + 1), 0.0) for at in classifying]
    mean, visible = received / max(length - 1, 1), received / np.minimum(np.arange(length, 0, -1), max(length - 1, 1))
    pair_of_means = (np.tile(values[:, None], (len(rows), 1, 1)) for values in (mean, visible))
    return _Taken(next(pair_of_means), np.stack(rows)[:, :, None], next(pair_of_means), None)


class FeatureAttention:
    """An observer that measures the attention to tokens with each feature, and its difference from a baseline. Both are
    averaged over inputs. The baseline is the attention to random tokens.

    Attributes:
        features: names, in the order of `Marks.tokens`.
        places: mask of positional features, whose baseline in causal models is uniform attention instead.
        types: for each word type, if measured: number of its tokens, of those with each feature, and sums of
            `beside_neighbours` over them for the heads of each layer.
    """

    def __init__(
        self, layers: int, heads: int, features: Sequence[str], *, causal: bool, places: Collection[str] = ()
    ) -> None:
        self.features, self.causal = tuple(features), causal
        self.places = np.array([name in places for name in self.features], dtype=bool)
        self.definitions = [name for name in DEFINITIONS if causal or name != "max-visible"]
        kinds = len(self.definitions) * len(self.features)
        self.means = Means(layers, heads, 2 * kinds + len(WAYS) * len(self.features))
        self.types: dict[int, np.ndarray] = {}
        self._marks: Sequence[Marks] = ()
        self._numbers: Sequence[int] = ()
        self._batch: _Batch | None = None

    def take(self, marks: Sequence[Marks], numbers: Sequence[int]) -> "FeatureAttention":
        """Set the feature marks of the inputs in the next model run, and the indices of these inputs in the study."""
        self._marks, self._numbers, self._batch = marks, numbers, None
        return self

    def update(self, layer: int | slice, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        batch, cells = self._batch_of(inputs), cells_of(weights)
        rows = cells[np.arange(len(inputs)), batch.classifying]
        drawn = batch.cells
        at = None if drawn is None else weights_at(cells, drawn.batch, drawn.queries, drawn.keys)
        visible = columns(cells, causal=True, visible=True) if self.causal else None
        self._add(layer, _Taken(columns(cells, causal=self.causal), rows, visible, at), batch)

    def update_layers(self, weights: Float[Tensor, "batch layer_head query key"], inputs: list[int]) -> None:
        self.update(EVERY_LAYER, weights, inputs)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs] | None:
        """Request the attention to each key, the rows of the classifying token and of query 0, and weights at random
        positions for each input, instead of whole maps. Return None if whole maps are needed."""
        if queries != keys:
            return None
        batch = self._batch_of(inputs)
        cells = [None if batch.cells is None else batch.cells.of_input(k) for k in range(len(inputs))]
        rows = [(classifying, 0) for classifying in batch.classifying]
        return [Needs(columns=True, rows=row, cells=input_cells) for row, input_cells in zip(rows, cells, strict=True)]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        batch = self._batch_of(inputs)
        received = np.stack([layer_sums.columns.T for layer_sums in sums])
        rows = np.stack([layer_sums.rows[:, 0].T for layer_sums in sums])
        length, visible = received.shape[1], None
        if self.causal and length > 1:
            received = received - np.stack([layer_sums.rows[:, 1].T for layer_sums in sums])
            visible = received / np.minimum(np.arange(length, 0, -1), length - 1)[:, None]
        elif self.causal:
            visible = received
        mean = received / (length - (self.causal and length > 1))
        at = None if batch.cells is None else np.concatenate([layer_sums.cells for layer_sums in sums], 1)
        self._add(layer, _Taken(mean, rows, visible, None if at is None else by_draw(at, 4)), batch)

    def _batch_of(self, inputs: list[int]) -> _Batch:
        if self._batch is None or self._batch.inputs != inputs:  # the same for all layers of a batch
            self._batch = _Batch(inputs, [self._marks[k] for k in inputs], kinds=len(self.definitions))
        return self._batch

    def _add(self, layer: int | slice, weights: _Taken, batch: _Batch) -> None:
        """Add every definition's values of one layer."""
        sums: list[np.ndarray] = []
        even = _even(weights.mean.shape[1], batch.classifying) if self.causal and self.places.any() else None
        beside = {} if even is None else self._reduced(even, batch)
        for definition, reduced in self._reduced(weights, batch).items():
            value, null = reduced[:, 0], reduced[:, 1:].mean(1)
            if beside:
                null[:, self.places] = beside[definition][:, 0][:, self.places]
            sums += [value, value - null]
        contrast = np.full((len(batch.inputs), len(WAYS) * len(self.features), sums[0].shape[-1]), np.nan)
        if weights.cells is not None and batch.cells is not None:
            contrast[:] = contrasts_of(weights.cells, batch.cells).reshape(contrast.shape)
        layers = len(self.means.inputs) if isinstance(layer, slice) else 1
        drawn = np.isfinite(contrast[..., :: contrast.shape[-1] // layers]).astype(float)  # in a layer's first head
        counts = np.concatenate([np.repeat(batch.counts[:, None], layers, 1), drawn.swapaxes(1, 2)], 2)
        counts = counts if isinstance(layer, slice) else counts[:, 0]
        numbers = [self._numbers[k] for k in batch.inputs]
        self.means.update(layer, np.concatenate([*sums, contrast], 1).swapaxes(1, 2), counts, numbers)
        self._add_types(layer, weights.mean if weights.visible is None else weights.visible, batch)

    def _add_types(self, layer: int | slice, weights: Float[np.ndarray, "batch key head"], batch: _Batch) -> None:
        """Add one layer's weights by word type; tokens are counted in the first layer."""
        is_first = isinstance(layer, slice) or layer == 0
        start = 1 + len(self.features) + (0 if isinstance(layer, slice) else layer * weights.shape[-1])
        for types, tokens, own in zip(batch.types, batch.tokens, weights, strict=True):
            places = np.zeros(0, dtype=int) if types is None else np.flatnonzero(types >= 0)
            if types is None or len(places) < 2:
                continue
            words, word = np.unique(types[places], return_inverse=True)
            sums = np.zeros((len(words), 1 + len(self.features) + self.means.sums.shape[1] * self.means.sums.shape[2]))
            np.add.at(sums[:, start : start + own.shape[-1]], word, beside_neighbours(own[places].astype(np.float64)))
            if is_first:
                np.add.at(
                    sums[:, : 1 + len(tokens)], word, np.concatenate([np.ones((1, len(places))), tokens[:, places]]).T
                )
            for number, added in zip(words.tolist(), sums, strict=True):
                self.types[number] = self.types[number] + added if number in self.types else added.copy()

    def _reduced(self, weights: _Taken, batch: _Batch) -> dict[str, Float[np.ndarray, "batch mark feature head"]]:
        """Return every definition's value of each group."""
        gathered = {"mean": batch.gathered(weights.mean), "classifying": batch.gathered(weights.classifying)}
        if weights.visible is not None:
            gathered["max-visible"] = batch.gathered(weights.visible)
        return {
            name: batch.reduced(gathered.get(name, gathered["mean"]), np.add if name == "sum" else np.maximum)
            for name in self.definitions
        }

    def result(self) -> dict[tuple[str, str], tuple[StatisticEstimate, StatisticEstimate]]:
        """Return a dictionary from (definition of attention, feature) to two estimates [layer, head, 1]: the attention
        to tokens with the feature, and this attention minus its baseline."""
        return by_feature(self, self.means.result())

    def contrast(self, definition: str, feature: str) -> StatisticEstimate:
        """Return the mean contrast between tokens with and without a feature, for one definition of attention."""
        return self.means.result().part(self.contrast_column(definition, feature))

    def contrast_column(self, definition: str, feature: str) -> int:
        """Return the column of `means` with the contrast, for one feature and definition of attention."""
        start = 2 * len(self.definitions) * len(self.features)
        way = len(self.features) * (definition == "classifying")
        return start + way + self.features.index(feature)

    def effect_column(self, definition: str, feature: str) -> int:
        """Return the column of `means` with attention minus baseline, for one feature and definition of attention."""
        width = len(self.features)
        return 2 * self.definitions.index(definition) * width + width + self.features.index(feature)


def by_feature(
    observer: FeatureAttention, estimate: StatisticEstimate
) -> dict[tuple[str, str], tuple[StatisticEstimate, StatisticEstimate]]:
    """Return a dictionary from (definition of attention, feature) to two estimates: the attention, and the attention
    minus its baseline."""
    width, effects = len(observer.features), {}
    for number, definition in enumerate(observer.definitions):
        for k, feature in enumerate(observer.features):
            column = 2 * number * width + k
            effects[definition, feature] = (estimate.part(column), estimate.part(column + width))
    return effects
