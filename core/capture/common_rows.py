"""Comparable rows of attention maps from two checkpoints: the same queries and the same keys.

Keys are tokens if both checkpoints split a text into the same tokens; otherwise they are words and shared special
tokens. Other keys are left out, and rows are normalised to 1. If one checkpoint is causal, keys after the query are
left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..map_sums import keys_as_values
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .running import run
from .words import words_of

Group = tuple[int, ...]  # positions that together form a token or a word
MOST_ROWS = 192  # of a block


@dataclass(frozen=True)
class CommonInput:
    """The tokens or words that two checkpoints share in one input, stored as token positions in each checkpoint."""

    first: tuple[Group, ...]
    other: tuple[Group, ...]


def split_alike(first: Encoding, other: Encoding) -> bool:
    """Return whether two checkpoints split a text into the same tokens."""
    return first.tokens == other.tokens and first.offsets == other.offsets


def common_tokens(first: Encoding, other: Encoding) -> CommonInput:
    """Pair the tokens of two encodings of the same input by position. Both encodings must have the same tokens."""
    groups = tuple((position,) for position in range(len(first)))
    return CommonInput(groups, groups)


def common_words(first: Encoding, other: Encoding) -> CommonInput:
    """Return the words and special tokens that two checkpoints share in an input that they tokenise differently.
    Separators are included only if both checkpoints have the same number of separators."""
    mine, theirs = (_by_place(encoding) for encoding in (first, other))
    shared = [position for position in mine if position in theirs]
    if len(first.separators) != len(other.separators):
        shared = [position for position in shared if position[0] != "separator"]
    return CommonInput(tuple(mine[position] for position in shared), tuple(theirs[position] for position in shared))


def _by_place(encoding: Encoding) -> dict[tuple[object, ...], Group]:
    """Words by sentence and characters, special tokens by kind."""
    groups: dict[tuple[object, ...], Group] = {}
    for word in words_of(encoding):
        if word.span is not None:
            groups["word", word.sentence, word.span] = word.positions
        elif word.positions[0] == encoding.first:
            groups["first",] = word.positions
        elif word.positions[0] in encoding.separators:
            groups["separator", encoding.separators.index(word.positions[0])] = word.positions
    return groups


def drawn_queries(units: int, *, queries: int | None, backward: bool, seed: Sequence[int]) -> list[int]:
    """Return at most `queries` random indices of tokens or words in ascending order, or all if `queries` is None. If
    `backward`, index 0 is left out, because the first query attends only to itself in a causal model."""
    candidates = np.arange(1 if backward else 0, units)
    if queries is None or len(candidates) <= queries:
        return candidates.tolist()
    return sorted(np.random.default_rng(list(seed)).choice(candidates, queries, replace=False).tolist())


@dataclass(frozen=True)
class RowBlock:
    """Attention rows of inputs with similar lengths, padded to one tensor. Each row has the index of its input."""

    rows: Float[Tensor, "head row key"]
    inputs: Sequence[int]


class CommonRows:
    """An observer that stores attention rows of sampled queries over the tokens or words that two checkpoints share.

    Args:
        groups: for each input, the positions of every shared token or word.
        queries: for each input, the indices of the tokens or words whose rows are stored.
        backward: whether keys after the query are left out.
    """

    takes_sinks = True

    def __init__(
        self,
        checkpoint: Checkpoint,
        lengths: Sequence[int],
        groups: Sequence[tuple[Group, ...]],
        queries: Sequence[list[int]],
        *,
        backward: bool,
    ):
        heads = checkpoint.sets[0]
        self.layers, self.heads, self.backward = list(heads.numbers), heads.heads, backward
        self.queries = queries
        self.keys = [_membership(group, length) for group, length in zip(groups, lengths, strict=True)]
        self.rows = [
            torch.empty(len(self.layers) * self.heads, len(chosen), len(group))
            for chosen, group in zip(queries, groups, strict=True)
        ]

    def update(self, layer: int, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        for row, number in enumerate(inputs):
            keys, queries = self.keys[number], self.queries[number]
            maps = weights[row, :, :, : weights.shape[2]].float().cpu()  # without a sink's column
            if keys is None:
                rows = maps[:, queries]
            else:
                chosen = keys[:, queries]
                rows = (chosen / chosen.sum(0)).T @ maps @ keys
            even = torch.ones_like(rows)
            if self.backward:
                is_later = torch.arange(rows.shape[-1]) > torch.tensor(queries)[:, None]
                rows, even = rows.masked_fill(is_later, 0.0), even.masked_fill(is_later, 0.0)
            if keys is not None or self.backward or weights.shape[-1] > weights.shape[2]:
                # Rows sum to 1 over the shared keys. A row that lost its whole weight is uniform over the keys it may
                # see.
                sums = rows.sum(-1, keepdim=True)
                rows = torch.where(sums > 1e-6, rows / sums.clamp_min(1e-6), even / even.sum(-1, keepdim=True))
            at = self.layers.index(layer) * self.heads
            self.rows[number][at : at + self.heads] = rows


def _membership(groups: tuple[Group, ...], length: int) -> Tensor | None:
    """1 if a position belongs to a token or word; None if every position is one, in order."""
    if groups == tuple((position,) for position in range(length)):
        return None
    return torch.from_numpy(keys_as_values(groups, length))


def take_rows(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], observer: CommonRows
) -> list[Float[Tensor, "head _ _"]]:
    """Run the model and return the attention rows of the sampled queries of each input, as float32. Each row sums to 1.
    Heads are in the order of `Checkpoint.all_heads`."""
    run(checkpoint, encodings, [observer], layers=observer.layers)
    return observer.rows


def blocks(rows: Sequence[Tensor]) -> list[RowBlock]:
    """Group attention rows [head, row, key] into blocks of at most MOST_ROWS rows, unless one input has more. Inputs
    with similar lengths share a block to reduce padding."""
    order = sorted(range(len(rows)), key=lambda number: (-rows[number].shape[-1], number))
    made, start = [], 0
    while start < len(order):
        stop, count = start, 0
        while stop < len(order) and (stop == start or count + rows[order[stop]].shape[1] <= MOST_ROWS):
            count += rows[order[stop]].shape[1]
            stop += 1
        wide = rows[order[start]].shape[-1]
        padded = [torch.nn.functional.pad(rows[k], (0, wide - rows[k].shape[-1])) for k in order[start:stop]]
        made.append(RowBlock(torch.cat(padded, 1), [k for k in order[start:stop] for _ in range(rows[k].shape[1])]))
        start = stop
    return made
