"""Gates on heads' outputs, fitted on a task's loss with all weights frozen (causal head gating, arXiv 2505.13737).

A gate lies between 0 (the head says nothing) and 1 (as it is). Each fit pushes gates up or down by a price a head while
the loss pulls: what ends up high either way is needed, what ends up low either way is in the way, what follows the push
does not matter at that price. Many fits run side by side in one batch: their rows and starts differ, the weights don't.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .importance import check_labels
from .running import BATCH_TOKENS, batches, model_inputs, prepared

STEPS, RATE = 30, 0.4  # of Adam, on the gates' logits


@dataclass(frozen=True)
class GateFits:
    """What is fitted side by side.

    Attributes:
        rows: how often each row counts in each fit, 0 and up.
        starts: the gates' logits at the start.
        prices: what every gate adds to the loss when it is open, in units of the loss; below 0 it pushes gates up.
    """

    rows: Float[Tensor, "fit row"]
    starts: Float[Tensor, "fit layer head"]
    prices: Float[Tensor, " fit"]


def fit_gates(
    checkpoint: Checkpoint,
    encodings: Sequence[Encoding],
    labels: Sequence[int | float],
    fits: GateFits,
    *,
    steps: int = STEPS,
) -> Float[Tensor, "fit layer head"]:
    """The gates that each fit ends with: minimises mean loss + price x sum of gates.

    Args:
        labels: one a row, as the classifier's outputs (cross-entropy) or scores (squared error).

    Returns:
        On the CPU. *Range:* 0 (the head says nothing) to 1 (as it is).

    Raises:
        CheckpointError: without a classifier.
        InputError: rows and labels do not go together.
        InterventionError: the family's heads cannot be gated.
    """
    check_labels(checkpoint, encodings, labels)
    logits = fits.starts.clone().to(checkpoint.device).requires_grad_()
    adam = torch.optim.Adam([logits], lr=RATE)
    for _ in range(steps):
        # Derivative of every fit's mean loss by its gates.
        slopes = torch.zeros_like(fits.starts, device=checkpoint.device)
        shares = fits.rows / fits.rows.sum(1, keepdim=True)
        for rows, numbers in _batches(encodings, fits.rows):
            gates = torch.sigmoid(logits.detach())[numbers].requires_grad_()
            with torch.enable_grad():
                losses = _losses(checkpoint, encodings, labels, rows, gates)
                (slope,) = torch.autograd.grad((losses * shares[numbers, rows].to(losses)).sum(), gates)
            slopes.index_add_(0, torch.tensor(numbers, device=slopes.device), slope)
        opened = torch.sigmoid(logits.detach())
        logits.grad = (slopes + fits.prices.to(opened)[:, None, None]) * opened * (1 - opened)
        adam.step()
    return torch.sigmoid(logits.detach()).cpu()


def gated_losses(
    checkpoint: Checkpoint,
    encodings: Sequence[Encoding],
    labels: Sequence[int | float],
    gates: Float[Tensor, "fit layer head"],
) -> Float[Tensor, "fit row"]:
    """The loss of every row under every set of gates.

    Args:
        labels: one a row, as of `fit_gates`.
        gates: multiplied into heads' outputs, 0 to 1.

    Returns:
        Cross-entropy in nats, or squared error of a score; on the CPU.
    """
    losses = torch.zeros(len(gates), len(encodings))
    for rows, numbers in _batches(encodings, torch.ones(len(gates), len(encodings))):
        with torch.no_grad():
            losses[numbers, rows] = _losses(checkpoint, encodings, labels, rows, gates[numbers]).cpu()
    return losses


def _batches(encodings: Sequence[Encoding], counts: Float[Tensor, "fit row"]) -> list[tuple[list[int], list[int]]]:
    """Rows of one length, each as often as there are fits that use it, with the numbers of these fits."""
    found: list[tuple[list[int], list[int]]] = []
    for bucket in batches(encodings, 1 << 40):
        both = [(row, int(fit)) for row in bucket for fit in torch.nonzero(counts[:, row]).flatten()]
        most = max(1, BATCH_TOKENS // max(1, len(encodings[bucket[0]])))
        for start in range(0, len(both), most):
            rows, numbers = zip(*both[start : start + most], strict=True)
            found.append((list(rows), list(numbers)))
    return found


def _losses(
    checkpoint: Checkpoint,
    encodings: Sequence[Encoding],
    labels: Sequence[int | float],
    rows: Sequence[int],
    gates: Float[Tensor, "batch layer head"],
) -> Float[Tensor, " batch"]:
    some = [encodings[row] for row in rows]
    xi = gates.to(checkpoint.device).transpose(0, 1)[..., None].expand(-1, -1, -1, len(some[0]))
    with prepared(checkpoint, gates=xi):
        logits = checkpoint.model(**model_inputs(checkpoint, some)).logits.float()
    wanted = torch.tensor([labels[row] for row in rows], device=logits.device)
    if logits.shape[-1] == 1:
        return nn.functional.mse_loss(logits[:, 0], wanted.to(logits.dtype), reduction="none")
    return nn.functional.cross_entropy(logits, wanted.long(), reduction="none")
