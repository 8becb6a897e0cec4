"""How much each head matters to the loss, for all heads in one backward pass (Michel et al. 2019, section 4.1).

xi_h = 1 gates head h's output; |dL/dxi_h| is how fast the loss moves when the head is turned down. The gates are
given per input and query position, so one pass yields both readings of the paper: the absolute value per example
(its formula) and per token (its code).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import CheckpointError, InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .running import BATCH_TOKENS, batches, model_inputs, prepared

Reading = Literal["example", "token"]
READINGS: tuple[str, ...] = ("example", "token")


@dataclass(frozen=True)
class Gradients:
    """Sums over inputs; parts of a data set add up with `+`.

    Attributes:
        example: sum over inputs of |dL/dxi_h|, float64.
        token: sum over inputs and positions of |ctx_t . dL/dctx_t|, float64.
    """

    example: Float[Tensor, "layer head"]
    token: Float[Tensor, "layer head"]
    inputs: int
    tokens: int

    def __add__(self, other: "Gradients") -> "Gradients":
        return Gradients(
            self.example + other.example,
            self.token + other.token,
            self.inputs + other.inputs,
            self.tokens + other.tokens,
        )


def gradients(
    checkpoint: Checkpoint,
    encodings: Sequence[Encoding],
    labels: Sequence[int | float],
    *,
    zeroed: Float[Tensor, "layer head"] | None = None,
) -> Gradients:
    """Gradients by every head's gate: one forward and backward pass over all inputs, in eval mode, none on any weight.

    Args:
        labels: one an input, outputs of the classifier (cross-entropy), or scores where it has one output (squared
            error).
        zeroed: heads already pruned, as 0 among ones; None: no head is.

    Raises:
        CheckpointError: without a classifier.
        InputError: there are no inputs, or not one label an input.
        InterventionError: the family's heads cannot be gated.
    """
    check_labels(checkpoint, encodings, labels)
    shape = (checkpoint.layers, checkpoint.heads)
    sums = Gradients(torch.zeros(shape).double(), torch.zeros(shape).double(), 0, 0)
    gates = torch.ones(shape) if zeroed is None else zeroed
    for inputs in batches(encodings, BATCH_TOKENS // 2):
        some = [encodings[k] for k in inputs]
        length = len(some[0])
        xi = gates.to(checkpoint.device)[:, None, :, None].repeat(1, len(some), 1, length).requires_grad_()
        with torch.enable_grad(), prepared(checkpoint, gates=xi):
            logits = checkpoint.model(**model_inputs(checkpoint, some)).logits.float()
            (moved,) = torch.autograd.grad(loss_of(logits, [labels[k] for k in inputs]), xi)
        moved = moved.double().cpu()
        for layer in set(range(checkpoint.layers)) - set(checkpoint.sets[0].numbers):
            moved[layer] = torch.nan
        sums += Gradients(
            example=moved.sum(-1).abs().sum(1),
            token=moved.abs().sum((1, 3)),
            inputs=len(some),
            tokens=len(some) * length,
        )
    return sums


def check_labels(checkpoint: Checkpoint, encodings: Sequence[Encoding], labels: Sequence[int | float]) -> None:
    """Raises CheckpointError without a classifier, InputError where rows and labels do not go together."""
    if checkpoint.labels is None:
        raise CheckpointError(
            f"Importance needs a classifier and its loss; {checkpoint.name} has no classification head: open a "
            "fine-tuned checkpoint."
        )
    if not encodings or len(encodings) != len(labels):
        raise InputError(f"Every row needs one label; seen {len(encodings)} rows and {len(labels)} labels.")


def loss_of(logits: Float[Tensor, "input label"], labels: Sequence[int | float]) -> Float[Tensor, ""]:
    """The loss summed over inputs: each input's gradient is then that of its own loss.

    Args:
        labels: one an input, as of `gradients`.

    Returns:
        Cross-entropy in nats, or squared error where there is one output.
    """
    if logits.shape[-1] == 1:
        wanted = torch.tensor(labels, dtype=logits.dtype, device=logits.device)
        return nn.functional.mse_loss(logits[:, 0], wanted, reduction="sum")
    return nn.functional.cross_entropy(logits, torch.tensor(labels, device=logits.device), reduction="sum")


def importance(
    sums: Gradients, *, reading: Reading = "example", normalize: bool = True, last_by_inputs: bool = False
) -> Float[Tensor, "layer head"]:
    """I_h = E|dL/dxi_h|: mean over inputs ("example", the paper's formula), or over tokens ("token", the paper's code).

    Args:
        normalize: whether each layer's values are divided by their l2 norm, as the paper does before heads of different
            layers are compared.
        last_by_inputs: whether, with "token", the last layer is divided by inputs (the paper's code: only [CLS] has a
            gradient there).

    Returns:
        Float64. *Range:* 0 and up, in units of the loss; 0 to 1 when normalized.
    """
    if reading == "example":
        scores = sums.example / sums.inputs
    else:
        scores = sums.token / sums.tokens
        if last_by_inputs:
            scores[-1] = sums.token[-1] / sums.inputs
    return scores / (scores.norm(dim=-1, keepdim=True) + 1e-20) if normalize else scores
