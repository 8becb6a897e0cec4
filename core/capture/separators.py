"""How much of what attention adds comes from separators: shares of norms |alpha f(x)| (Kobayashi et al. 2020).

A separator may have most of the weight and yet add little, where its transformed value f(x) is small.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .norms import run_norms


def separator_norms(checkpoint: Checkpoint, encodings: Sequence[Encoding]) -> Float[Tensor, "layer input"]:
    """Of each query's norms |alpha f(x)| the share on all separators together, mean over heads and queries.

    Returns:
        Float64. *Range:* 0 to 1. NaN for inputs without separators, and everywhere in families whose values cannot be
        reached.
    """
    shares = torch.full((checkpoint.layers, len(encodings)), float("nan"), dtype=torch.float64)

    class Separators:
        def update(self, layer: int, weights: Tensor, inputs: list[int]) -> None:
            for row, k in enumerate(inputs):
                if encodings[k].separators:
                    on = weights[row][..., list(encodings[k].separators)].double().sum(-1)
                    shares[layer, k] = on.mean().cpu()

    try:
        run_norms(checkpoint, encodings, [Separators()])
    except InputError:
        return torch.full_like(shares, float("nan"))
    return shares
