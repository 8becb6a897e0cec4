"""Batches of examples: encoded once, grouped by length to reduce padding, in a reproducible order."""

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

POOL = 50  # batches sorted by length together; the order of pools is random


@dataclass(frozen=True)
class Example:
    """An encoded example of a task with its label."""

    encoding: Encoding
    label: int | float

    def __len__(self) -> int:
        return len(self.encoding)


def encode(checkpoint: Checkpoint, rows: Sequence[TaskRow], max_length: int) -> list[Example]:
    """Tokenise examples and truncate them to `max_length` tokens. Raises InputError that names an invalid example."""
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
    """Divide example indices into random batches, with `seed` and `epoch` as the random seed. If `bucketed` is True,
    the examples in a batch have similar lengths."""
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
    """Pad a batch on the right to equal length. Return model inputs (with token types if `segments`) and labels."""
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
    """Yield batches of example indices for evaluation, shortest inputs first."""
    order = sorted(range(len(lengths)), key=lambda k: lengths[k])
    for start in range(0, len(order), size):
        yield order[start : start + size]
