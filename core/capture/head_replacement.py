"""Heads' outputs in a layer of a stack when an operator fixes their map, and what that adds to the residual stream."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .interventions import Operator, pointing, uniform
from .stacks import Block


def fixed_rows(operator: Operator, visible: Bool[Tensor, "1 1 query key"]) -> Float[Tensor, "query key"]:
    """The map that an operator puts in place of a head's own.

    Args:
        operator: "zero", or one on attention.

    Returns:
        Rows sum to 1; of "zero" to 0.
    """
    if operator == "zero":
        return torch.zeros(visible.shape[2:], device=visible.device)
    return (uniform(visible) if operator == "disable" else pointing(operator, visible))[0, 0]


def changed_mixture(
    values: Float[Tensor, "batch head length dim"], fixed: Float[Tensor, "query key"]
) -> Float[Tensor, "batch length head dim"]:
    """What every head would give out if it had the fixed map."""
    return torch.matmul(fixed.to(values.dtype), values).transpose(1, 2)


def contributions(
    block: Block,
    mixed: Float[Tensor, "batch length head dim"],
    changed: Float[Tensor, "batch length head dim"],
) -> Float[Tensor, "head batch length hidden"]:
    """What replacing each head's output adds to the residual stream: (changed_h - mixed_h) W_h."""
    difference = (changed - mixed).permute(2, 0, 1, 3)
    heads, batch, length, dim = difference.shape
    flat = torch.bmm(difference.reshape(heads, batch * length, dim), block.separate["out"])
    return flat.view(heads, batch, length, -1)


def single_position(
    block: Block, x: Float[Tensor, "batch length hidden"], position: int, fixed: Float[Tensor, "query key"]
) -> tuple[Float[Tensor, "batch head dim"], Float[Tensor, "batch head dim"]]:
    """Heads' outputs at one position: their own, and under a fixed map.

    Neither keys nor values are computed for all tokens: q . (W_k x) = (W_k^T q) . x, and the weights are summed over x
    before W_v. The key's bias adds the same to every score, so it drops out of the softmax.

    Args:
        block: a layer whose query at `position` sees every key.
        position: the query, from 0.
        fixed: the map; only the row of `position` is read.
    """
    seen, raw = block.seen(x), block.separate
    query = torch.einsum("bi,hdi->bhd", seen[:, position], raw["query"]) + raw["query_bias"]
    asked = torch.einsum("bhd,hdi->bhi", query, raw["key"]) * query.shape[-1] ** -0.5
    weights = torch.softmax(
        torch.bmm(asked, seen.transpose(1, 2)).to(torch.promote_types(seen.dtype, torch.float32)), -1
    ).to(seen.dtype)
    summed = torch.bmm(torch.cat([weights, fixed[position].to(seen.dtype).expand_as(weights)[:, :1]], 1), seen)
    own = torch.einsum("bhi,hdi->bhd", summed[:, :-1], raw["value"]) + raw["value_bias"]
    replaced = torch.einsum("bi,hdi->bhd", summed[:, -1], raw["value"]) + raw["value_bias"] * fixed[position].sum()
    return own, replaced.to(own.dtype)
