"""Logits of classifiers and of language models alike, the latter at one position of each input."""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import CheckpointError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .running import Change, run


def answers(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], places: Sequence[int], changes: Iterable[Change] = ()
) -> Float[Tensor, "input choice"]:
    """Logits of a classifier, or of a language model at one position of each input.

    Args:
        places: the position of each where a language model is read; classifiers do not look at it.

    Returns:
        As of `predict`.

    Raises:
        CheckpointError: the checkpoint predicts neither.
    """
    rows: dict[int, Tensor] = {}
    run(checkpoint, encodings, [], interventions=changes,
        on_batch=lambda inputs, output: rows.update(logits_at(checkpoint, output, inputs, places)))  # fmt: skip
    return stacked(checkpoint, rows)


def logits_at(
    checkpoint: Checkpoint, output: object, inputs: Sequence[int], places: Sequence[int]
) -> dict[int, Float[Tensor, " choice"]]:
    """The logits of each input of a batch.

    Args:
        places: the position of each input of the run where a language model is read.

    Returns:
        By the input's number, in the model's dtype and on its device.

    Raises:
        CheckpointError: the output has no logits.
    """
    logits = getattr(output, "logits", None)
    if logits is None:
        raise CheckpointError(
            f"Patching compares logits; {checkpoint.name} has no head that gives any: open a fine-tuned "
            "classifier or a language model."
        )
    return {k: logits[row] if logits.dim() == 2 else logits[row, places[k]] for row, k in enumerate(inputs)}


def stacked(checkpoint: Checkpoint, rows: dict[int, Float[Tensor, " choice"]]) -> Float[Tensor, "input choice"]:
    """Logits of all inputs in one tensor.

    Args:
        checkpoint: whose logits they are.
        rows: of each input, by its number from 0; none is missing.

    Returns:
        As of `predict`.
    """
    exact = torch.promote_types(getattr(torch, checkpoint.dtype), torch.float32)
    return torch.stack([rows[k] for k in range(len(rows))]).to(exact).cpu()
