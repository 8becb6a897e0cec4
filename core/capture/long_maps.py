"""Maps of long inputs: block maxima of every head, and exact windows of one head.

All maps of 4,096 tokens and 512 heads would take 34 GB in float32. Weights are therefore computed in blocks of queries
and reduced to the largest weight of each block. A window is recomputed when it is shown.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..attention import Head
from ..errors import InputError
from ..map_sums import MapSums, Needs, keys_as_values
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .function import ended_after
from .masks import lazily
from .reach import is_streamed
from .running import prepared
from .streaming import Streamer

BLOCKS = 128  # rows and columns of a picture of all heads
ROWS_BYTES = 256_000_000  # limit for the weights computed at a time
WINDOW = 256  # most queries and keys of a window


@dataclass(frozen=True)
class BlockMaps:
    """The largest attention weight in each block of queries and keys, for all heads on one long input.

    Attributes:
        maxima: 0 to 1, without sinks.
        block: tokens per block; the last block may have fewer.
        sums: sums of each layer from which scores are computed; empty for hybrids, and for models whose attention
            cannot be computed in blocks (`is_streamed`).
    """

    maxima: Float[np.ndarray, "layer head rows columns"]
    block: int
    tokens: tuple[str, ...]
    causal: bool
    windows: tuple[int | None, ...] = ()
    sums: tuple[MapSums, ...] = ()
    attending: tuple[int, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Return a label for each block, such as "1–32", with its first and last position (counted from 1)."""
        starts = range(0, len(self.tokens), self.block)
        return tuple(f"{start + 1}–{min(start + self.block, len(self.tokens))}" for start in starts)


def block_of(length: int) -> int:
    """Return the smallest block size, in tokens, that divides an input of this length into at most BLOCKS blocks."""
    return max(1, -(-length // BLOCKS))


def block_maxima(checkpoint: Checkpoint, encoding: Encoding) -> BlockMaps:
    """Compute the largest attention weight of each head in each block of queries and keys without storing whole maps.

    Raises InputError if the input was truncated, and CheckpointError if scores are NaN or infinite.
    """
    refuse_cut(checkpoint, encoding)
    length, block = len(encoding), block_of(len(encoding))
    blocks, attending = -(-length // block), checkpoint.sets[0].attending
    maxima = np.zeros((checkpoint.layers, checkpoint.heads, blocks, blocks), dtype=np.float32)
    if is_streamed(checkpoint):
        sums = _streamed(checkpoint, encoding, maxima, block)
        return BlockMaps(maxima, block, encoding.tokens, checkpoint.causal, checkpoint.windows, sums, attending)
    seen = [0] * checkpoint.layers

    def reduce(layer: int, weights: Tensor) -> None:
        for start in range(0, weights.shape[2], block):
            row = (seen[layer] + start) // block
            maxima[layer, :, row] = _greatest(weights[0, :, start : start + block, :length], block)
        seen[layer] += weights.shape[2]

    _forward(checkpoint, encoding, reduce, rows=_rows(checkpoint, length, block))
    return BlockMaps(maxima, block, encoding.tokens, checkpoint.causal, checkpoint.windows, attending=attending)


def _streamed(
    checkpoint: Checkpoint, encoding: Encoding, maxima: Float[np.ndarray, "layer head row column"], block: int
) -> tuple[MapSums, ...]:
    """Fill in the maxima and return the sums of each layer."""
    sums: dict[int, MapSums] = {}

    def reduce(head: int, start: int, weights: Tensor) -> None:
        keys = _greatest(weights[None, :, : len(encoding)], block, by_query=True)[0]
        rows = (start + np.arange(len(keys))) // block
        own = maxima[numbers[len(sums)], head]
        firsts = np.flatnonzero(np.diff(rows, prepend=-1))
        own[rows[firsts]] = np.maximum(own[rows[firsts]], np.maximum.reduceat(keys, firsts))

    sets = keys_as_values(((encoding.first or 0,), encoding.separators), len(encoding))
    needs = Needs(entropy=True, offsets=(-1, 0, 1), values=sets, blocks=reduce)
    numbers = checkpoint.sets[0].numbers
    calls = frozenset(numbers)
    with torch.no_grad(), prepared(checkpoint) as asked, lazily(), ended_after(asked, calls):
        asked.streamer = Streamer([needs], lambda layer, own: sums.update({layer: own[0]}), calls)
        _core(checkpoint, encoding)
    return () if checkpoint.sets[0].attending else tuple(sums[layer] for layer in numbers)


def window(
    checkpoint: Checkpoint, encoding: Encoding, head: Head, queries: tuple[int, int], keys: tuple[int, int]
) -> Float[np.ndarray, "query key"]:
    """Compute the attention weights of one head from queries [start, end) to keys [start, end), float32.

    Raises InputError if the input was truncated, the head does not exist, or the window is empty, outside the input or
    larger than WINDOW.
    """
    refuse_cut(checkpoint, encoding)
    head = head.within(checkpoint.layers, checkpoint.heads)
    for start, end in (queries, keys):
        if not 0 <= start < end <= len(encoding) or end - start > WINDOW:
            raise InputError(
                f"A window must have 1 to {WINDOW} tokens and lie inside the input, which has {len(encoding)} tokens; "
                f"got tokens {start + 1} to {end}. Choose another window."
            )
    kept: list[np.ndarray] = []
    seen = [0]

    def keep(_: int, weights: Tensor) -> None:
        start, stop = max(queries[0] - seen[0], 0), queries[1] - seen[0]
        if stop > 0 and start < weights.shape[2]:
            kept.append(weights[0, head.head, start:stop, keys[0] : keys[1]].float().cpu().numpy())
        seen[0] += weights.shape[2]

    block = block_of(len(encoding))
    _forward(checkpoint, encoding, keep, rows=_rows(checkpoint, len(encoding), block), layers=[head.layer])
    return np.concatenate(kept)


def refuse_cut(checkpoint: Checkpoint, encoding: Encoding) -> None:
    """Raise InputError if the input was truncated because it was longer than the context of the model."""
    if encoding.cut:
        raise InputError(
            f"A prompt must fit into the context of {checkpoint.name} ({checkpoint.max_length} tokens); got "
            f"{len(encoding) + encoding.cut} tokens. Shorten the prompt."
        )


def _rows(checkpoint: Checkpoint, length: int, block: int) -> int:
    """Return how many queries are processed at a time: whole blocks whose weights fit into ROWS_BYTES."""
    return block * max(1, ROWS_BYTES // (checkpoint.heads * length * 4 * block))


def _greatest(weights: Float[Tensor, "head query key"], block: int, *, by_query: bool = False) -> np.ndarray:
    """Return the largest weight of each block of keys [head, block]; `by_query`: [head, query, block]."""
    most = weights.float() if by_query else weights.amax(1).float()
    padded = nn.functional.pad(most, (0, -most.shape[-1] % block))
    return padded.unflatten(-1, (-1, block)).amax(-1).cpu().numpy()


def _forward(checkpoint: Checkpoint, encoding: Encoding, watcher: Any, *, rows: int, layers: Any = None) -> None:
    with torch.no_grad(), prepared(checkpoint, watcher=watcher, layers=layers) as run, lazily():
        run.rows = rows
        with ended_after(run, run.watched):
            _core(checkpoint, encoding)


def _core(checkpoint: Checkpoint, encoding: Encoding) -> None:
    """Run the model without its head, which would process every token."""
    model = checkpoint.model
    core = getattr(model, model.base_model_prefix, model)
    core(**checkpoint.inputs([encoding]), **({"use_cache": False} if checkpoint.causal else {}))
