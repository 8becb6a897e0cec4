"""Statistics of attention maps that are computed without storing whole maps.

A map of 16,384 tokens has 268 million weights. Most statistics need only row entropies, mean distances, column sums, or
the weights of a few keys, neighbours or cells. A measure declares what it needs with `Needs` and receives `MapSums`.
The functions for exponentials, logarithms and dot products of tensors are as fast as possible on each device.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

if TYPE_CHECKING:
    from torch import Tensor

Reducer = Callable[[int, int, Any], None]


@dataclass(frozen=True)
class Needs:
    """A request by an observer for sums over the attention maps of one input.

    Attributes:
        entropy: of each row, -sum p ln p.
        distance: of each row, sum of p |key - query|.
        columns: total weight of each key.
        offsets: weight of the key at these offsets from the query.
        values: averaged with the weights of each row, [key, value]; for a set of keys, 1 on its keys and 0 elsewhere.
        rows: the few queries whose whole rows are needed.
        cells: (query, key) pairs whose weights are needed, [cell, 2].
        blocks: called with the head, the first query and the weights [query, key] of each block in order, which it must
            not store or change.
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
    """Sums computed from the attention maps of one input in one layer. Arrays that were not requested are empty.

    Attributes:
        entropies: nats, [head, query].
        distances: mean of |key - query| in tokens, [head, query].
        columns: total weight of each key, [head, key].
        offsets: [head, offset, query]; NaN if a query has no key at the offset.
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
    """Interface for observers that can work with sums over attention maps, so that whole maps need not be stored."""

    def needs(self, inputs: list[int], queries: int, keys: int) -> Sequence[Needs] | None:
        """Return a request for sums over attention maps for each input; None if this observer needs whole maps. All
        inputs have equal length. If there is a sink, `keys` is `queries` + 1."""

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        """Process the requested sums over the attention maps of one layer, for a batch of inputs."""


def keys_as_values(sets: Sequence[Sequence[int]], keys: int) -> Float[np.ndarray, "key value"]:
    """Return a matrix [key, set] with 1 if the key is in the set, otherwise 0."""
    values = np.zeros((keys, len(sets)), dtype=np.float32)
    for number, positions in enumerate(sets):
        values[list(positions), number] = 1
    return values


def together(parts: Sequence[Needs]) -> Needs:
    """Merge the requests of several measures into one, so that attention is computed only once for all of them."""
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
    """Split the sums for a merged request (see `together`) into the sums for each original request."""
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


# ---------------------------------------------------------------- fast arithmetic

# On the CPU, numpy takes half as long as torch (2.4 compared with 2.14); on a GPU, torch is used.


def exp_into(target: "Tensor", numbers: "Tensor") -> "Tensor":
    """Write the exponentials of a float tensor to `target`, which may be the same tensor, and return `target`."""
    if _is_torchs(numbers):
        return target.copy_(numbers.exp())
    np.exp(numbers.numpy(), out=target.numpy())
    return target


def log_into(target: "Tensor", numbers: "Tensor") -> "Tensor":
    """Write the natural logarithms of a float tensor to `target`, which may be the same tensor, and return `target`."""
    if _is_torchs(numbers):
        return target.copy_(numbers.log())
    np.log(numbers.numpy(), out=target.numpy())
    return target


def row_dots(first: "Tensor", second: "Tensor") -> "Tensor":
    """Return the dot products of two tensors along the last axis, after broadcasting the other axes."""
    if _is_torchs(first):
        return (first * second).sum(-1)
    import torch  # already loaded if there is a tensor

    return torch.from_numpy(np.vecdot(first.numpy(), second.numpy()))


def _is_torchs(numbers: "Tensor") -> bool:
    return bool(numbers.device.type != "cpu" or numbers.requires_grad or numbers.element_size() < 4)
