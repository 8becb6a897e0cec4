"""Gradient-based importance of heads (Michel et al. 2019, section 4.1), and gradients with respect to attention
weights.

xi_h = 1 gates the output of head h, and |dL/dxi_h| is its importance. Each input and position has its own gate, so one
backward pass gives absolute values per example (formula of the paper) and per token (code of the paper).
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
from .running import BATCH_TOKENS, batches, by_layer, prepared

Reading = Literal["example", "token"]
READINGS: tuple[str, ...] = ("example", "token")


@dataclass(frozen=True)
class Gradients:
    """Absolute gradients of the loss with respect to gates (factors on head outputs), summed over inputs.

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
    """Return absolute gradients of the loss with respect to gates (factors on head outputs), in eval mode.

    `labels` are class indices (cross-entropy), or scores for one output (squared error). `zeroed` is 0 for pruned
    heads. Raises CheckpointError without a classifier, InputError if inputs and labels do not match, and
    InterventionError if heads cannot be gated.
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
            logits = checkpoint.model(**checkpoint.inputs(some)).logits.float()
            (moved,) = torch.autograd.grad(losses_of(logits, [labels[k] for k in inputs]).sum(), xi)
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


def check_labels(
    checkpoint: Checkpoint,
    encodings: Sequence[Encoding],
    labels: Sequence[int | float],
    what_needs: str = "Head importance needs",
) -> None:
    """Raise CheckpointError if the model is not a classifier, and InputError if there are no examples, or the numbers
    of examples and labels differ."""
    if checkpoint.labels is None:
        raise CheckpointError(
            f"{what_needs} a classifier; {checkpoint.name} has no classification head. Open a fine-tuned checkpoint."
        )
    if not encodings:
        raise InputError(f"{what_needs} at least one example; got none. Add examples.")
    if len(encodings) != len(labels):
        raise InputError(
            f"Every example must have one label; got {len(encodings)} examples and {len(labels)} labels. "
            "Give one label per example."
        )


def losses_of(logits: Float[Tensor, "input label"], labels: Sequence[int | float] | Tensor) -> Float[Tensor, " input"]:
    """Return the loss of every input: cross-entropy in nats, or squared error for one output."""
    wanted = torch.as_tensor(labels, device=logits.device)
    if logits.shape[-1] == 1:
        return nn.functional.mse_loss(logits[:, 0], wanted.to(logits), reduction="none")
    return nn.functional.cross_entropy(logits, wanted.long(), reduction="none")


def importance(
    sums: Gradients, *, reading: Reading = "example", normalize: bool = True, last_by_inputs: bool = False
) -> Float[Tensor, "layer head"]:
    """Return the importance I_h = E|dL/dxi_h| of every head, as float64. The mean E is over inputs ("example", the
    formula of Michel et al. 2019) or over tokens ("token", their code).

    Args:
        normalize: divide each layer by its l2 norm, as the paper does to compare layers; otherwise, the unit is that of
            the loss.
        last_by_inputs: with "token", divide the last layer by the number of inputs, as the code of the paper does,
            because only [CLS] has a gradient there.
    """
    if reading == "example":
        scores = sums.example / sums.inputs
    else:
        scores = sums.token / sums.tokens
        if last_by_inputs:
            scores[-1] = sums.token[-1] / sums.inputs
    return scores / (scores.norm(dim=-1, keepdim=True) + 1e-20) if normalize else scores


# ---------------------------------------------------------------- gradients by weights (Clark et al. 2019, 3.2)

# Zeros are added to the weights after the softmax, so the gradient is that of the weight, not of the score.


@dataclass(frozen=True)
class SeparatorSlopes:
    """Mean absolute gradients of the loss with respect to attention weights on separators and on other visible tokens.

    Attributes:
        to_separator, to_other: |d loss / d A| for separators, and for other keys; NaN for inputs without separators.
        weight: total attention to separators, mean over heads and queries.
    """

    to_separator: Float[Tensor, "layer input"]
    to_other: Float[Tensor, "layer input"]
    weight: Float[Tensor, "layer input"]


def weight_slopes(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], labels: Sequence[int | float]
) -> tuple[Float[Tensor, "layer batch head query key"], Float[Tensor, "layer batch head query key"]]:
    """Return the gradient dL/dA of the loss L with respect to each input's attention weights A, and then A itself."""
    weights: list[Tensor] = []
    with (
        torch.enable_grad(),
        prepared(checkpoint, watcher=lambda _, attended: weights.append(attended.detach())) as run,
    ):
        run.nudged = True
        logits = checkpoint.model(**checkpoint.inputs(encodings)).logits.float()
        slopes = torch.autograd.grad(losses_of(logits, labels).sum(), run.nudges)
    return by_layer(checkpoint, slopes), by_layer(checkpoint, weights)


def separator_slopes(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], labels: Sequence[int | float]
) -> SeparatorSlopes:
    """Return the mean absolute gradients of the loss with respect to attention to separators and to other tokens.

    Raises CheckpointError without a classifier, InputError if inputs and labels do not match, and InterventionError if
    weights cannot be observed.
    """
    check_labels(checkpoint, encodings, labels)
    figures = torch.full((3, checkpoint.layers, len(encodings)), float("nan"), dtype=torch.float64)
    for inputs in batches(encodings, BATCH_TOKENS // 4):
        slopes, weights = weight_slopes(checkpoint, [encodings[k] for k in inputs], [labels[k] for k in inputs])
        visible = torch.ones(slopes.shape[-2:], dtype=torch.bool, device=slopes.device)
        visible = visible.tril() if checkpoint.causal else visible
        for row, k in enumerate(inputs):
            if not encodings[k].separators:
                continue
            separator = torch.zeros_like(visible)
            separator[:, list(encodings[k].separators)] = True
            own = slopes[:, row].abs().double().mean(1)
            figures[0, :, k] = own[:, separator & visible].mean(-1).cpu()
            figures[1, :, k] = own[:, ~separator & visible].mean(-1).cpu()
            figures[2, :, k] = weights[:, row][..., list(encodings[k].separators)].double().sum(-1).mean((1, 2)).cpu()
    return SeparatorSlopes(*figures)
