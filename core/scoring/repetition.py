"""Whether patterns are repeated in different heads: is a head nearer to another one on the same inputs than to itself
on other inputs?

Maps are brought to one size (`mean_patterns.resized`), so that inputs of any length compare, and distances are those of
`distances.js_sums`. Inputs are compared two by two, each once, so that pairs are independent draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .corrections import widened
from .distances import js_between, js_sums
from .mean_patterns import SIZE, resized

LEAST_PAIRS = 4  # two a half, or a half has no spread


class OwnAndOthers:
    """Observer: how much nearer than itself on another input every other head is, of inputs two by two in their order.

    `sums` holds, by half of the pairs, the sums and the sums of squares of (distance to itself on the pair's other
    input) less (distance to the other head on the same inputs), nats per row of maps. `pairs` counts the pairs of each
    half.

    Args:
        attending: as of `AttentionMaps`; only heads of these layers are compared, and have places in `sums`.
    """

    def __init__(self, layers: int, heads: int, attending: Sequence[int] = ()):
        self.heads, self.attending = heads, list(attending or range(layers))
        count = len(self.attending) * heads
        self.sums, self.pairs = np.zeros((2, 2, count, count)), np.zeros(2, dtype=int)
        self._held: dict[int, np.ndarray] = {}
        self._start = self._seen = 0

    def take(self, inputs: int) -> "OwnAndOthers":
        """Say how many inputs come next, which follow those before."""
        self._start, self._seen = self._seen, self._seen + inputs
        return self

    def update(self, layer: int, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        """Keep one layer's maps at their size; a pair is compared when its last layer has come."""
        for number, maps in zip(inputs, resized(weights.double().cpu().numpy()), strict=True):
            index = self._start + number
            held = self._held.setdefault(index, np.empty((len(self.attending), self.heads, SIZE, SIZE)))
            held[self.attending.index(layer)] = maps
        if layer == self.attending[-1]:
            for index in sorted({(self._start + number) // 2 * 2 for number in inputs}):
                if index in self._held and index + 1 in self._held:
                    self._compare(index // 2, self._held.pop(index), self._held.pop(index + 1))

    def _compare(self, pair: int, *maps: np.ndarray) -> None:
        first, second = (torch.from_numpy(flat_maps.reshape(-1, SIZE, SIZE)) for flat_maps in maps)
        own_distance = js_between(first, second).numpy()[:, None] / SIZE
        between = (js_sums(first) + js_sums(second)).numpy() / (2 * SIZE)
        nearer, half = own_distance - between, pair % 2
        self.sums[half] += np.stack([nearer, nearer**2])
        self.pairs[half] += 1


@dataclass(frozen=True)
class Repeated:
    """Whether another head is nearer to a head than the head is to itself on other inputs.

    Attributes:
        value: of each head, its distance to itself less that to the nearest other head, nats per row of maps. Above 0:
            another head is nearer.
        low, high: 95 % interval (Student's t over the pairs of inputs that did not choose the other head).
        other: the nearest other head on all pairs, numbered over layers and heads.
    """

    value: Float[np.ndarray, " head"]
    low: Float[np.ndarray, " head"]
    high: Float[np.ndarray, " head"]
    other: Int[np.ndarray, " head"]
    pairs: int

    def share(self) -> tuple[float, float, float]:
        """The share of heads above 0, of those that surely are, and of those that may be, corrected over heads."""
        half = widened(len(self.value)) * (self.high - self.low) / 2
        counts = (self.value > 0, self.value - half > 0, self.value + half > 0)
        return tuple(float(count.mean()) for count in counts)  # type: ignore[return-value]


def repeated(sums: Float[np.ndarray, "2 2 head head"], pairs: Sequence[int]) -> Repeated | None:
    """Measure of each head how near the nearest other one is.

    The nearest other head is chosen on one half of the pairs and measured on the other half: being the nearest of many
    by luck counts for nothing. (Both ways and averaged would be too narrow: where both halves choose the same head,
    both means are high.)

    Args:
        sums: as `OwnAndOthers` has them, by half of the pairs: values, then their squares.

    Returns:
        None for fewer than LEAST_PAIRS pairs, fewer than two of a half, or fewer than two heads.
    """
    heads = sums.shape[-1]
    if sum(pairs) < LEAST_PAIRS or min(pairs) < 2 or heads < 2:
        return None
    itself, (_, n) = np.eye(heads, dtype=bool), pairs
    chosen = np.where(itself, -np.inf, sums[0, 0]).argmax(1)
    value, square = (each[np.arange(heads), chosen] / n for each in sums[1])
    width = scipy.stats.t.ppf(0.975, n - 1) * np.sqrt(np.maximum(square - value**2, 0) / (n - 1))
    most_alike = np.where(itself, -np.inf, sums[:, 0].sum(0)).argmax(1)
    return Repeated(value, value - width, value + width, most_alike, int(sum(pairs)))
