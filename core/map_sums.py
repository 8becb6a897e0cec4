"""Statistics of attention maps that do not need whole maps.

A map of 16,384 tokens has 268 million weights, but most statistics need far less: row entropies and mean distances, the
weight on some keys, neighbours or cells, and column sums. A measure declares them with `Needs`, and for long inputs it
gets
`MapSums`, which `core.capture.streaming` computes from blocks of queries.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

Reducer = Callable[[int, int, Any], None]


@dataclass(frozen=True)
class Needs:
    """The sums over one input's attention maps that a measure needs; nothing else is computed.

    Attributes:
        entropy: of each row, -sum p ln p.
        distance: of each row, sum of p |key - query|.
        columns: total weight of each key.
        offsets: weight on the key at these offsets from the query.
        values: averaged under each row's weights, [key, value]; 1 on its keys for a set of keys.
        rows: queries whose whole rows are needed (few).
        cells: (query, key) whose weights are needed, [cell, 2].
        blocks: called with head, first query and weights [query, key] of each block in order; must not store or change
            them.
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
    """Sums over one input's maps in one layer, as requested by `Needs`; arrays not requested are empty.

    Attributes:
        entropies: nats, [head, query].
        distances: mean of |key - query| in tokens, [head, query].
        columns: total weight of each key, [head, key].
        offsets: NaN if a query has no such key, [head, offset, query].
        values: [head, query, value].
        rows: [head, row, key].
        cells: [head, cell].
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
    """An observer of attention that can work with sums of maps instead of whole maps."""

    def needs(self, inputs: list[int], queries: int, keys: int) -> Sequence[Needs] | None:
        """Return which sums the observer needs from each of these equally long inputs; None if it requires whole maps.

        keys: number of keys, one more than queries with a sink.
        """

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        """Process the sums of one layer for a batch of inputs."""


def keys_as_values(sets: Sequence[Sequence[int]], keys: int) -> Float[np.ndarray, "key value"]:
    """Return a matrix that is 1 on the keys of each set and 0 elsewhere, for `Needs.values`."""
    values = np.zeros((keys, len(sets)), dtype=np.float32)
    for number, positions in enumerate(sets):
        values[list(positions), number] = 1
    return values


def together(parts: Sequence[Needs]) -> Needs:
    """Combine the requests of several measures into one; `divided` distributes the results."""
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
    """Distribute the sums for combined requests (`together`) to the measures that requested them."""
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
