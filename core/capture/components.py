"""Components that can be ablated besides heads: attention sublayers, feed-forward sublayers and layers.

An ablated sublayer adds nothing to the residual stream; an ablated layer is the identity. In models with the LayerNorm
after a sublayer (BERT), this LayerNorm is still applied when the sublayer is ablated.
"""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, cast, get_args

from ..attention import Head
from ..errors import InputError, check_choice

PartKind = Literal["attention", "feedforward", "layer"]
PART_KINDS: tuple[str, ...] = get_args(PartKind)
SHOWN = {"attention": "attention block", "feedforward": "feed-forward block", "layer": "whole layer"}

_NAME = re.compile(r"^L(\d{1,9})[ -]?(attention|feedforward|layer)$", re.IGNORECASE)


class LayerBlock(NamedTuple):
    """A sublayer of one layer (zero-based), or the whole layer. `str(LayerBlock(2, "attention"))` is "L3-attention"."""

    layer: int
    kind: PartKind

    def __str__(self) -> str:
        return f"L{self.layer + 1}-{self.kind}"

    @classmethod
    def parse(cls, name: str) -> "LayerBlock":
        """Parse the name of a sublayer or layer, such as "L3-attention" (one-based, any case)."""
        read = _NAME.match(name.strip())
        if not read or int(read[1]) == 0:
            raise InputError(
                "A sublayer or layer must be named like L3-attention, L3-feedforward or L3-layer, with layers "
                f'counted from 1; got "{name[:40]}". Correct the name.'
            )
        return cls(int(read[1]) - 1, cast(PartKind, read[2].lower()))

    def within(self, layers: int, heads: int) -> "LayerBlock":
        """Return this component. Raises InputError if a model with this number of layers does not have it."""
        if not 0 <= self.layer < layers:
            raise InputError(
                f"A layer of this checkpoint must be from L1 to L{layers}; got {self}. Choose one of these layers."
            )
        return self


Component = Head | LayerBlock


def parse_components(names: str) -> list[Component]:
    """Parse comma-separated names of heads and sublayers, such as "L1H2,L3-attention"."""
    parts = [name.strip() for name in names.split(",") if name.strip()]
    return [LayerBlock.parse(name) if "-" in name else Head.parse(name) for name in parts]


def every_part(layers: int, kinds: Iterable[str]) -> list[LayerBlock]:
    """Return the sublayers or layers of the given kinds, layer by layer. Raises InputError for an unknown kind."""
    wanted = list(kinds)
    check_choice("A component of a layer", wanted, PART_KINDS)
    return [LayerBlock(layer, cast(PartKind, kind)) for layer in range(layers) for kind in wanted]
