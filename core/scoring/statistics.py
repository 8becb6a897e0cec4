"""What every head does whatever the words are: entropy, where its mass goes, how far it looks (Clark et al. 2019, 3).

One number per input and head, then the mean over inputs; a statistic that an input has not (no separator, one token)
leaves that input out. All but the two below are defined in `core.scoring.heads`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from core.scoring.definitions import STATISTICS
from core.scoring.heads import mean_of_rows, normalised_mean, row_entropies, to_keys, to_offset
from core.scoring.intervals import Means


@dataclass(frozen=True)
class Places:
    """What the statistics ask of an input: separators, and the position that classifies. first: [CLS] / start."""

    first: int
    separators: tuple[int, ...]
    classifying: int


def mean_distance(weights: Float[Tensor, "*heads query key"], *, causal: bool = False) -> Float[Tensor, "*heads"]:
    """Mean over queries i of sum_j A[i, j] |i - j|, in tokens; range 0 to length - 1.

    causal: without query 0, which can look at itself alone; NaN for one token.
    """
    place = torch.arange(weights.shape[-1], device=weights.device, dtype=weights.dtype)
    gaps = (place[:, None] - place).abs().flatten()  # query 0 of a causal map adds nothing
    queries = len(place) - 1 if causal else len(place)
    return weights.flatten(-2) @ gaps / (queries or float("nan"))


class HeadStatistics:
    """Observer: the mean over inputs of every statistic of STATISTICS, [layer, head, statistic], with its draws."""

    def __init__(self, layers: int, heads: int, *, causal: bool):
        self.causal = causal
        self.means = Means(layers, heads, len(STATISTICS))
        self._places: Sequence[Places] = ()
        self._numbers: Sequence[int] = ()

    def take(self, places: Sequence[Places], numbers: Sequence[int]) -> "HeadStatistics":
        """The inputs of the next run, and their numbers in the whole study."""
        self._places, self._numbers = places, numbers
        return self

    def update(self, layer: int, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        """Reduce one layer's maps."""
        some = [self._places[k] for k in inputs]
        found = self._of(weights, some)
        values = torch.stack([found[name] for name in STATISTICS], -1).double().cpu().numpy()
        counts = (~np.isnan(values[:, 0])).astype(float)  # an input has a statistic for all heads or for none
        self.means.update(layer, values, counts, [self._numbers[k] for k in inputs])

    def _of(self, weights: Tensor, some: list[Places]) -> dict[str, Tensor]:
        batch = torch.arange(len(some), device=weights.device)
        rows = row_entropies(weights)
        return {
            "entropy": mean_of_rows(rows, causal=self.causal),
            "normalised entropy": normalised_mean(rows, causal=self.causal),
            "classifying entropy": rows[batch, :, [one.classifying for one in some]],
            "previous": to_offset(weights, -1, causal=self.causal),
            "current": to_offset(weights, 0, causal=self.causal),
            "next": to_offset(weights, 1, causal=self.causal),
            "first": _grouped(weights, [(one.first,) for one in some], self.causal),
            "separator": _grouped(weights, [one.separators for one in some], self.causal),
            "distance": mean_distance(weights, causal=self.causal),
        }

    def merge(self, other: "HeadStatistics") -> None:
        """Add what another observer of other inputs saw."""
        self.means.merge(other.means)


def _grouped(weights: Tensor, keys: list[tuple[int, ...]], causal: bool) -> Float[Tensor, "batch head"]:
    """`to_keys` of inputs whose keys differ: those that have the same ones together."""
    if len(set(keys)) == 1:
        return to_keys(weights, keys[0], causal=causal)
    found = weights.new_empty(weights.shape[:2])
    for some in dict.fromkeys(keys):
        chosen = [k for k, own in enumerate(keys) if own == some]
        found[chosen] = to_keys(weights[chosen], some, causal=causal)
    return found
