"""Gradient of the loss by each attention weight: |d loss / d A[layer, head, query, key]| (Clark et al. 2019, 3.2).

Zeros are added to the weights after the softmax, so the gradient is that of the weight, not of the score.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .importance import check_labels, loss_of
from .running import BATCH_TOKENS, batches, by_layer, model_inputs, prepared


@dataclass(frozen=True)
class SeparatorSlopes:
    """Means over heads, queries and keys, float64; NaN for inputs without separators. Masked keys do not count.

    Attributes:
        to_separator: |d loss / d A| for separator keys.
        to_other: the same for all other keys; NaN if there are none.
        weight: total attention to separators, mean over heads and queries.
    """

    to_separator: Float[Tensor, "layer input"]
    to_other: Float[Tensor, "layer input"]
    weight: Float[Tensor, "layer input"]


def weight_slopes(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], labels: Sequence[int | float]
) -> tuple[Float[Tensor, "layer batch head query key"], Float[Tensor, "layer batch head query key"]]:
    """Return d loss / d A, in units of each input's loss, and the attention weights A."""
    weights: list[Tensor] = []
    with (
        torch.enable_grad(),
        prepared(checkpoint, watcher=lambda _, attended: weights.append(attended.detach())) as run,
    ):
        run.nudged = True
        logits = checkpoint.model(**model_inputs(checkpoint, encodings)).logits.float()
        slopes = torch.autograd.grad(loss_of(logits, labels), run.nudges)
    return by_layer(checkpoint, slopes), by_layer(checkpoint, weights)


def separator_slopes(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], labels: Sequence[int | float]
) -> SeparatorSlopes:
    """Return gradients with respect to attention to separators and to other tokens.

    Raises:
        CheckpointError: there is no classifier.
        InputError: there are no inputs, or not one label for each.
        InterventionError: weights cannot be reached.
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
