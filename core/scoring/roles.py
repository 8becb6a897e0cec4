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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError
from .corrections import q_of_all
from .intervals import Means, StatisticEstimate

Role = Literal["previous", "next", "first", "separator", "duplicate", "prefix", "rare", "dependency"]
ROLES: tuple[Role, ...] = get_args(Role)
ON_CONTROL: tuple[Role, ...] = ("duplicate", "prefix")  # baseline: the same cells in a control without repeats
OWN_DISTANCE: tuple[Role, ...] = (
    "separator",
    "dependency",
)  # baseline: the head's weight at the same distance
TIMES = 3.0  # a head has a role when its weight is above so many times the baseline's (Pande et al.'s sieve)
LEAST = 0.01  # fraction of a row's weight; scaling up a smaller one would give noise


@dataclass(frozen=True)
class RolePositions:
    """The token positions that define the targets of each head role. `repeat` is the pair (start, period) of a token
    sequence that occurs twice in the input."""

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
        if outside := [k for k in named if not 0 <= k < self.length]:
            raise InputError(
                f"A token position must be from 0 to {self.length - 1} in this input; got {outside[0]}. Correct the "
                "position."
            )
        if end > self.length or period < 1:
            raise InputError(
                f"Repeated text must occur twice within the {self.length} tokens of the input; got the start {start} "
                f"and the length {period}. Correct the start or the length."
            )


@dataclass(frozen=True)
class RoleScore:
    """The score of every head for one role on one input, such as attention to the previous token. NaN if the role has
    no targets.

    Attributes:
        weight, baseline: weight on the targets of the role, and that of the baseline.
        without_sink, baseline_without_sink: the same without the sink; NaN for targets on the sink.
    """

    weight: Float[np.ndarray, "*heads"]
    baseline: Float[np.ndarray, "*heads"]
    without_sink: Float[np.ndarray, "*heads"]
    baseline_without_sink: Float[np.ndarray, "*heads"]


def role_scores(
    weights: Float[np.ndarray, "*heads query key"],
    places: RolePositions,
    *,
    control: Float[np.ndarray, "*heads query key"] | None = None,
    only: Sequence[Role] = ROLES,
) -> dict[Role, RoleScore]:
    """Return the score of every head for every role, such as attending to the previous token; NaN for roles outside
    `only`. `places` contains the role positions, which must be the same for all inputs.

    `control` has the maps of equally long inputs without repeats. Raises InputError if `places` has a repeat and there
    is no control.
    """
    both = [RoleBlocks(maps.shape[:-2], places, only) for maps in (weights, control) if maps is not None]
    for sums, maps in zip(both, (weights, control), strict=False):
        sums.take(..., 0, maps)
    return both[0].scores(*both[1:])


def columns_of(scores: Mapping[Role, RoleScore]) -> Float[np.ndarray, "*heads statistic"]:
    """Return four columns per role: the attention to its targets, the attention minus its baseline, and both values
    without the attention sink."""
    columns = []
    for score in scores.values():
        columns += [score.weight, score.weight - score.baseline]
        columns += [score.without_sink, score.without_sink - score.baseline_without_sink]
    return np.stack(columns, -1)


def without_sink(weights: Float[np.ndarray, "*heads query key"], sink: int) -> Float[np.ndarray, "*heads query key"]:
    """Return float64 attention weights without the sink, rescaled so that each row sums to 1. Rows with less than LEAST
    attention outside the sink become 0."""
    without = weights.astype(float)
    without[..., sink] = 0
    left = without.sum(-1, keepdims=True)
    return np.where(left >= LEAST, without / np.maximum(left, LEAST), 0.0)


# ---------------------------------------------------------------- blocks of queries; a whole map is one


Cells = Int[np.ndarray, "_ 2"]


@lru_cache(maxsize=64)
def target_cells(places: RolePositions, role: Role) -> Cells:
    """Return the (query, key) positions at which a query can attend to a target of the role, ordered by query."""
    positions = np.arange(places.length)
    cells = np.zeros((0, 2), dtype=int)
    if role in ("previous", "next"):
        step = 1 if role == "next" else -1
        cells = np.stack([positions, positions + step], 1)[slice(None, -1) if step > 0 else slice(1, None)]
    elif role in ("first", "separator", "rare"):
        keys = np.unique({"first": (places.first,), "separator": places.separators, "rare": places.rare}[role])
        queries = np.setdiff1d(positions, places.rare) if role == "rare" else positions
        cells = np.stack([np.repeat(queries, len(keys)), np.tile(keys, len(queries))], 1).astype(int)
    elif role == "dependency":
        pairs = {pair for a, b in places.links if a != b for pair in ((a, b), (b, a))}
        cells = np.array(sorted(pairs), dtype=int).reshape(-1, 2)
    elif places.repeat:
        start, period = places.repeat
        second = np.arange(start + period, start + 2 * period)
        cells = np.stack([second, second - period + (role == "prefix")], 1)
    return cells[(cells[:, 1] <= cells[:, 0]) & (cells[:, 0] > 0)] if places.causal else cells


class RoleBlocks:
    """An accumulator that computes role scores from blocks of queries, for inputs with the same role positions.

    Args:
        shape: of the heads, such as (head,) or (batch, head).
        only: roles to score; others are NaN.
    """

    def __init__(self, shape: tuple[int, ...], places: RolePositions, only: Sequence[Role] = ROLES) -> None:
        self.places = places
        cells = {role: target_cells(places, role)[: None if role in only else 0] for role in ROLES}
        sinkless_cells = {role: cell[cell[:, 1] != places.first] for role, cell in cells.items()}
        self.own, self.rest = (
            _Side(shape, places, side_cells, sink)
            for side_cells, sink in ((cells, None), (sinkless_cells, places.first))
        )

    def take(self, head: Any, start: int, weights: Any) -> None:
        """Add a block of attention rows to the running sums of some heads. The block begins at query `start`."""
        block = np.array(weights, dtype=np.float64)[..., : self.places.length]
        self.own.take(head, start, block)
        self.rest.take(head, start, without_sink(block, self.places.first))

    def scores(self, control: "RoleBlocks | None" = None) -> dict[Role, RoleScore]:
        """Return the score of every head for every role. Raises InputError if the input has a repeat and `control` is
        None. `control` is the accumulator for inputs of the same length without repeats."""
        if self.places.repeat and control is None:
            raise InputError(
                "Head roles on repeated tokens also need the maps of a control input of the same length without "
                "repeats; got none. Pass these maps as the argument `control`."
            )
        its_own, its_rest = (None, None) if control is None else (control.own, control.rest)
        return {role: RoleScore(*self.own.score(role, its_own), *self.rest.score(role, its_rest)) for role in ROLES}


class _Side:
    """Sums of maps with the sink (sink None) or without it.

    Attributes:
        targets: by role, weight on its targets [*heads].
        diagonals: weight at every distance key - query [*heads, 2 length - 1].
        beside: by role in OWN_DISTANCE that has targets, the part of it on them [*heads, 2 length - 1].
    """

    def __init__(
        self, shape: tuple[int, ...], places: RolePositions, cells: Mapping[Role, Cells], sink: int | None
    ) -> None:
        self.places, self.cells, self.sink = places, cells, sink
        bins = 2 * places.length - 1
        self.targets = {role: np.zeros(shape) for role in cells}
        self.beside = {role: np.zeros((*shape, bins)) for role in OWN_DISTANCE if len(cells[role])}
        self.diagonals = np.zeros((*shape, bins if self.beside else 0))

    def take(self, head: Any, start: int, block: Float[np.ndarray, "*heads query key"]) -> None:
        """Add a block of attention rows to the running sums of some heads. The block begins at query `start`."""
        if self.places.causal and start == 0:
            block[..., 0, :] = 0.0  # it has no choice
        count = block.shape[-2]
        for role, cells in self.cells.items():
            first, last = np.searchsorted(cells[:, 0], (start, start + count))
            queries, keys = cells[first:last].T
            if not len(queries):
                continue
            if role == "rare":
                self.targets[role][head] += self._largest(block, start, np.unique(queries))
                continue
            weights = block[..., queries - start, keys]
            self.targets[role][head] += weights.sum(-1)
            if role in self.beside:
                flat, bins = weights.reshape(-1, len(queries)), self.diagonals.shape[-1]
                at = np.arange(len(flat))[:, None] * bins + keys - queries + self.places.length - 1
                sums = np.bincount(at.ravel(), flat.ravel(), len(flat) * bins)
                self.beside[role][head] += sums.reshape(*weights.shape[:-1], bins)
        if self.beside:
            sums, at = diagonal_sums(block), self.places.length - count - start
            self.diagonals[head][..., at : at + sums.shape[-1]] += sums

    def _largest(self, block: np.ndarray, start: int, queries: np.ndarray) -> np.ndarray:
        """How many of these queries have their largest weight on the least frequent word."""
        shown = block[..., queries - start, :]
        if self.places.causal:
            shown[..., np.arange(self.places.length) > queries[:, None]] = -1.0
        if self.sink is not None:
            shown[..., self.sink] = -1.0
        return np.asarray((np.isin(shown.argmax(-1), self.places.rare) & (shown.max(-1) > 0)).sum(-1))

    def score(self, role: Role, control: "_Side | None") -> tuple[np.ndarray, np.ndarray]:
        """Return the attention of each head to the targets of a role, and the attention that the baseline predicts."""
        queries, keys = self.cells[role].T
        rows, weight = len(np.unique(queries)), self.targets[role]
        if not rows:
            nothing = np.full(weight.shape, np.nan)
            return nothing, nothing
        even = 1 / self._sees()[queries]
        if control is not None and role in ON_CONTROL:
            baseline = control.targets[role]
        elif role in self.beside:
            at, counts = keys - queries + self.places.length - 1, self._counts()
            ordinary = counts - np.bincount(at, minlength=len(counts))
            mean = (self.diagonals - self.beside[role]) / np.maximum(ordinary, 1)
            baseline = np.where(ordinary[at] > 0, mean[..., at], even).sum(-1)
        else:
            baseline = np.full(weight.shape, even.sum())
        return weight / rows, baseline / rows

    def _sees(self) -> Float[np.ndarray, " query"]:
        """The number of keys that each query may attend to."""
        positions = np.arange(self.places.length)
        sees = positions + 1.0 if self.places.causal else np.full(len(positions), float(len(positions)))
        if self.sink is not None:
            sees -= (positions >= self.sink) | (not self.places.causal)
        return np.maximum(sees, 1)

    def _counts(self) -> Int[np.ndarray, " distance"]:
        """The number of visible cells at each distance."""
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


def diagonal_sums(block: Float[np.ndarray, "*heads query key"]) -> Float[np.ndarray, "*heads diagonal"]:
    """Sum each diagonal of a block of attention weights, from the lower left corner to the upper right corner."""
    *heads, queries, keys = block.shape
    wide = np.zeros((*heads, queries, queries + keys))
    wide[..., :keys] = block[..., ::-1, :]
    # each row one place further right than the one before
    skewed = wide.reshape(*heads, -1)[..., : queries * (queries + keys - 1)]
    return np.asarray(skewed.reshape(*heads, queries, -1).sum(-2))


# ---------------------------------------------------------------- over many inputs


@dataclass(frozen=True)
class RoleEstimate:
    """Estimates of the attention to the targets of one role, with and without the attention sink. An effect is the
    attention minus its baseline. Arrays are [layer, head, 1]."""

    weight: StatisticEstimate
    effect: StatisticEstimate
    without_sink: StatisticEstimate
    effect_without_sink: StatisticEstimate


class RoleMeans:
    """An accumulator for the mean score of every head for every role, with uncertainty."""

    def __init__(self, layers: int, heads: int):
        self.means = Means(layers, heads, 4 * len(ROLES))

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
        """Add the role scores of one layer to the means over inputs. If the layer is EVERY_LAYER, `weights` must
        contain the heads of all layers, concatenated."""
        self.add(layer, columns_of(role_scores(weights, places, control=control, only=only)), numbers)

    def add(
        self,
        layer: int | slice,
        sums: Float[np.ndarray, "batch head statistic"],
        numbers: Sequence[int],
    ) -> None:
        """Add the role scores of one layer, in the column order of `columns_of`. Scores of roles without a target
        must be NaN."""
        self.means.update(layer, sums, (~np.isnan(sums)).all(1).astype(float), numbers)

    def result(self) -> dict[Role, RoleEstimate]:
        """Return the estimated score of every head for every role; NaN if no input has a target of the role."""
        estimate = self.means.result()
        return {
            role: RoleEstimate(*(estimate.part(4 * number + index) for index in range(4)))
            for number, role in enumerate(ROLES)
        }


def role_q(means: RoleMeans, *, times: float = TIMES) -> dict[Role, Float[np.ndarray, "layer head"]]:
    """Test whether the attention to the targets of each role exceeds `times` the baseline. Return one q value per role
    and head.

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
    return dict(zip(ROLES, q_of_all(p), strict=True))


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

    `before` and `after` are IDs around the words ([CLS]; [SEP], which are the separators). Raises InputError for a
    period below 2 or fewer different words than twice the period.
    """
    different = sorted(set(words) - {*before, *after})
    if period < 2:
        raise InputError(f"The period of repeated tokens must be at least 2; got {period}. Choose a longer period.")
    if len(different) < 2 * period:
        raise InputError(
            f"Repeated tokens with a period of {period} need at least {2 * period} different words; got "
            f"{len(different)}. Add words, or shorten the period."
        )
    drawn = tuple(random.Random(seed).sample(different, 2 * period))  # noqa: S311 - no secret
    length = len(before) + 2 * period + len(after)
    separators = tuple(range(length - len(after), length))
    places = RolePositions(length, separators=separators, repeat=(len(before), period), causal=causal)
    half = drawn[:period]
    return RepeatedTokens((*before, *half, *half, *after), (*before, *drawn, *after), places)
