"""Errors for NaN or infinite attention scores and outputs, which name the layer and head."""

import torch
from jaxtyping import Float
from torch import Tensor

from ..attention import Head
from ..errors import CheckpointError


def refuse_no_number(
    layer: int, numbers: Float[Tensor, "head query"], what: str = "Attention scores", *, head: int = 0, query: int = 0
) -> None:
    """Raise CheckpointError if attention scores or outputs contain NaN or infinity, naming the layer, head and
    token."""
    if not bool(torch.isfinite(numbers).all()):
        row, place = torch.nonzero(~torch.isfinite(numbers))[0].tolist()
        raise CheckpointError(
            f"{what} must be finite numbers; {Head(layer, head + row)} has a NaN or infinite value at token "
            f"{query + place + 1}. The weights are damaged or too large for this dtype. Try float32."
        )


def refuse_no_query(layer: int, query: Float[Tensor, "batch head query dim"]) -> None:
    """Raise CheckpointError if a query vector contains NaN or infinity, for which SDPA on the CPU would return 0."""
    if query.device.type == "cpu" and not torch.isfinite(query.sum(dtype=torch.float32)):
        for sums in query.sum(-1, dtype=torch.float64):
            refuse_no_number(layer, sums)


def refuse_no_output(layer: int, output: Float[Tensor, "batch query head dim"]) -> None:
    """Raise CheckpointError if the output of a head contains NaN or infinity."""
    if output.device.type == "cpu" and not torch.isfinite(output.sum(dtype=torch.float32)):
        for sums in output.sum(-1, dtype=torch.float64).transpose(1, 2):
            refuse_no_number(layer, sums, "Outputs of attention heads")


def has_no_numbers(values: Tensor) -> bool:
    """Return whether a tensor contains NaN or +infinity. Logits of impossible tokens may be -infinity."""
    if not values.is_floating_point() or torch.isfinite(values.sum(dtype=torch.float32)):
        return False
    return bool((torch.isnan(values) | (values == float("inf"))).any())
