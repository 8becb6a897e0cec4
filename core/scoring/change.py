"""How much each head's maps change between two checkpoints on the same input (Kovaleva et al. 2019, 4.3, Fig 5).

Maps are cropped to real tokens, unlike the paper's notebook, where padding queries of 200x200 maps swamp the rest. A
causal model keeps most of its weight on the first token before and after, which makes any two maps look alike, so its
numbers are also given without that column.
"""

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from .intervals import Means

STATISTICS = ("cosine", "divergence")
WITHOUT_SINK = ("cosine_without_first", "divergence_without_first")
ROWS_KEPT = 5  # per head, those that changed most


def cosine(
    before: Float[Tensor, "batch head query key"], after: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "batch head"]:
    """cos(flatten(A_before), flatten(A_after)) of every head.

    Args:
        before: attention weights, rows sum to 1.
        after: the same of the other checkpoint on the same inputs.

    Returns:
        float64. *Range:* 0 (no place in common) to 1 (the same). NaN for an empty or all-zero map.
    """
    old, new = before.flatten(-2).double(), after.flatten(-2).double()
    return (old * new).sum(-1) / (old.norm(dim=-1) * new.norm(dim=-1))


def divergence(
    before: Float[Tensor, "batch head query key"], after: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "batch head"]:
    """Mean over queries of JS(P, Q) = H((P + Q) / 2) - (H(P) + H(Q)) / 2 of every head, in nats.

    Args:
        before: attention weights, rows sum to 1.
        after: the same of the other checkpoint on the same inputs.

    Returns:
        float64. *Range:* 0 (the same) to ln 2 (nothing shared). NaN for an empty map.
    """
    old, new = before.double(), after.double()
    entropy = torch.special.entr
    rows = entropy((old + new) / 2).sum(-1) - (entropy(old).sum(-1) + entropy(new).sum(-1)) / 2
    return rows.clamp_min(0).mean(-1)


def without_first(weights: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head rest rest"]:
    """A causal map without the first token as query and key; each row is scaled to sum to 1 again.

    A row whose whole weight lay on the first token has nothing left and becomes uniform over what it may see, so that
    two such rows do not differ.

    Args:
        weights: attention weights of a causal model, rows sum to 1.

    Returns:
        float64, rows sum to 1. Empty where there is one token only.
    """
    without_sink = weights[..., 1:, 1:].double()
    total = without_sink.sum(-1, keepdim=True)
    visible = torch.ones_like(without_sink).tril()
    return torch.where(total > 1e-9, without_sink / total.clamp_min(1e-9), visible / visible.sum(-1, keepdim=True))


class Change:
    """Means over inputs of every statistic per head and per layer, with intervals, and the rows that changed most.

    An accumulator: `update` a layer of a batch, `merge` others over other inputs, `packed` for JSON.
    """

    def __init__(self, layers: int, heads: int, *, causal: bool) -> None:
        self.statistics = STATISTICS + (WITHOUT_SINK if causal else ())
        self.heads = Means(layers, heads, len(self.statistics))
        self.layers = Means(layers, 1, len(self.statistics))
        self.lowest: dict[tuple[int, int], list[tuple[float, str]]] = {}

    def update(
        self,
        layer: int,
        before: Float[Tensor, "batch head query key"],
        after: Float[Tensor, "batch head query key"],
        numbers: Sequence[int],
        names: Sequence[str],
    ) -> None:
        """Compare one layer's maps of a batch.

        Args:
            layer: from 0.
            before: attention weights of inputs of one length, rows sum to 1.
            numbers: the inputs' places in the study, which say their group of `Means`.
            names: the inputs' row ids, for the rows that changed most.
        """
        measures = [cosine(before, after), divergence(before, after)]
        if len(self.statistics) > len(STATISTICS):
            old, new = without_first(before), without_first(after)
            measures += [cosine(old, new), divergence(old, new)]
        values = torch.stack(measures, -1).cpu().numpy()  # [batch, head, statistic]
        counts = np.isfinite(values).all(1).astype(float)
        self.heads.update(layer, values, counts, numbers)
        self.layers.update(layer, values.mean(1, keepdims=True), counts, numbers)
        for head in range(values.shape[1]):
            pairs = [(float(v), name) for v, name in zip(values[:, head, 0], names, strict=True) if np.isfinite(v)]
            self._keep(layer, head, pairs)

    def _keep(self, layer: int, head: int, pairs: list[tuple[float, str]]) -> None:
        self.lowest[layer, head] = heapq.nsmallest(ROWS_KEPT, self.lowest.get((layer, head), []) + pairs)

    def merge(self, other: "Change") -> None:
        """Add what another accumulator saw of other inputs, to this one in place."""
        self.heads.merge(other.heads)
        self.layers.merge(other.layers)
        for (layer, head), pairs in other.lowest.items():
            self._keep(layer, head, pairs)

    def packed(self) -> dict[str, Any]:
        """All sums and the rows that changed most, fit for JSON."""
        lowest = [[layer, head, pairs] for (layer, head), pairs in self.lowest.items()]
        causal = len(self.statistics) > len(STATISTICS)
        return {"heads": self.heads.packed(), "layers": self.layers.packed(), "lowest": lowest, "causal": causal}

    @classmethod
    def unpacked(cls, stored: dict[str, Any]) -> "Change":
        """The accumulator that `packed` wrote."""
        restored = cls(1, 1, causal=stored["causal"])
        restored.heads, restored.layers = Means.unpacked(stored["heads"]), Means.unpacked(stored["layers"])
        for layer, head, pairs in stored["lowest"]:
            restored.lowest[layer, head] = [(value, name) for value, name in pairs]
        return restored
