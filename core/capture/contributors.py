"""Who writes contributions to the residual stream: embeddings, heads, feed-forward blocks, constants."""

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["token", "position", "segment", "head", "attention", "feed-forward", "bias", "last bias"]
KINDS: tuple[Kind, ...] = ("position", "token", "segment", "head", "attention", "feed-forward", "bias", "last bias")


@dataclass(frozen=True)
class Component:
    """Who wrote a contribution.

    Attributes:
        kind: "token", "position" and "segment" embeddings, a "head", an "attention" block (its heads together), a
            "feed-forward" block, "bias" (every constant but the last) or "last bias" (of the head's own projection and
            of the LayerNorm before it).
        layer: of heads and blocks, zero-based; None for what has none.
        head: of a head, zero-based.
        part: which stack of an encoder-decoder; "" where there is one.
        is_spared: whether it was computed for a batch's first input alone, because the rest is told by difference.
    """

    kind: Kind
    layer: int | None = None
    head: int | None = None
    part: str = ""
    is_spared: bool = False

    @property
    def order(self) -> tuple[Any, ...]:
        """A key to sort by: embeddings first, then layer by layer, biases last."""
        is_bias = self.kind in ("bias", "last bias")
        return is_bias, -1 if self.layer is None else self.layer, KINDS.index(self.kind), self.part, self.head or 0

    @property
    def group(self) -> str:
        """What people call it together with its like: "position", "heads of L2", "feed-forward of L3", "rest"."""
        if self.kind in ("head", "attention"):
            return f"heads of {self.part} L{(self.layer or 0) + 1}".replace("  ", " ")
        return "rest" if self.kind in ("bias", "last bias") else self.label

    @property
    def sort(self) -> str:
        """What kind pages group it under: "position", "token", "segment", "earlier heads", "feed-forward" or "rest"."""
        names = {"head": "earlier heads", "attention": "earlier heads", "bias": "rest", "last bias": "rest"}
        return names.get(self.kind, self.kind)

    @property
    def label(self) -> str:
        """As pages name it, layers and heads from 1: "L2H5", "feed-forward of L3", "position"."""
        stack = f"{self.part} " if self.part and self.layer is not None else ""
        if self.kind == "head":
            return f"{stack}L{(self.layer or 0) + 1}H{(self.head or 0) + 1}"
        if self.layer is not None:
            return f"{self.kind} of {stack}L{self.layer + 1}"
        return "own bias" if self.kind == "last bias" else self.kind


BIAS, LAST_BIAS = Component("bias"), Component("last bias")
