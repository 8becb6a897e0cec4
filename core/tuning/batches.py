"""Rows as batches: encoded once, grouped by length so that little is padding, in an order the seed decides."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from ..errors import InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from ..tasks.glue import TaskRow

POOL = 50  # batches that are sorted by length together; order stays random beyond them


@dataclass(frozen=True)
class Example:
    """A row as the model takes it."""

    encoding: Encoding
    label: int | float

    def __len__(self) -> int:
        return len(self.encoding)


def encode(checkpoint: Checkpoint, rows: Sequence[TaskRow], max_length: int) -> list[Example]:
    """Rows as pieces; the error of a text that cannot be encoded names its row.

    Args:
        max_length: pieces at most, special tokens included; longer texts are cut.

    Returns:
        One example a row, in the order given.

    Raises:
        InputError: a row's text cannot be encoded.
    """
    examples = []
    for row in rows:
        try:
            examples.append(Example(checkpoint.encode(row.text, row.pair, max_length=max_length), row.label))
        except InputError as error:
            raise InputError(f"Row {row.id}: {error}") from error
    return examples


def batches(
    lengths: Sequence[int], size: int, *, seed: int, epoch: int, bucketed: bool = True, pool: int = POOL
) -> list[list[int]]:
    """The indices of all rows, each once, in batches in random order.

    Args:
        size: rows of a batch; the last of a pool may be shorter.
        seed: of the order.
        epoch: of the order too; equal (seed, epoch) give equal batches.
        bucketed: whether rows are shuffled, cut into pools, sorted by length within a pool (ties stay shuffled), cut
            into batches, and the batches shuffled; otherwise they are shuffled and cut.
    """
    rng = random.Random(f"{seed}-{epoch}")  # noqa: S311
    order = list(range(len(lengths)))
    rng.shuffle(order)
    if not bucketed:
        return [order[k : k + size] for k in range(0, len(order), size)]
    groups = []
    for start in range(0, len(order), size * pool):
        block = sorted(order[start : start + size * pool], key=lambda k: lengths[k])
        groups += [block[k : k + size] for k in range(0, len(block), size)]
    rng.shuffle(groups)
    return groups


def collate(
    examples: Sequence[Example], *, padding: int, segments: bool, pad_to: int = 0, device: torch.device | str = "cpu"
) -> tuple[dict[str, Int[Tensor, "batch position"]], Shaped[Tensor, " batch"]]:
    """Model inputs, right-padded to the longest row, and labels.

    Args:
        examples: of one batch, one at least.
        padding: the number of the padding piece.
        segments: whether the model takes token types.
        pad_to: positions at least; 0: the longest row's.
        device: where the tensors go.

    Returns:
        By the forward's argument, its inputs; then the labels: integers, or floats of scores.
    """
    width = max(pad_to, *(len(example) for example in examples))
    inputs = {
        "input_ids": _padded([example.encoding.ids for example in examples], width, padding),
        "attention_mask": _padded([(1,) * len(example) for example in examples], width, 0),
    }
    if segments:
        inputs["token_type_ids"] = _padded([example.encoding.segments for example in examples], width, 0)
    labels = torch.tensor([example.label for example in examples])
    return {name: value.to(device) for name, value in inputs.items()}, labels.to(device)


def _padded(rows: Sequence[Sequence[int]], width: int, filler: int) -> Tensor:
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows], dtype=torch.long)


def by_length(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Indices of inputs in batches of `size`, shortest first, for evaluation."""
    order = sorted(range(len(lengths)), key=lambda k: lengths[k])
    for start in range(0, len(order), size):
        yield order[start : start + size]
