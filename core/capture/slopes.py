"""How fast the loss moves with each attention weight: |d loss / d A[layer, head, query, key]| (Clark et al. 2019, 3.2).

A zero is added to every weight after the softmax, so the gradient is that of the weight itself, as in the paper, not
of the score behind it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from core.capture.importance import check_labels, loss_of
from core.capture.running import batches, model_inputs, prepared
from core.models.checkpoint import Checkpoint
from core.models.encoding import Encoding

BATCH_TOKENS = 1024


@dataclass(frozen=True)
class SeparatorSlopes:
    """Means over heads, queries and such keys, one number an input [layer, input]; NaN for inputs without separators.

    to_separator, to_other: |d loss / d A| for keys that are separators and for all others. weight: attention on all
    separators together, mean over heads and queries. In causal models only keys that the query sees count.
    """

    to_separator: Float[Tensor, "layer input"]
    to_other: Float[Tensor, "layer input"]
    weight: Float[Tensor, "layer input"]


def weight_slopes(
    checkpoint: Checkpoint, some: Sequence[Encoding], labels: Sequence[int | float]
) -> tuple[Float[Tensor, "layer batch head query key"], Float[Tensor, "layer batch head query key"]]:
    """d loss / d A and A of inputs of one length; the loss of each input is its own."""
    weights: list[Tensor] = []
    with (
        torch.enable_grad(),
        prepared(checkpoint, watcher=lambda _, attended: weights.append(attended.detach())) as run,
    ):
        run.nudged = True
        logits = checkpoint.model(**model_inputs(checkpoint, some)).logits.float()
        slopes = torch.autograd.grad(loss_of(logits, labels), run.nudges)
    return torch.stack(slopes), torch.stack(weights)


def separator_slopes(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], labels: Sequence[int | float]
) -> SeparatorSlopes:
    """Gradients with respect to attention to separators and to other tokens. labels: as in `gradients`.

    Raises InputError, CheckpointError without a classifier, InterventionError where weights cannot be reached.
    """
    check_labels(checkpoint, encodings, labels)
    figures = torch.full((3, checkpoint.layers, len(encodings)), float("nan"), dtype=torch.float64)
    for inputs in batches(encodings, BATCH_TOKENS):
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
