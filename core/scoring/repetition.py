"""Repetition of patterns: whether a head is closer to another head on the same inputs than to itself on other
inputs."""

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

LEAST_PAIRS = 4  # two in each half, because one has no spread


class OwnAndOthers:
    """An observer of how far heads are from other heads on the same input, and from themselves on another input.

    `sums` has, by half of the pairs, sums and sums of squares of (distance to itself on the other input of the pair)
    minus (distance to the other head on the same inputs), in nats per row. `pairs` counts the pairs of each half.
    Inputs are compared in disjoint pairs, which are independent draws, and maps are resized to compare any lengths.
    """

    def __init__(self, layers: int, heads: int, attending: Sequence[int] = ()):
        self.heads, self.attending = heads, list(attending or range(layers))
        count = len(self.attending) * heads
        self.sums, self.pairs = np.zeros((2, 2, count, count)), np.zeros(2, dtype=int)
        self._held: dict[int, np.ndarray] = {}
        self._start = self._seen = 0

    def take(self, inputs: int) -> "OwnAndOthers":
        """Set the number of inputs in the next model run."""
        self._start, self._seen = self._seen, self._seen + inputs
        return self

    def update(self, layer: int, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        """Store the resized maps of one layer. After the last layer, compare the two inputs of each pair."""
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
    """For each head, a comparison of two distances: to other heads on the same input, and to itself on another input.

    Attributes:
        value: distance to itself minus that to the nearest other head, in nats per row; positive if the other is
            closer.
        low, high: 95 % interval (Student's t over the pairs of inputs that did not choose the other head).
        other: the nearest other head on all pairs, as an index over layers and heads.
    """

    value: Float[np.ndarray, " head"]
    low: Float[np.ndarray, " head"]
    high: Float[np.ndarray, " head"]
    other: Int[np.ndarray, " head"]
    pairs: int

    def share(self) -> tuple[float, float, float]:
        """Return the fractions of heads with values above 0, with values significantly above 0, and with values not
        significantly below 0."""
        half = widened(len(self.value)) * (self.high - self.low) / 2
        counts = (self.value > 0, self.value - half > 0, self.value + half > 0)
        return tuple(float(count.mean()) for count in counts)  # type: ignore[return-value]


def repeated(sums: Float[np.ndarray, "2 2 head head"], pairs: Sequence[int]) -> Repeated | None:
    """Compare two distances for each head: to itself on another input, and to the nearest other head on the same input.

    The other head is chosen on one half of the pairs and measured on the other half. Averaging both directions would
    give too narrow intervals, because both means are high if both halves choose the same head. None for fewer than
    LEAST_PAIRS pairs, fewer than two in a half, or fewer than two heads.
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
