"""Gates on the outputs of heads, fitted to the loss of a task with frozen weights (causal head gating, arXiv
2505.13737).

A gate is between 0 (the head is ablated) and 1 (unchanged). Each fit has a positive or negative price for open gates.
Heads whose gates remain open at either price are needed, heads whose gates remain closed are harmful, and gates that
follow the price do not matter. Many fits with different examples and starts run in one batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .importance import check_labels, losses_of
from .running import BATCH_TOKENS, batches, prepared

STEPS, RATE = 30, 0.4  # of Adam for the gates' logits


@dataclass(frozen=True)
class GateFits:
    """Settings for several fits of gates. A gate is a factor from 0 to 1 on the output of an attention head.

    Attributes:
        rows: weight of each example in each fit, at least 0.
        starts: initial logits of the gates.
        prices: added to the loss for each open gate, in units of the loss; a negative price pushes gates up.
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
    """Fit one gate per head for each penalty in `fits.prices`. Gates, from 0 (ablated) to 1 (unchanged), minimise the
    mean loss plus the penalty times the sum of gates.

    Labels are class indices (cross-entropy) or scores (squared error). Raises CheckpointError without a classifier,
    InputError if examples and labels do not match, and InterventionError if heads of the family cannot be gated.
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
    """Return the loss of each example, in nats or as squared error, for each set of gates. Head outputs are multiplied
    by the gates."""
    losses = torch.zeros(len(gates), len(encodings))
    for rows, numbers in _batches(encodings, torch.ones(len(gates), len(encodings))):
        with torch.no_grad():
            losses[numbers, rows] = _losses(checkpoint, encodings, labels, rows, gates[numbers]).cpu()
    return losses


def _batches(encodings: Sequence[Encoding], counts: Float[Tensor, "fit row"]) -> list[tuple[list[int], list[int]]]:
    """Return batches of examples of one length, repeated for each fit that uses them, with the indices of the fits."""
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
        logits = checkpoint.model(**checkpoint.inputs(some)).logits.float()
    return losses_of(logits, [labels[row] for row in rows])
