"""How fast the loss moves with each attention weight: |d loss / d A[layer, head, query, key]| (Clark et al. 2019, 3.2).

A zero is added to every weight after the softmax, so the gradient is that of the weight itself, as in the paper, not
of the score behind it.
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
    """Means over heads, queries and such keys, float64; NaN for inputs without separators.

    In causal models only keys that the query sees count.

    Attributes:
        to_separator: |d loss / d A| for keys that are separators, 0 and up.
        to_other: the same for all other keys; NaN where there is none.
        weight: attention on all separators together, mean over heads and queries. *Range:* 0 to 1.
    """

    to_separator: Float[Tensor, "layer input"]
    to_other: Float[Tensor, "layer input"]
    weight: Float[Tensor, "layer input"]


def weight_slopes(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], labels: Sequence[int | float]
) -> tuple[Float[Tensor, "layer batch head query key"], Float[Tensor, "layer batch head query key"]]:
    """d loss / d A and A, the attention weights; the loss of each input is its own.

    Args:
        labels: one an input, as in `gradients`.

    Returns:
        The derivatives, in units of the loss, then the weights, whose rows sum to 1.
    """
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
    """Gradients with respect to attention to separators and to other tokens.

    Args:
        labels: one an input, as in `gradients`.

    Raises:
        CheckpointError: without a classifier.
        InputError: there are no inputs, or not one label an input.
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
