"""What a measure may have of a layer's maps without the maps: what it needs, and what it is handed.

A map of 16,384 tokens has 268 million weights, and most statistics read far less: each row's entropy and mean
distance, the weight on some keys, on neighbours, on given cells, and what each key gets. Such a measure says so with
`Needs`, and of long inputs it is handed `MapSums`, which `core.capture.streaming` takes from blocks of queries: no map
is ever whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

Reducer = Callable[[int, int, Any], None]


@dataclass(frozen=True)
class Needs:
    """What a measure needs of one input's maps; nothing else is computed.

    Attributes:
        entropy: each row's -sum p ln p.
        distance: each row's sum of p |key - query|.
        columns: what each key gets from all queries together.
        offsets: the weight on the key so many places after the query.
        values: numbers of keys, whose mean under each row's weights is taken; a set of keys has 1 on its keys.
            *Shape:* (key, value).
        rows: queries whose whole rows are handed over; few, because each has the input's length.
        cells: (query, key) whose weights are handed over. *Shape:* (cell, 2).
        blocks: what maxima need: called with a head, the first query and the weights [query, key] of each block, in
            order of queries; they must not be kept or written to.
    """

    entropy: bool = False
    distance: bool = False
    columns: bool = False
    offsets: tuple[int, ...] = ()
    values: Float[np.ndarray, "key value"] | None = None
    rows: tuple[int, ...] = ()
    cells: Int[np.ndarray, "cell 2"] | None = None
    blocks: Reducer | None = None


@dataclass(frozen=True)
class MapSums:
    """What `Needs` asked of one layer and input; arrays of what was not asked for are empty.

    Attributes:
        entropies: of each row, in nats. *Shape:* (head, query).
        distances: of each row the mean of |key - query|, in tokens. *Shape:* (head, query).
        columns: the weight that each key gets from all queries together. *Shape:* (head, key).
        offsets: the weight at each offset asked for; NaN where a query has no such key. *Shape:* (head, offset, query).
        values: the mean of each value under a row's weights. *Shape:* (head, query, value).
        rows: the weights of the rows asked for. *Shape:* (head, row, key).
        cells: the weights of the cells asked for. *Shape:* (head, cell).
    """

    entropies: np.ndarray
    distances: np.ndarray
    columns: np.ndarray
    offsets: np.ndarray
    values: np.ndarray
    rows: np.ndarray
    cells: np.ndarray


@runtime_checkable
class Streamed(Protocol):
    """An observer that can do without maps."""

    def needs(self, inputs: list[int], queries: int, keys: int) -> Sequence[Needs] | None:
        """What it needs of each of these inputs.

        Args:
            inputs: which encodings, by their places in the pass; all of one length.
            queries: tokens of each.
            keys: as many, and one more where a sink follows them.

        Returns:
            One `Needs` an input; None where only whole maps will do.
        """

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        """Take what it asked for of one layer of a batch.

        Args:
            layer: of its set of heads, from 0.
            sums: of each input.
            inputs: as of `needs`.
        """


def keys_as_values(sets: Sequence[Sequence[int]], keys: int) -> Float[np.ndarray, "key value"]:
    """Sets of keys as `Needs.values`.

    Args:
        sets: positions of the keys of each set.
        keys: how many keys a row has.

    Returns:
        1 on the keys of each set, else 0; float32.
    """
    values = np.zeros((keys, len(sets)), dtype=np.float32)
    for number, positions in enumerate(sets):
        values[list(positions), number] = 1
    return values


def together(parts: Sequence[Needs]) -> Needs:
    """What several measures need of one input, as one request; `divided` hands each its part of the answer."""
    values = [part.values for part in parts if part.values is not None]
    cells = [part.cells for part in parts if part.cells is not None]
    reducers = [part.blocks for part in parts if part.blocks is not None]

    def reduce(head: int, start: int, weights: Any) -> None:
        for reducer in reducers:
            reducer(head, start, weights)

    return Needs(
        any(part.entropy for part in parts),
        any(part.distance for part in parts),
        any(part.columns for part in parts),
        tuple(dict.fromkeys(offset for part in parts for offset in part.offsets)),
        np.concatenate(values, 1) if values else None,
        tuple(dict.fromkeys(row for part in parts for row in part.rows)),
        np.concatenate(cells) if cells else None,
        reduce if reducers else None,
    )


def divided(sums: MapSums, needs: Needs, parts: Sequence[Needs]) -> list[MapSums]:
    """What each of several measures asked for, of what `together` of them got.

    Args:
        sums: of one layer and input, as `needs` had it.
        needs: `together` of `parts`.
        parts: what each measure needs.

    Returns:
        One a part, in their order, with the axes of `sums`.
    """
    handed, value, cell = [], 0, 0
    for part in parts:
        width = 0 if part.values is None else part.values.shape[1]
        length = 0 if part.cells is None else len(part.cells)
        handed.append(
            MapSums(
                sums.entropies,
                sums.distances,
                sums.columns,
                sums.offsets[:, [needs.offsets.index(offset) for offset in part.offsets]],
                sums.values[:, :, value : value + width],
                sums.rows[:, [needs.rows.index(row) for row in part.rows]],
                sums.cells[:, cell : cell + length],
            )
        )
        value, cell = value + width, cell + length
    return handed
