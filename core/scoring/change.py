"""Change of the attention maps of each head between two checkpoints on the same input (Kovaleva et al. 2019, 4.3, Fig
5).

Maps are cropped to real tokens; in the notebook of the paper, padding queries of 200x200 maps dominate. Causal models
attend mostly to the first token, which makes any two maps similar; their values are also computed without it.
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
ROWS_KEPT = 5  # for each head, the rows that changed most


def cosine(
    before: Float[Tensor, "batch head query key"], after: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "batch head"]:
    """Return the cosine similarity between each flattened map before and after a change, as float64. NaN if a map
    contains only zeros."""
    old, new = before.flatten(-2).double(), after.flatten(-2).double()
    return (old * new).sum(-1) / (old.norm(dim=-1) * new.norm(dim=-1))


def divergence(
    before: Float[Tensor, "batch head query key"], after: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "batch head"]:
    """Return the Jensen-Shannon divergence between maps, H((P + Q) / 2) - (H(P) + H(Q)) / 2, averaged over queries. The
    unit is nats (0 to ln 2), and the dtype is float64. NaN for an empty map."""
    old, new = before.double(), after.double()
    entropy = torch.special.entr
    rows = entropy((old + new) / 2).sum(-1) - (entropy(old).sum(-1) + entropy(new).sum(-1)) / 2
    return rows.clamp_min(0).mean(-1)


def without_first(weights: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head rest rest"]:
    """Return a causal map without the row and column of the first token, as float64. Each row is then rescaled to sum
    to 1.

    Rows whose whole weight was on the first token become uniform over the visible keys. Empty for a single token.
    """
    without_sink = weights[..., 1:, 1:].double()
    total = without_sink.sum(-1, keepdim=True)
    visible = torch.ones_like(without_sink).tril()
    return torch.where(total > 1e-9, without_sink / total.clamp_min(1e-9), visible / visible.sum(-1, keepdim=True))


class Change:
    """An accumulator for attention changes between two checkpoints. It also stores the inputs that change most."""

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
        """Add the changes in the attention maps of one layer, for a batch of inputs with equal length. `numbers` are
        the indices of the inputs in the study, and `names` are their example IDs."""
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

    def merge(self, other: "Change") -> "Change":
        """Add the sums of another accumulator to this accumulator in place."""
        self.heads.merge(other.heads)
        self.layers.merge(other.layers)
        for (layer, head), pairs in other.lowest.items():
            self._keep(layer, head, pairs)
        return self

    def packed(self) -> dict[str, Any]:
        """Return the accumulated sums and the inputs with the largest changes as a JSON-serialisable dictionary."""
        lowest = [[layer, head, pairs] for (layer, head), pairs in self.lowest.items()]
        causal = len(self.statistics) > len(STATISTICS)
        return {"heads": self.heads.packed(), "layers": self.layers.packed(), "lowest": lowest, "causal": causal}

    @classmethod
    def unpacked(cls, stored: dict[str, Any]) -> "Change":
        restored = cls(1, 1, causal=stored["causal"])
        restored.heads, restored.layers = Means.unpacked(stored["heads"]), Means.unpacked(stored["layers"])
        for layer, head, pairs in stored["lowest"]:
            restored.lowest[layer, head] = [(value, name) for value, name in pairs]
        return restored
