"""The words everything else uses: a head, the axes, and attention maps that were checked once.

Rows are queries and sum to 1; a vertical stripe is a key column. Layers, heads and tokens count from 0 here
and in the store; only what a person reads ("L1 H2") counts from 1, like the papers.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from core.errors import InputError

AXES = ("layer", "head", "query", "key")
ROW_SUM_TOLERANCE = 1e-3  # float16 maps of 512 keys stay within it; dropout and padding do not

_NAME = re.compile(r"^\s*L\s*(\d+)\s*[-. ]?\s*H\s*(\d+)\s*$", re.IGNORECASE)


class Head(NamedTuple):
    """One attention head, zero-based. `str(Head(6, 5))` is the papers' "L7H6"."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer + 1}H{self.head + 1}"

    @classmethod
    def parse(cls, name: str) -> "Head":
        """Read "L7H6" (one-based, any case, spaces allowed)."""
        found = _NAME.match(name)
        if not found or "0" in (found[1].lstrip("0") or "0", found[2].lstrip("0") or "0"):
            raise InputError(f'A head is named like L7H6, counted from 1; "{name}" is not: give layer and head.')
        return cls(int(found[1]) - 1, int(found[2]) - 1)

    def within(self, layers: int, heads: int) -> "Head":
        """This head, or an InputError when a model of `layers` x `heads` has no such head."""
        if not (0 <= self.layer < layers and 0 <= self.head < heads):
            raise InputError(
                f"This checkpoint has {layers} layers of {heads} heads, so there is no {self}; "
                f"choose between L1H1 and {Head(layers - 1, heads - 1)}."
            )
        return self


def parse_heads(names: str) -> list[Head]:
    """Read "L1H2,L7H6"; an empty text is no heads."""
    return [Head.parse(name) for name in names.split(",") if name.strip()]


@dataclass(frozen=True)
class AttentionMaps:
    """Attention maps of one input: weights [layer, head, query, key], float32, cropped to its real tokens.

    tokens: one text a position, as the tokenizer spells it. segments: 0 or 1 a position. causal: whether
    keys behind the query are invisible (then those weights are 0). Checked on construction; errors name the
    layer, head and query where it failed.
    """

    weights: np.ndarray  # shape checked below, with a sentence for people
    tokens: tuple[str, ...]
    segments: tuple[int, ...]
    causal: bool = False

    def __post_init__(self) -> None:
        shape = self.weights.shape
        if len(shape) != 4 or shape[2] != shape[3]:
            raise InputError(f"Attention maps have the axes {AXES} with as many queries as keys; seen {shape}.")
        if not len(self.tokens) == len(self.segments) == shape[2]:
            raise InputError(
                f"Maps of {shape[2]} positions need as many tokens and segments; seen "
                f"{len(self.tokens)} and {len(self.segments)}."
            )
        sums = self.weights.sum(-1, dtype=np.float64)
        off = np.abs(sums - 1)
        if not off.max(initial=0) <= ROW_SUM_TOLERANCE:
            layer, head, query = np.unravel_index(np.nanargmax(np.where(np.isnan(off), np.inf, off)), off.shape)
            raise InputError(
                f"Every row of an attention map sums to 1; {Head(int(layer), int(head))} query {query} "
                f"sums to {sums[layer, head, query]:.3f} (dropout on, or padding not cropped?)."
            )

    @property
    def layers(self) -> int:
        return self.weights.shape[0]

    @property
    def heads(self) -> int:
        return self.weights.shape[1]

    def __len__(self) -> int:
        return self.weights.shape[2]

    def of(self, head: Head) -> Float[np.ndarray, "length length"]:
        """The map of one head [query, key]."""
        return self.weights[head.within(self.layers, self.heads)]
