"""Logits of classifiers, and of language models at one position of each input."""

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
    """Return the logits of a classifier, or of a language model at one position of each input (`places`). Raises
    CheckpointError if the checkpoint predicts neither."""
    rows: dict[int, Tensor] = {}
    run(checkpoint, encodings, [], interventions=changes,
        on_batch=lambda inputs, output: rows.update(logits_at(checkpoint, output, inputs, places)))  # fmt: skip
    return stacked(checkpoint, rows)


def logits_at(
    checkpoint: Checkpoint, output: object, inputs: Sequence[int], places: Sequence[int]
) -> dict[int, Float[Tensor, " choice"]]:
    """Return the logits of each input in a batch, by the index of the input in the run. Raises CheckpointError if the
    model has no logits."""
    logits = getattr(output, "logits", None)
    if logits is None:
        raise CheckpointError(
            f"Activation patching needs logits; {checkpoint.name} has neither a classification head nor a "
            "language model head. Open a fine-tuned classifier or a language model."
        )
    return {k: logits[row] if logits.dim() == 2 else logits[row, places[k]] for row, k in enumerate(inputs)}


def stacked(checkpoint: Checkpoint, rows: dict[int, Float[Tensor, " choice"]]) -> Float[Tensor, "input choice"]:
    """Stack the logits of all inputs, given by input index, in the order of the inputs."""
    exact = torch.promote_types(getattr(torch, checkpoint.dtype), torch.float32)
    return torch.stack([rows[k] for k in range(len(rows))]).to(exact).cpu()
