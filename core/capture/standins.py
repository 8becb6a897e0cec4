"""What stands in for heads' outputs inside a stack: those under a fixed map, or those that a source gave."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from ..models.encoding import Encoding
from .head_replacement import changed_mixture, fixed_rows, single_position
from .interventions import Given, Operator, StandInSource
from .outputs import Donors
from .running import batches
from .stacks import Block, Stack


@runtime_checkable
class StandIn(Protocol):
    """What heads give out when they are changed, on a batch of inputs of one length or on any number of its variants.

    Rows are then variants times inputs, variants outermost.
    """

    def outputs(
        self, layer: int, mixed: Float[Tensor, "rows length head dim"], values: Float[Tensor, "rows head length dim"]
    ) -> Float[Tensor, "rows length head dim"]:
        """Every head's output in this layer if it were changed.

        Args:
            layer: from 0.

        Returns:
            Before W_O, in the dtype of `mixed`.
        """

    def outputs_at(
        self, block: Block, x: Float[Tensor, "rows length hidden"], position: int
    ) -> tuple[Float[Tensor, "rows head dim"], Float[Tensor, "rows head dim"]]:
        """The last layer's heads' outputs at one position, own and changed.

        Args:
            position: the one that is read, from 0.
        """


@dataclass(frozen=True)
class FixedMap:
    """Attention as an operator fixes it.

    Attributes:
        rows: the map; rows sum to 1, or to 0 for "zero".
    """

    rows: Float[Tensor, "query key"]

    def outputs(self, layer: int, mixed: Tensor, values: Tensor) -> Tensor:
        """The values mixed by the map."""
        return changed_mixture(values, self.rows)

    def outputs_at(self, block: Block, x: Tensor, position: int) -> tuple[Tensor, Tensor]:
        """The heads' own outputs, and those under the map."""
        return single_position(block, x, position, self.rows)


@dataclass(frozen=True)
class GivenOutputs:
    """Outputs that a source gave for the batch."""

    batch: Given

    def outputs(self, layer: int, mixed: Tensor, values: Tensor) -> Tensor:
        """The given outputs where they hold, the heads' own elsewhere."""
        given, places = self.batch.outputs[layer].to(mixed), self.batch.places
        times = len(mixed) // len(given)
        given = given if times == 1 else given.repeat(times, 1, 1, 1)
        if places is None:
            return given
        return torch.where(places.to(mixed.device).repeat(times, 1)[:, :, None, None], given, mixed)

    def outputs_at(self, block: Block, x: Tensor, position: int) -> tuple[Tensor, Tensor]:
        """The heads' own outputs, and the given ones where they hold."""
        own, _ = single_position(block, x, position, x.new_zeros(x.shape[1], x.shape[1], dtype=torch.float32))
        times = len(x) // self.batch.outputs.shape[1]
        given = self.batch.outputs[-1][:, position].to(own).repeat(times, 1, 1)
        if self.batch.places is None:
            return own, given
        return own, torch.where(self.batch.places[:, position].to(own.device).repeat(times)[:, None, None], given, own)


def stand_in(
    stack: Stack, encodings: Sequence[Encoding], inputs: Sequence[int], operator: Operator, source: StandInSource | None
) -> StandIn:
    """What an operator puts in place of heads' outputs on inputs of one length.

    Args:
        source: of the operators that need one; a resample's donors run through the stack.
    """
    if isinstance(source, Donors):
        return GivenOutputs(source.taken(encodings, lambda donors: stack_outputs(stack, donors)))
    if source is not None:
        return GivenOutputs(source.given(encodings, inputs))
    length = len(encodings[0])
    return FixedMap(fixed_rows(operator, stack.visible(length, stack.device)))


def last_outputs(
    stack: Stack, changed: StandIn, x: Float[Tensor, "rows length hidden"]
) -> tuple[Float[Tensor, "rows position head dim"], Float[Tensor, "rows position head dim"]]:
    """The last layer's heads' outputs at the positions that are read."""
    block, position = stack.blocks[-1], stack.position(x.shape[1])
    if position is not None:
        at_one = changed.outputs_at(block, x, position)
        return at_one[0][:, None], at_one[1][:, None]
    mixed, values = block.mixed_of(x, stack.causal)
    return mixed, changed.outputs(len(stack.blocks) - 1, mixed, values)


def stack_outputs(stack: Stack, encodings: Sequence[Encoding]) -> list[Float[Tensor, "layer _ head dim"]]:
    """Every input's heads' outputs, as `core.capture.outputs.head_outputs` but from the stack.

    Returns:
        One tensor an input, before W_O, in the stack's dtype.
    """
    kept: dict[int, Tensor] = {}
    for inputs in batches(encodings):
        x, outputs = stack.embed([encodings[k] for k in inputs]), []
        for block in stack.blocks:
            outputs.append(block.mixed_of(x, stack.causal)[0])
            x = block.after(block.joined(outputs[-1], x)) if block is not stack.blocks[-1] else x
        every = torch.stack(outputs)
        kept |= {k: every[:, row] for row, k in enumerate(inputs)}
    return [kept[k] for k in range(len(encodings))]
