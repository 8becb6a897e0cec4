"""Roles of heads from blocks of queries: the numbers of `core.scoring.roles` without a map that is ever whole.

Targets and baselines are sums over rows, so they add up block by block. A head's own mean weight at a distance needs
the sum of every diagonal, which is one number a distance; memory grows with the input's length, not with its square.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError
from .roles import OWN_DISTANCE, ROLES, Role, RolePositions, without_sink

Cells = Int[np.ndarray, "_ 2"]


def target_cells(places: RolePositions, role: Role) -> Cells:
    """The cells of a role, as `RolePositions.targets` has them.

    Args:
        places: where the input's targets are; a repeat is not looked at.

    Returns:
        (query, key) of each cell, in the order of queries; none for the roles of repeated tokens.
    """
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
    """Takes the maps of one input and layer in blocks of queries (`core.map_sums.Needs.blocks`).

    Tokens that come twice need the maps of a control beside them: inputs with a repeat are refused.
    """

    def __init__(self, heads: int, places: RolePositions) -> None:
        if places.repeat:
            raise InputError("Roles on repeated tokens are read from whole maps beside a control's: give both maps.")
        self.places = places
        cells = [target_cells(places, role) for role in ROLES]
        sinkless_cells = [cell[cell[:, 1] != places.first] for cell in cells]
        self.own, self.rest = (
            _Side(heads, places, side_cells, sink)
            for side_cells, sink in ((cells, None), (sinkless_cells, places.first))
        )

    def take(self, head: int, start: int, weights: Any) -> None:
        """Add the rows of a block.

        Args:
            head: zero-based.
            weights: numpy or torch, rows sum to 1; not written to. *Shape:* (query, key).
        """
        block = np.array(weights, dtype=np.float64)[:, : self.places.length]
        self.own.take(head, start, block)
        self.rest.take(head, start, without_sink(block, self.places.first))

    def result(self) -> Float[np.ndarray, "head statistic"]:
        """Of every role weight, effect, and both without the sink; NaN where the input has no target."""
        columns = []
        for score, sinkless in zip(self.own.scores(), self.rest.scores(), strict=True):
            columns += [score[0], score[0] - score[1], sinkless[0], sinkless[0] - sinkless[1]]
        return np.stack(columns, -1)


@dataclass
class _Side:
    """Sums of one input's maps, as they are (sink None) or without the sink.

    Attributes:
        targets: weight on them. *Shape:* (role, head).
        diagonals: weight at every distance, key less query. *Shape:* (head, 2 length - 1).
        beside: of it the weight on a role's own cells. *Shape:* (role, head, 2 length - 1).
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
        """Add the rows of a block."""
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
        """How many of these queries have their largest weight on the least frequent word."""
        shown = block[queries - start]
        if self.places.causal:
            shown[np.arange(self.places.length) > queries[:, None]] = -1.0
        if self.sink is not None:
            shown[:, self.sink] = -1.0
        return int((np.isin(shown.argmax(1), self.places.rare) & (shown.max(1) > 0)).sum())

    def scores(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Of every role the weight on its targets, and the baseline's, of each head."""
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
        """How many keys each query may look at."""
        positions = np.arange(self.places.length)
        sees = positions + 1.0 if self.places.causal else np.full(len(positions), float(len(positions)))
        if self.sink is not None:
            sees -= (positions >= self.sink) | (not self.places.causal)
        return np.maximum(sees, 1)

    def _counts(self) -> Int[np.ndarray, " distance"]:
        """How many cells that a query may look at lie at each distance."""
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
    """Sums over the block's diagonals.

    Returns:
        From the lower left corner to the upper right: queries + keys - 1 sums.
    """
    queries, keys = block.shape
    wide = np.zeros((queries, queries + keys))
    wide[:, :keys] = block[::-1]
    skewed = wide.ravel()[: queries * (queries + keys - 1)]  # each row one place further right than the one before
    return np.asarray(skewed.reshape(queries, -1).sum(0))
