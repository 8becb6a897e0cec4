"""Sums of attention maps that measures need, computed from blocks of queries without whole maps.

Scores of one head and a block of queries fit into the CPU cache. The requested sums (`core.map_sums.Needs`) are
computed there: exp(s - max) times values and key weights in one product, the entropy as ln z - sum p (s - max). Memory
grows linearly with the length; from about 500 tokens, it is also faster. Windows, soft caps, biases, sinks and shared
keys are supported.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..map_sums import MapSums, Needs, Streamed, divided, exp_into, row_dots, together
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .function import refuse_no_number
from .masks import visible_rows
from .reach import is_streamed

STREAMED_FROM = 512  # tokens: below, whole maps are as fast, and small
CACHED = 2**20  # weights of a block on the processor; smaller blocks repeat more work on the keys
ON_DEVICE = 2**26  # the same on a GPU, of all heads together
MOST_QUERIES = 256
FEW = 4  # columns of a product

States = tuple[Tensor, Tensor, Tensor]  # queries [batch, head, query, dim], keys and values of their own heads
Taker = Callable[[int, Sequence[MapSums]], None]


def streamer_for(
    checkpoint: Checkpoint,
    encodings: Sequence[Encoding],
    observers: Sequence[Any],
    inputs: list[int],
    layers: Iterable[int] | None,
) -> "Streamer | None":
    """Return a streamer for the sums over attention maps that observers need. Return None if an observer needs whole
    maps, inputs are short, or the model cannot be streamed. If `layers` is None, all layers are included."""
    length = len(encodings[0])
    streams = all(isinstance(observer, Streamed) for observer in observers)
    if not (observers and streams and length >= STREAMED_FROM and is_streamed(checkpoint)):
        return None
    wanted = [observer.needs(inputs, length, length) for observer in observers]
    if any(needs is None for needs in wanted):
        return None
    by_input = [[needs[row] for needs in wanted] for row in range(len(inputs))]
    asked = [together(parts) for parts in by_input]

    def take(layer: int, sums: Sequence[MapSums]) -> None:
        handed = [divided(*of) for of in zip(sums, asked, by_input, strict=True)]
        for number, observer in enumerate(observers):
            observer.update_sums(layer, [parts[number] for parts in handed], inputs)

    return Streamer(asked, take, frozenset(checkpoint.sets[0].numbers if layers is None else layers))


@dataclass(frozen=True)
class Streamer:
    """An attention function for long inputs that computes sums of attention maps in blocks of queries.

    Attributes:
        taker: called with a layer and the sums of each input.
        layers: requested layers; for other layers, only outputs are computed.
    """

    needs: Sequence[Needs]
    taker: Taker
    layers: frozenset[int]

    def __call__(
        self, layer: int, states: States, mask: Tensor | None, scaling: float | None, options: dict[str, Any]
    ) -> Float[Tensor, "batch query head dim"]:
        """Return the outputs of heads and pass on the sums. Raises CheckpointError if scores are NaN or infinite."""
        wanted = self.needs if layer in self.layers else [Needs()] * len(self.needs)
        outputs, sums = [], []
        for row, needs in enumerate(wanted):
            own = _Layer(layer, tuple(part[row] for part in states), needs, scaling, options)  # type: ignore[arg-type]
            outputs.append(own.computed(mask, row))
            sums.append(own.sums())
        if layer in self.layers:
            self.taker(layer, sums)
        return torch.stack(outputs).transpose(1, 2)


class _Layer:
    """One layer on one input."""

    def __init__(self, layer: int, states: States, needs: Needs, scaling: float | None, options: dict[str, Any]):
        self.layer, self.needs, self.options = layer, needs, options
        query, key, value = states
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        self.exact = torch.promote_types(query.dtype, torch.float32)
        self.scale = 1.0 if query.dtype == self.exact else scale  # smaller types are scaled where they are rounded
        self.query, self.key, self.value = query * (scale / self.scale), key.transpose(1, 2), value
        self.heads, self.queries, self.keys = query.shape[0], query.shape[1], key.shape[1]
        self.groups = self.heads // key.shape[0]
        sinks = options.get("s_aux")
        self.sinks = None if sinks is None else sinks.to(query.dtype).reshape(-1)
        self.columns_wide = self.keys + (self.sinks is not None)
        self._prepare_values()
        self._prepare_results()

    def _prepare_values(self) -> None:
        """Prepare the factors of rows besides the values: 1 for sums of rows, and the weights of keys."""
        width = 0 if self.needs.values is None else self.needs.values.shape[1]
        self.counted = torch.ones(1 + width, self.keys, dtype=self.exact, device=self.query.device)
        if self.needs.values is not None:
            self.counted[1:] = torch.from_numpy(self.needs.values[: self.keys].T).to(self.counted)
        self.scores_held, self.weights_held = torch.empty(0), torch.empty(0)  # of a block, written anew in the next

    def _prepare_results(self) -> None:
        needs, heads, queries = self.needs, self.heads, self.queries
        made: dict[str, Any] = {"dtype": self.exact, "device": self.query.device}
        self.output = self.value.new_empty(heads, queries, self.value.shape[-1])
        self.entropies = torch.empty(heads, queries if needs.entropy else 0, **made)
        self.distances = torch.empty(heads, queries if needs.distance else 0, **made)
        wide = self.columns_wide if needs.columns else 0
        self.columns = torch.zeros(heads, wide, dtype=torch.float64, device=self.query.device)
        self.offsets = torch.full((heads, len(needs.offsets), queries), torch.nan, **made)
        self.values = torch.empty(heads, queries, len(self.counted) - 1, **made)
        self.rows = torch.zeros(heads, len(needs.rows), self.columns_wide, **made)
        cells = np.zeros((0, 2), dtype=int) if needs.cells is None else needs.cells
        self.order = np.argsort(cells[:, 0], kind="stable")
        self.ordered = cells[self.order]
        self.cells = torch.zeros(heads, len(cells), **made)

    def computed(self, mask: Tensor | None, row: int) -> Float[Tensor, "head query dim"]:
        """Compute the outputs of all heads in a layer for one input, and the requested sums over attention maps."""
        on_processor = self.query.device.type == "cpu"
        together = 1 if on_processor else self.heads
        most = (CACHED if on_processor else ON_DEVICE) // (together * self.keys)
        step = max(1, min(MOST_QUERIES if on_processor else self.queries, most))
        for start in range(0, self.queries, step):
            block = _Block(start, min(start + step, self.queries), mask, row, self)
            for head in range(0, self.heads, together):
                block.take(slice(head, head + together))
        return self.output

    def scores(self, heads: slice, block: "_Block") -> Float[Tensor, "head query key"]:
        """Return the attention scores of some heads for a block of queries, over the keys that the queries can attend
        to."""
        key = self.key[heads.start // self.groups : -(-heads.stop // self.groups), :, block.seen]
        if self.groups > 1 and len(key) > 1:
            key = key.repeat_interleave(self.groups, 0)
        query = self.query[heads, block.queries]
        held = self.scores_held = self._room(self.scores_held, (*query.shape[:2], key.shape[-1]), query.dtype)
        scores = torch.matmul(query, key, out=held)
        if self.scale != 1:
            scores = scores.mul_(self.scale)
        if (cap := self.options.get("softcap")) is not None:
            scores = scores.div_(cap).tanh_().mul_(cap)
        if (bias := self.options.get("position_bias")) is not None:
            bias = bias[min(block.row, len(bias) - 1)]
            some = heads if len(bias) > 1 else slice(None)
            scores = scores + bias[some, block.queries, block.seen]
        if block.mask is not None:
            scores = scores + (block.mask[heads] if len(block.mask) > 1 else block.mask)
        return scores.to(self.exact)

    def exponentials(self, scores: Float[Tensor, "head query column"]) -> Float[Tensor, "head query column"]:
        """Return the exponentials of attention scores in a buffer, which the next block of queries overwrites."""
        self.weights_held = self._room(self.weights_held, scores.shape, scores.dtype)
        return exp_into(self.weights_held, scores)

    def _room(self, held: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Reused memory if it fits: allocating takes as long as a sum."""
        fits = held.shape == tuple(shape) and held.dtype == dtype
        return held if fits else torch.empty(*shape, dtype=dtype, device=self.query.device)

    def sums(self) -> MapSums:
        """Return the requested sums over the attention maps of this layer."""
        parts = (self.entropies, self.distances, self.columns, self.offsets, self.values, self.rows, self.cells)
        return MapSums(*(part.cpu().numpy() for part in parts))


class _Block:
    """A block of queries of a layer."""

    def __init__(self, start: int, stop: int, mask: Tensor | None, row: int, own: _Layer):
        self.start, self.queries, self.row, self.own = start, slice(start, stop), row, own
        self.mask, self.seen = visible_rows(mask, row, self.queries, own.keys, own.query.dtype, own.query.device)
        first, last = self.seen.start, self.seen.stop
        self.gaps = None
        if own.needs.distance:
            made: dict[str, Any] = {"dtype": own.exact, "device": own.query.device}
            keys, rows = (torch.arange(*ends, **made) for ends in ((first, last), (start, stop)))
            self.gaps = (keys - rows[:, None]).abs_()
        between = np.searchsorted(own.ordered[:, 0], (start, stop))
        cells = own.ordered[between[0] : between[1]]
        inside = (cells[:, 1] >= first) & (cells[:, 1] < last)
        self.cells = own.order[between[0] : between[1]][inside]
        self.at, self.to = (cells[inside] - (start, first)).T
        self.whole = [(number, row - start) for number, row in enumerate(own.needs.rows) if start <= row < stop]

    def take(self, heads: slice) -> None:
        """Compute the outputs of some heads for one block of queries, and update the sums over attention maps."""
        own, needs = self.own, self.own.needs
        scores = own.scores(heads, self)
        if own.sinks is not None:
            scores = torch.cat([scores, own.sinks[heads, None, None].expand(-1, scores.shape[1], 1)], -1)
        scores = scores.sub_(scores.amax(-1, keepdim=True))
        weights = own.exponentials(scores)
        tokens = weights[..., : self.seen.stop - self.seen.start]
        products = self._counted(tokens)
        total = products[..., 0]
        if own.sinks is not None:
            total = total + weights[..., -1]
        refuse_no_number(own.layer, total, head=heads.start, query=self.start)
        if needs.entropy:
            own.entropies[heads, self.queries] = total.log() - row_dots(weights, scores) / total
        own.values[heads, self.queries] = products[..., 1:] / total[..., None]
        divisor = total
        if needs.blocks is not None or own.value.dtype != own.exact:
            weights.div_(total[..., None])
            divisor = torch.ones_like(total)
        self._outputs(heads, tokens, divisor)
        self._reduce(heads, weights, tokens, divisor)

    def _counted(self, tokens: Tensor) -> Float[Tensor, "head query value"]:
        """Return the sum of each row and its weighted sums; a product with few columns is slower than separate ones."""
        counted = self.own.counted[:, self.seen]
        if len(counted) > FEW:
            return torch.matmul(tokens, counted.T)
        return torch.stack([torch.matmul(tokens, column) for column in counted], -1)

    def _outputs(self, heads: slice, tokens: Tensor, divisor: Tensor) -> None:
        own = self.own
        kv = slice(heads.start // own.groups, -(-heads.stop // own.groups))
        values = own.value[kv, self.seen]
        if own.groups > 1 and len(values) > 1:
            values = values.repeat_interleave(own.groups, 0)
        output = torch.matmul(tokens.to(own.value.dtype), values)
        own.output[heads, self.queries] = output if own.value.dtype != own.exact else output / divisor[..., None]

    def _reduce(self, heads: slice, weights: Tensor, tokens: Tensor, total: Tensor) -> None:
        """Reduce the rows to the requested sums. total: the divisor that still applies to them."""
        own, needs, first = self.own, self.own.needs, self.seen.start
        if self.gaps is not None:
            own.distances[heads, self.queries] = row_dots(tokens, self.gaps) / total
        if needs.columns:
            columns = torch.matmul(total.reciprocal()[:, None], weights)[:, 0].double()
            own.columns[heads, self.seen] += columns[:, : tokens.shape[-1]]
            own.columns[heads, own.keys :] += columns[:, tokens.shape[-1] :]
        for number, offset in enumerate(needs.offsets):
            self._offset(heads, number, offset, tokens, total)
        for number, row in self.whole:
            own.rows[heads, number, self.seen] = tokens[:, row] / total[:, row, None]
            own.rows[heads, number, own.keys :] = weights[:, row, tokens.shape[-1] :] / total[:, row, None]
        if len(self.cells):
            own.cells[heads, self.cells] = tokens[:, self.at, self.to] / total[:, self.at]
        if needs.blocks is not None:
            wide = weights
            if first or self.seen.stop < own.keys:
                wide = weights.new_zeros(*weights.shape[:2], own.columns_wide)
                wide[..., self.seen], wide[..., own.keys :] = tokens, weights[..., tokens.shape[-1] :]
            for number, rows in enumerate(wide):
                needs.blocks(heads.start + number, self.start, rows)

    def _offset(self, heads: slice, number: int, offset: int, tokens: Tensor, total: Tensor) -> None:
        """Store the weight on the key `offset` positions after each query; 0 outside the window of the layer."""
        own = self.own
        start, stop = max(self.start, -offset), min(self.queries.stop, own.keys - offset)
        if stop <= start:
            return
        own.offsets[heads, number, start:stop] = 0
        low, high = max(start, self.seen.start - offset), min(stop, self.seen.stop - offset)
        if high > low:
            diagonal = tokens.diagonal(self.start + offset - self.seen.start, -2, -1)
            rows = slice(low - self.start, high - self.start)
            own.offsets[heads, number, low:high] = diagonal[..., : high - low] / total[:, rows]
