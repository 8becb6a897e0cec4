"""Roles of heads: attention to target tokens compared with a baseline, with and without the sink.

A score is the mean over queries with a target of the weight on their targets. Targets and baselines:

    previous, next   the neighbour; uniform attention over visible keys
    first            the first token ([CLS] or the start token); likewise
    separator        all separators together; the head's mean weight on other keys at the same distance
    duplicate        from the second occurrence of a token to the first; the same cells of a control without repeats
    prefix           from the second occurrence to the token after the first (Olsson et al. 2022); likewise
    rare             how often the largest weight is on the least frequent word; a draw among visible keys
    dependency       from a word to its governor and dependents; the head's mean on others at the same distance

Heads attend to the first token if nothing else is relevant (the sink). Without the sink, its column is dropped and rows
are normalised to 1, so that a head with a weak role is found and a head on the first token is not called positional.
Rows with less than LEAST left count as 0.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from ..errors import InputError
from .corrections import q_values
from .intervals import Means, StatisticEstimate

Role = Literal["previous", "next", "first", "separator", "duplicate", "prefix", "rare", "dependency"]
ROLES: tuple[Role, ...] = get_args(Role)
OWN_DISTANCE = ("separator", "dependency")  # whose baseline is the head's own weight at the same distance
TIMES = 3.0  # a head has a role when its weight is above so many times the baseline's (Pande et al.'s sieve)
LEAST = 0.01  # of a row's weight: scaled up from less, it would be noise


@dataclass(frozen=True)
class RolePositions:
    """Positions that the roles of heads refer to. `repeat` is (start, period) of tokens that occur twice, or None."""

    length: int
    first: int = 0
    separators: tuple[int, ...] = ()
    repeat: tuple[int, int] | None = None
    causal: bool = False
    rare: tuple[int, ...] = ()
    links: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        start, period = self.repeat or (0, 1)
        end = start + 2 * period if self.repeat else 0
        named = (self.first, *self.separators, *self.rare, *(k for link in self.links for k in link))
        if not all(0 <= k < self.length for k in named) or end > self.length or period < 1:
            raise InputError(
                f"Token positions must be inside the input of {self.length} tokens; got first token "
                f"{self.first}, separators {self.separators}, rare words {self.rare} and repeat "
                f"{self.repeat}. Correct them."
            )

    def seen(self) -> Bool[np.ndarray, "query key"]:
        """Return which keys each query may attend to; none for the first query of a decoder, which has no choice."""
        visible = np.ones((self.length, self.length), dtype=bool)
        return np.tril(visible) & (np.arange(self.length) > 0)[:, None] if self.causal else visible

    def targets(self, role: Role) -> Bool[np.ndarray, "query key"]:
        """Return a mask over query-key cells that is True at the visible targets of a role."""
        cells = np.zeros((self.length, self.length), dtype=bool)
        if role in ("previous", "next"):
            cells = np.eye(self.length, k=1 if role == "next" else -1, dtype=bool)
        elif role in ("first", "separator"):
            cells[:, [self.first] if role == "first" else list(self.separators)] = True
        elif role == "rare":
            cells[np.ix_([k for k in range(self.length) if k not in self.rare], self.rare)] = True
        elif role == "dependency":
            for first, counterpart in self.links:
                cells[first, counterpart] = cells[counterpart, first] = first != counterpart
        elif self.repeat:
            start, period = self.repeat
            second = np.arange(start + period, start + 2 * period)
            cells[second, second - period + (role == "prefix")] = True
        return cells & self.seen()


@dataclass(frozen=True)
class RoleScore:
    """The score of every head for one role (such as attending to the previous token) on one input; NaN without targets.

    Attributes:
        weight, baseline: weight on the targets of the role, and that of the baseline.
        without_sink, baseline_without_sink: the same without the sink; NaN for targets on the sink.
        left: mean fraction of the weight of rows that is not on the sink.
    """

    weight: Float[np.ndarray, "*heads"]
    baseline: Float[np.ndarray, "*heads"]
    without_sink: Float[np.ndarray, "*heads"]
    baseline_without_sink: Float[np.ndarray, "*heads"]
    left: Float[np.ndarray, "*heads"]


def role_scores(
    weights: Float[np.ndarray, "*heads query key"],
    places: RolePositions,
    *,
    control: Float[np.ndarray, "*heads query key"] | None = None,
    only: Sequence[Role] = ROLES,
) -> dict[Role, RoleScore]:
    """Compute the scores of several roles for every head on one input.

    `control` has maps of an equally long input without repeats; InputError if `places` has a repeat and there is none.
    """
    if places.repeat and control is None:
        raise InputError(
            "Roles on repeated tokens need the maps of a control input of the same length without repeats; "
            "got none. Pass them as control."
        )
    sink, visible = places.first, places.seen()
    looked = _InputMaps(np.asarray(weights, dtype=float), control, visible)
    rest_seen = visible & (np.arange(places.length) != sink)
    its_rest = None if control is None else without_sink(control, sink)
    without = _InputMaps(without_sink(weights, sink), its_rest, rest_seen)
    rows = visible.any(-1)
    left = 1 - looked.weights[..., rows, sink].mean(-1) if rows.any() else np.full(weights.shape[:-2], np.nan)
    scores: dict[Role, RoleScore] = {}
    for role in only:
        cells = places.targets(role)
        scores[role] = RoleScore(*looked.score(role, cells), *without.score(role, cells), left)
    return scores


def without_sink(weights: Float[np.ndarray, "*heads query key"], sink: int) -> Float[np.ndarray, "*heads query key"]:
    """Return weights without the sink, rows normalised to 1, float64; rows with less than LEAST left are 0."""
    without = weights.astype(float)
    without[..., sink] = 0
    left = without.sum(-1, keepdims=True)
    return np.where(left >= LEAST, without / np.maximum(left, LEAST), 0.0)


@dataclass(frozen=True)
class _InputMaps:
    """One input's maps, with or without the sink, and which keys a query may attend to."""

    weights: np.ndarray
    control: np.ndarray | None
    seen: np.ndarray

    def score(self, role: Role, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the attention to the targets of a role, and the attention expected by the role's baseline."""
        cells = cells & self.seen
        if not cells.any():
            nothing = np.full(self.weights.shape[:-2], np.nan)
            return nothing, nothing
        on = _largest_on if role == "rare" else on_targets
        return on(self.weights, cells), _baseline(role, self.weights, self.control, cells, self.seen)


def _largest_on(weights: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return the fraction of queries with a target whose largest weight is on one; rows without weight count as no."""
    rows = cells.any(-1)
    shown, targets = weights[..., rows, :], cells[rows]
    chosen = shown.argmax(-1)
    return np.asarray((targets[np.arange(len(targets)), chosen] & (shown.max(-1) > 0)).mean(-1))


def on_targets(
    weights: Float[np.ndarray, "*heads query key"], cells: Bool[np.ndarray, "query key"]
) -> Float[np.ndarray, "*heads"]:
    """Return the attention to target cells, mean over queries that have a target; NaN without such queries."""
    rows = int(cells.any(-1).sum())
    if not rows:
        return np.full(weights.shape[:-2], np.nan)
    queries, keys = np.nonzero(cells)
    return np.asarray(weights[..., queries, keys].sum(-1) / rows)


def _baseline(
    role: Role, weights: np.ndarray, control: np.ndarray | None, cells: np.ndarray, visible: np.ndarray
) -> np.ndarray:
    even = visible / np.maximum(visible.sum(-1, keepdims=True), 1)
    if role in OWN_DISTANCE:
        # OWN_DISTANCE: each target counts the head's mean weight on other visible cells at its distance, or uniform
        # attention without any.
        length, elsewhere = len(cells), visible & ~cells
        queries, keys = np.nonzero(cells)
        at = keys - queries + length - 1
        slanted = np.zeros((*weights.shape[:-2], length, 2 * length))  # row q begins at length - 1 - q: distances below
        slanted[..., :length] = (weights * elsewhere)[..., ::-1, :]  # each other, once a row is one shorter
        flat = slanted.reshape(*weights.shape[:-2], -1)[..., : length * (2 * length - 1)]
        sums = flat.reshape(*weights.shape[:-2], length, 2 * length - 1).sum(-2)
        offset = np.arange(length) - np.arange(length)[:, None] + length - 1
        counts = np.bincount(offset[elsewhere], minlength=2 * length - 1)
        expected = np.where(counts[at] > 0, sums[..., at] / np.maximum(counts[at], 1), even[queries, keys])
        return np.asarray(expected.sum(-1) / cells.any(-1).sum())
    if role in ("duplicate", "prefix"):
        return np.full(weights.shape[:-2], np.nan) if control is None else on_targets(control, cells)
    return np.broadcast_to(on_targets(even, cells), weights.shape[:-2]).copy()


# ---------------------------------------------------------------- over many inputs


@dataclass(frozen=True)
class RoleEstimate:
    """The attention to the targets of one role, and minus the baseline, with and without the sink; [layer, head, 1]."""

    weight: StatisticEstimate
    effect: StatisticEstimate
    without_sink: StatisticEstimate
    effect_without_sink: StatisticEstimate


class RoleMeans:
    """Accumulator of the mean score of every head for every role (such as "previous token"), with its uncertainty."""

    def __init__(self, layers: int, heads: int):
        self.means = Means(layers, heads, 4 * len(ROLES))

    def update(
        self,
        weights: Float[np.ndarray, "layer head query key"],
        places: RolePositions,
        number: int,
        *,
        control: Float[np.ndarray, "layer head query key"] | None = None,
    ) -> None:
        """Add the attention maps of one input to the role scores. `control`: as in `role_scores`."""
        for layer, of_layer in enumerate(weights):
            its = None if control is None else control[layer][None]
            self.update_layer(layer, of_layer[None], places, [number], control=its)

    def update_layer(
        self,
        layer: int | slice,
        weights: Float[np.ndarray, "batch head query key"],
        places: RolePositions,
        numbers: Sequence[int],
        *,
        control: Float[np.ndarray, "batch head query key"] | None = None,
        only: Sequence[Role] = ROLES,
    ) -> None:
        """Add one layer of inputs with the same target positions to the role scores. `control`: as in `role_scores`.

        `layer` is EVERY_LAYER if `weights` has the heads of all layers concatenated.
        """
        columns = np.full((*weights.shape[:-2], 4 * len(ROLES)), np.nan)
        for role, score in role_scores(weights, places, control=control, only=only).items():
            without_sink, at = score.without_sink, 4 * ROLES.index(role)
            four = (
                score.weight,
                score.weight - score.baseline,
                without_sink,
                without_sink - score.baseline_without_sink,
            )
            columns[..., at : at + 4] = np.stack(four, -1)
        self.add(layer, columns, numbers)

    def add(
        self,
        layer: int | slice,
        sums: Float[np.ndarray, "batch head statistic"],
        numbers: Sequence[int],
    ) -> None:
        """Add the values of one layer for every role: attention, effect, and both without the sink; NaN without a
        target."""
        self.means.update(layer, sums, (~np.isnan(sums)).all(1).astype(float), numbers)

    def result(self) -> dict[Role, RoleEstimate]:
        """Return the estimated scores of every head for every role; NaN if no input has a target of the role."""
        estimate = self.means.result()
        return {
            role: RoleEstimate(*(estimate.part(4 * number + index) for index in range(4)))
            for number, role in enumerate(ROLES)
        }


def role_q(means: RoleMeans, *, times: float = TIMES) -> dict[Role, Float[np.ndarray, "layer head"]]:
    """Return q values for the null hypothesis that attention to the targets of a role is at most `times` the baseline.

    Benjamini-Hochberg over heads and roles together. (Pande et al. 2021, arXiv 2101.09115, test each head and role
    alone, which finds some of 144 heads and 8 roles by chance.) NaN if too few inputs have targets of the role.
    """
    above = Means(*means.means.sums.shape[1:3], 2 * len(ROLES))
    for name in ("sums", "counts", "inputs"):
        values = getattr(means.means, name)
        weight, effect = values[..., ::2], values[..., 1::2]  # of each role: as it is, then without the sink
        setattr(above, name, (1 - times) * weight + times * effect if name == "sums" else weight)
    estimate = above.result()
    p = []
    for index in range(0, 2 * len(ROLES), 2):
        part = estimate.part(index + 1)
        p.append((part if part.n[0] else estimate.part(index)).p_above()[..., 0])
    q, heads = q_values(np.concatenate(p, 1)), p[0].shape[1]
    return {role: q[:, k * heads : (k + 1) * heads] for k, role in enumerate(ROLES)}


# ---------------------------------------------------------------- random tokens that are repeated


@dataclass(frozen=True)
class RepeatedTokens:
    """An input of random tokens that occur twice, and a control input of equal length without repeats."""

    ids: tuple[int, ...]
    control: tuple[int, ...]
    places: RolePositions


def repeated_tokens(
    words: Sequence[int],
    period: int,
    *,
    seed: int,
    before: tuple[int, ...] = (),
    after: tuple[int, ...] = (),
    causal: bool = False,
) -> RepeatedTokens:
    """Draw an input of random words that occur twice, and a control input of equal length without repeats.

    `period` is at least 2. `before` and `after` are IDs around the words ([CLS]; [SEP], which are the separators).
    Raises InputError for fewer different words than twice the period, or a period below 2.
    """
    different = sorted(set(words) - {*before, *after})
    if period < 2 or len(different) < 2 * period:
        raise InputError(
            "Sequences of repeated tokens need a period of at least 2 and at least twice as many different "
            f"words; got a period of {period} and {len(different)} words. Add words, or shorten the period."
        )
    drawn = tuple(random.Random(seed).sample(different, 2 * period))  # noqa: S311 - no secret
    length = len(before) + 2 * period + len(after)
    separators = tuple(range(length - len(after), length))
    places = RolePositions(length, separators=separators, repeat=(len(before), period), causal=causal)
    half = drawn[:period]
    return RepeatedTokens((*before, *half, *half, *after), (*before, *drawn, *after), places)


# ---------------------------------------------------------------- blocks of queries


Cells = Int[np.ndarray, "_ 2"]


def target_cells(places: RolePositions, role: Role) -> Cells:
    """Return the (query, key) cells of the targets of a role, ordered by query; none for the roles of repeated
    tokens."""
    positions = np.arange(places.length)
    if role in ("previous", "next"):
        step = 1 if role == "next" else -1
        cells = np.stack([positions, positions + step], 1)[slice(None, -1) if step > 0 else slice(1, None)]
    elif role in ("first", "separator", "rare"):
        keys = {"first": (places.first,), "separator": places.separators, "rare": places.rare}[role]
        queries = np.setdiff1d(positions, places.rare) if role == "rare" else positions
        cells = np.array([(query, key) for query in queries for key in sorted(set(keys))], dtype=int).reshape(-1, 2)
    elif role == "dependency":
        pairs = {pair for a, b in places.links if a != b for pair in ((a, b), (b, a))}
        cells = np.array(sorted(pairs), dtype=int).reshape(-1, 2)
    else:
        cells = np.zeros((0, 2), dtype=int)
    return cells[(cells[:, 1] <= cells[:, 0]) & (cells[:, 0] > 0)] if places.causal else cells


class RoleBlocks:
    """Computes role scores of one input and layer from blocks of queries (`core.map_sums.Needs.blocks`).

    Inputs with a repeat are refused, because they need the maps of a control.
    """

    def __init__(self, heads: int, places: RolePositions) -> None:
        if places.repeat:
            raise InputError("Roles on repeated tokens need whole maps of the input and its control. Pass both maps.")
        self.places = places
        cells = [target_cells(places, role) for role in ROLES]
        sinkless_cells = [cell[cell[:, 1] != places.first] for cell in cells]
        self.own, self.rest = (
            _Side(heads, places, side_cells, sink)
            for side_cells, sink in ((cells, None), (sinkless_cells, places.first))
        )

    def take(self, head: int, start: int, weights: Any) -> None:
        """Add the attention weights (query, key) of one head for the block of queries that begins at `start`."""
        block = np.array(weights, dtype=np.float64)[:, : self.places.length]
        self.own.take(head, start, block)
        self.rest.take(head, start, without_sink(block, self.places.first))

    def result(self) -> Float[np.ndarray, "head statistic"]:
        """Return attention, effect, and both without the sink, for every role and head; NaN without a target."""
        columns = []
        for score, sinkless in zip(self.own.scores(), self.rest.scores(), strict=True):
            columns += [score[0], score[0] - score[1], sinkless[0], sinkless[0] - sinkless[1]]
        return np.stack(columns, -1)


@dataclass
class _Side:
    """Sums of the map of one input, with the sink (sink None) or without it.

    Attributes:
        targets: weight on targets (role, head).
        diagonals: weight at every distance key - query (head, 2 length - 1).
        beside: the part of `diagonals` on the cells of a role (role, head, 2 length - 1).
    """

    heads: int
    places: RolePositions
    cells: Sequence[Cells]
    sink: int | None

    def __post_init__(self) -> None:
        bins = 2 * self.places.length - 1
        self.targets = np.zeros((len(ROLES), self.heads))
        self.diagonals = np.zeros((self.heads, bins))
        self.beside = {role: np.zeros((self.heads, bins)) for role in OWN_DISTANCE}

    def take(self, head: int, start: int, block: Float[np.ndarray, "query key"]) -> None:
        """Add the attention rows of one head for a block of queries that begins at `start`."""
        if self.places.causal and start == 0:
            block[0] = 0.0  # it has no choice
        for number, role in enumerate(ROLES):
            first, last = np.searchsorted(self.cells[number][:, 0], (start, start + len(block)))
            queries, keys = self.cells[number][first:last].T
            if not len(queries):
                continue
            if role == "rare":
                self.targets[number, head] += self._largest(block, start, np.unique(queries))
                continue
            weights = block[queries - start, keys]
            self.targets[number, head] += weights.sum()
            if role in self.beside:
                at = keys - queries + self.places.length - 1
                self.beside[role][head] += np.bincount(at, weights, self.beside[role].shape[1])
        sums = diagonal_sums(block)
        at = self.places.length - len(block) - start
        self.diagonals[head, at : at + len(sums)] += sums

    def _largest(self, block: np.ndarray, start: int, queries: np.ndarray) -> int:
        """Return how many of these queries have their largest weight on the least frequent word."""
        shown = block[queries - start]
        if self.places.causal:
            shown[np.arange(self.places.length) > queries[:, None]] = -1.0
        if self.sink is not None:
            shown[:, self.sink] = -1.0
        return int((np.isin(shown.argmax(1), self.places.rare) & (shown.max(1) > 0)).sum())

    def scores(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, for every role, each head's attention to the targets and to the baseline."""
        sees, counts = self._sees(), self._counts()
        for number, role in enumerate(ROLES):
            queries, keys = self.cells[number].T
            rows = len(np.unique(queries))
            if not rows:
                nothing = np.full(self.heads, np.nan)
                yield nothing, nothing
                continue
            baseline = np.full(self.heads, (1 / sees[queries]).sum())
            if role in self.beside:
                at = keys - queries + self.places.length - 1
                ordinary = counts - np.bincount(at, minlength=len(counts))
                mean = (self.diagonals - self.beside[role]) / np.maximum(ordinary, 1)
                baseline = np.where(ordinary[at] > 0, mean[:, at], 1 / sees[queries]).sum(1)
            yield self.targets[number] / rows, baseline / rows

    def _sees(self) -> Float[np.ndarray, " query"]:
        """Return the number of keys that each query may attend to."""
        positions = np.arange(self.places.length)
        sees = positions + 1.0 if self.places.causal else np.full(len(positions), float(len(positions)))
        if self.sink is not None:
            sees -= (positions >= self.sink) | (not self.places.causal)
        return np.maximum(sees, 1)

    def _counts(self) -> Int[np.ndarray, " distance"]:
        """Return the number of visible cells at each distance."""
        length = self.places.length
        distances = np.arange(1 - length, length)
        counts = length - np.abs(distances)
        if self.places.causal:
            counts = np.where(distances > 0, 0, counts - (distances == 0))
        if self.sink is not None:
            queries = self.sink - distances  # those that meet the sink at this distance
            inside = (queries >= 0) & (queries < length)
            counts = counts - (inside & ((distances <= 0) & (queries > 0) if self.places.causal else True))
        return counts


def diagonal_sums(block: Float[np.ndarray, "query key"]) -> Float[np.ndarray, " diagonal"]:
    """Return sums over the diagonals of a block of attention weights, from the lower left to the upper right corner."""
    queries, keys = block.shape
    wide = np.zeros((queries, queries + keys))
    wide[:, :keys] = block[::-1]
    skewed = wide.ravel()[: queries * (queries + keys - 1)]  # each row one place further right than the one before
    return np.asarray(skewed.reshape(queries, -1).sum(0))
