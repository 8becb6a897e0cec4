"""What can be taken away from a model besides a head: a layer's attention block, its feed-forward block, the layer.

A head is `core.attention.Head`; a `LayerBlock` is one of the others. "Off" leaves the residual stream as it came, so a
block adds nothing and a whole layer is the identity. In families with the LayerNorm behind a block (BERT) that
LayerNorm stays when the block is off; a layer that is off has none.
"""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, cast, get_args

from ..attention import Head
from ..errors import InputError

PartKind = Literal["attention", "feedforward", "layer"]
PART_KINDS: tuple[str, ...] = get_args(PartKind)
SHOWN = {"attention": "attention block", "feedforward": "feed-forward block", "layer": "whole layer"}

_NAME = re.compile(r"^L(\d{1,9})[ -]?(attention|feedforward|layer)$", re.IGNORECASE)


class LayerBlock(NamedTuple):
    """A block of one layer (zero-based), or all of it. `str(LayerBlock(2, "attention"))` is "L3-attention"."""

    layer: int
    kind: PartKind

    def __str__(self) -> str:
        return f"L{self.layer + 1}-{self.kind}"

    @classmethod
    def parse(cls, name: str) -> "LayerBlock":
        """Read "L3-attention" (one-based, any case)."""
        read = _NAME.match(name.strip())
        if not read or int(read[1]) == 0:
            raise InputError(
                f'A block is named like L3-attention, L3-feedforward or L3-layer, counted from 1; "{name[:40]}" is not.'
            )
        return cls(int(read[1]) - 1, cast(PartKind, read[2].lower()))

    def within(self, layers: int, heads: int) -> "LayerBlock":
        """The block itself. Raises InputError where a model of `layers` layers has none such."""
        if not 0 <= self.layer < layers:
            raise InputError(f"This checkpoint has {layers} layers, so there is no {self}: choose L1 to L{layers}.")
        return self


Component = Head | LayerBlock


def parse_components(names: str) -> list[Component]:
    """Read "L1H2,L3-attention"; an empty text is none."""
    parts = [name.strip() for name in names.split(",") if name.strip()]
    return [LayerBlock.parse(name) if "-" in name else Head.parse(name) for name in parts]


def every_part(layers: int, kinds: Iterable[str]) -> list[LayerBlock]:
    """The blocks of these kinds, layer by layer. Raises InputError for an unknown kind."""
    wanted = list(kinds)
    if unknown := [kind for kind in wanted if kind not in PART_KINDS]:
        raise InputError(f'A part of a layer is one of {", ".join(PART_KINDS)}; "{unknown[0]}" is none of them.')
    return [LayerBlock(layer, cast(PartKind, kind)) for layer in range(layers) for kind in wanted]
