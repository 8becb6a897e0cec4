"""Components that write to the residual stream: embeddings, heads, sublayers and constants."""

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["token", "position", "segment", "head", "attention", "feed-forward", "bias", "last bias"]
COMPONENT_KINDS: tuple[Kind, ...] = (
    "position",
    "token",
    "segment",
    "head",
    "attention",
    "feed-forward",
    "bias",
    "last bias",
)


@dataclass(frozen=True)
class Contributor:
    """A component of a model that contributes to the residual stream, such as an embedding, head or bias.

    Attributes:
        kind: "token", "position" and "segment" embeddings, a "head", an "attention" sublayer (all its heads), a
            "feed-forward" sublayer, "bias" (all constants but the last) or "last bias" (of the projection to queries or
            keys and of the LayerNorm before it).
        is_spared: computed for the first input of a batch only; for other inputs it is the remainder.
    """

    kind: Kind
    layer: int | None = None
    head: int | None = None
    part: str = ""
    is_spared: bool = False

    @property
    def order(self) -> tuple[Any, ...]:
        """Return a sort key that orders components: embeddings first, then layer by layer, biases last."""
        is_bias = self.kind in ("bias", "last bias")
        return (
            is_bias,
            -1 if self.layer is None else self.layer,
            COMPONENT_KINDS.index(self.kind),
            self.part,
            self.head or 0,
        )

    @property
    def group(self) -> str:
        """Return the group of this component, such as "token", "heads of L2", "feed-forward of L3" or "rest"."""
        if self.kind in ("head", "attention"):
            return f"heads of {self.part} L{(self.layer or 0) + 1}".replace("  ", " ")
        return "rest" if self.kind in ("bias", "last bias") else self.label

    @property
    def merged_kind(self) -> str:
        """Return the kind of this component, with related kinds merged. Heads and attention sublayers are "earlier
        heads", and biases are "rest"."""
        names = {"head": "earlier heads", "attention": "earlier heads", "bias": "rest", "last bias": "rest"}
        return names.get(self.kind, self.kind)

    @property
    def label(self) -> str:
        """Return the name of this component as it is shown on pages, such as "L2H5" or "feed-forward of L3"."""
        stack = f"{self.part} " if self.part and self.layer is not None else ""
        if self.kind == "head":
            return f"{stack}L{(self.layer or 0) + 1}H{(self.head or 0) + 1}"
        if self.layer is not None:
            return f"{self.kind} of {stack}L{self.layer + 1}"
        return "own bias" if self.kind == "last bias" else self.kind


BIAS, LAST_BIAS = Contributor("bias"), Contributor("last bias")
