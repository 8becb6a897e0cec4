"""Replacements for the outputs of heads within a stack: outputs under a fixed map, or from a source."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from ..models.encoding import Encoding
from .interventions import Given, Operator, StandInSource, pointing, uniform
from .outputs import Donors
from .running import batches
from .stacks import Block, Stack


def contributions(
    block: Block,
    mixed: Float[Tensor, "batch length head dim"],
    changed: Float[Tensor, "batch length head dim"],
) -> Float[Tensor, "head batch length hidden"]:
    """Return how replacing the output of each head changes the residual stream: (changed_h - original_h) W_h."""
    difference = (changed - mixed).permute(2, 0, 1, 3)
    heads, batch, length, dim = difference.shape
    flat = torch.bmm(difference.reshape(heads, batch * length, dim), block.separate["out"])
    return flat.view(heads, batch, length, -1)


def single_position(
    block: Block, x: Float[Tensor, "batch length hidden"], position: int, fixed: Float[Tensor, "query key"]
) -> tuple[Float[Tensor, "batch head dim"], Float[Tensor, "batch head dim"]]:
    """Return head outputs at one position: first with the attention of the heads, then with a fixed attention map.

    Keys and values are not computed for all tokens: q . (W_k x) = (W_k^T q) . x, and weights are summed over x before
    W_v. The bias of keys adds the same to every score, so it has no effect. The query at `position` must see every key;
    only its row of `fixed` is read.
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


@runtime_checkable
class StandIn(Protocol):
    """Interface for the outputs of heads after an ablation, for inputs of equal length. The axis `rows` contains all
    inputs for the first ablation target, then all inputs for the next target, and so on."""

    def outputs(
        self, layer: int, mixed: Float[Tensor, "rows length head dim"], values: Float[Tensor, "rows head length dim"]
    ) -> Float[Tensor, "rows length head dim"]:
        """Return the output (before W_O) of every head in one layer after the ablation."""

    def outputs_at(
        self, block: Block, x: Float[Tensor, "rows length hidden"], position: int
    ) -> tuple[Float[Tensor, "rows head dim"], Float[Tensor, "rows head dim"]]:
        """Return the outputs of heads in the last layer at one position, before and after the ablation."""


@dataclass(frozen=True)
class FixedMap:
    """The fixed attention map of every head under an ablation method. Each row sums to 1, or to 0 for "zero"."""

    rows: Float[Tensor, "query key"]

    def outputs(self, layer: int, mixed: Tensor, values: Tensor) -> Tensor:
        return torch.matmul(self.rows.to(values.dtype), values).transpose(1, 2)

    def outputs_at(self, block: Block, x: Tensor, position: int) -> tuple[Tensor, Tensor]:
        return single_position(block, x, position, self.rows)


@dataclass(frozen=True)
class GivenOutputs:
    """Replacement outputs of heads for one batch, such as their mean outputs."""

    batch: Given

    def outputs(self, layer: int, mixed: Tensor, values: Tensor) -> Tensor:
        given, places = self.batch.outputs[layer].to(mixed), self.batch.places
        times = len(mixed) // len(given)
        given = given if times == 1 else given.repeat(times, 1, 1, 1)
        if places is None:
            return given
        return torch.where(places.to(mixed.device).repeat(times, 1)[:, :, None, None], given, mixed)

    def outputs_at(self, block: Block, x: Tensor, position: int) -> tuple[Tensor, Tensor]:
        own, _ = single_position(block, x, position, x.new_zeros(x.shape[1], x.shape[1], dtype=torch.float32))
        times = len(x) // self.batch.outputs.shape[1]
        given = self.batch.outputs[-1][:, position].to(own).repeat(times, 1, 1)
        if self.batch.places is None:
            return own, given
        return own, torch.where(self.batch.places[:, position].to(own.device).repeat(times)[:, None, None], given, own)


def stand_in(
    stack: Stack, encodings: Sequence[Encoding], inputs: Sequence[int], operator: Operator, source: StandInSource | None
) -> StandIn:
    """Return the replacement outputs of heads under an ablation method, for inputs of equal length."""
    if isinstance(source, Donors):
        return GivenOutputs(source.resampled(encodings, lambda donors: stack_outputs(stack, donors)))
    if source is not None:
        return GivenOutputs(source.given(encodings, inputs))
    visible = stack.visible(len(encodings[0]), stack.device)
    if operator == "zero":
        return FixedMap(torch.zeros(visible.shape[2:], device=visible.device))
    return FixedMap((uniform(visible) if operator == "disable" else pointing(operator, visible))[0, 0])


def last_outputs(
    stack: Stack, changed: StandIn, x: Float[Tensor, "rows length hidden"]
) -> tuple[Float[Tensor, "rows position head dim"], Float[Tensor, "rows position head dim"]]:
    """Return the outputs of heads in the last layer before and after a change, at the positions that the output layer
    of the model reads."""
    block, position = stack.blocks[-1], stack.position(x.shape[1])
    if position is not None:
        at_one = changed.outputs_at(block, x, position)
        return at_one[0][:, None], at_one[1][:, None]
    mixed, values = block.mixed_of(x, stack.causal)
    return mixed, changed.outputs(len(stack.blocks) - 1, mixed, values)


def stack_outputs(stack: Stack, encodings: Sequence[Encoding]) -> list[Float[Tensor, "layer _ head dim"]]:
    """Return the outputs of all heads (before W_O) for every input, computed with a stack."""
    kept: dict[int, Tensor] = {}
    for inputs in batches(encodings):
        x, outputs = stack.embed([encodings[k] for k in inputs]), []
        for block in stack.blocks:
            outputs.append(block.mixed_of(x, stack.causal)[0])
            x = block.after(block.joined(outputs[-1], x)) if block is not stack.blocks[-1] else x
        every = torch.stack(outputs)
        kept |= {k: every[:, row] for row, k in enumerate(inputs)}
    return [kept[k] for k in range(len(encodings))]
