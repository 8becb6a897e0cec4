"""Mean maps of heads, resized to one size, and unsupervised groups of heads with similar mean maps.

A map of L tokens is resized to SIZE x SIZE by areas: cell (a, b) is the weight from queries in the a-th part of the
input to keys in the b-th part. Rows still sum to 1, so inputs of any length can be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float, Int
from torch import Tensor

from ..map_sums import MapSums, Needs

SIZE = 12


@lru_cache(maxsize=512)
def parts(length: int, size: int = SIZE) -> Float[np.ndarray, "length size"]:
    """Split an input into `size` equal segments, and return the fraction of each token in each segment. Rows sum to 1,
    and columns sum to length / size. The result is cached and must not be modified."""
    tokens, edges = np.arange(length)[:, None] / length, np.arange(size) / size
    overlap = np.minimum(tokens + 1 / length, edges + 1 / size) - np.maximum(tokens, edges)
    return np.maximum(overlap, 0) * length


def resized(weights: Float[np.ndarray, "*heads query key"]) -> Float[np.ndarray, "*heads size size"]:
    """Resize attention maps of any length to SIZE x SIZE by area. Each row still sums to 1."""
    share = parts(weights.shape[-1])
    return np.asarray((share / share.sum(0)).T @ weights @ share)


class MeanPatterns:
    """An observer that averages the resized attention maps of every head."""

    def __init__(self, layers: int, heads: int, attending: Sequence[int] = ()):
        self.sums, self.inputs = np.zeros((layers, heads, SIZE, SIZE)), 0
        self.first = min(attending, default=0)

    def update(self, layer: int, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        self.sums[layer] += resized(weights.double().cpu().numpy()).sum(0)
        self.inputs += len(inputs) if layer == self.first else 0

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs] | None:
        """Request the attention of each query to equal segments of the input. Return None if whole maps are needed."""
        return None if queries != keys else [Needs(values=parts(keys)) for _ in inputs]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        share = parts(sums[0].values.shape[1])
        self.sums[layer] += sum((share / share.sum(0)).T @ layer_sums.values.astype(np.float64) for layer_sums in sums)
        self.inputs += len(inputs) if layer == self.first else 0

    def result(self) -> Float[np.ndarray, "layer head size size"]:
        """Return the mean resized map of every head; NaN if there were no inputs."""
        return self.sums / self.inputs if self.inputs else np.full_like(self.sums, np.nan)


@dataclass(frozen=True)
class Grouping:
    """Groups of heads with similar mean maps, found by unsupervised clustering.

    Attributes:
        group: index of the group of each head, the largest group first.
        clear: silhouette of each head, -1 to 1; 0 if there is one group or as many as heads.
    """

    group: Int[np.ndarray, " head"]
    patterns: Float[np.ndarray, "group size size"]
    clear: Float[np.ndarray, " head"]


def grouped(patterns: Float[np.ndarray, "head size size"], *, groups: int) -> Grouping:
    """Cluster heads by their mean attention maps, with Ward linkage on the square roots of weights (Hellinger
    distance). The result has fewer than `groups` groups if too few heads differ."""
    from sklearn.metrics import silhouette_samples  # 1 s of start-up

    roots = np.sqrt(patterns).reshape(len(patterns), -1)
    if len(roots) < 2:
        return Grouping(np.zeros(len(roots), int), patterns, np.zeros(len(roots)))
    label = scipy.cluster.hierarchy.fcluster(
        scipy.cluster.hierarchy.linkage(roots, "ward"), groups, criterion="maxclust"
    )
    names, group_of, counts = np.unique(label, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    number = np.argsort(order)[group_of]
    clear = silhouette_samples(roots, number) if 1 < len(names) < len(roots) else np.zeros(len(roots))
    return Grouping(number, np.stack([patterns[number == k].mean(0) for k in range(len(names))]), clear)


@dataclass(frozen=True)
class RedundancyAgreement:
    """The correlation r between two distance matrices of the same heads. It has a 95 % interval over heads and the p
    value of a Mantel test."""

    r: float
    low: float
    high: float
    p: float
    pairs: int


def redundancy_agreement(
    first: Float[np.ndarray, "head head"],
    second: Float[np.ndarray, "head head"],
    *,
    layer: Sequence[int] | None = None,
    seed: int = 0,
    draws: int = 999,
) -> RedundancyAgreement:
    """Test whether two distance matrices agree on which pairs of heads are similar (Bian et al. 2021).

    Heads are resampled for the interval (without pairs of a head with itself) and permuted for p, within layers if
    `layer` is given, because heads of a layer are similar in any model. All values but `pairs` are NaN for fewer than
    four heads, or if all distances of one matrix are equal.
    """
    chance, heads = np.random.default_rng(seed), len(first)
    upper = np.triu_indices(heads, 1)
    if heads < 4 or first[upper].std() == 0 or second[upper].std() == 0:
        return RedundancyAgreement(float("nan"), float("nan"), float("nan"), float("nan"), len(upper[0]))
    correlation = float(np.corrcoef(first[upper], second[upper])[0, 1])
    shuffled, drawn = [], []
    for _ in range(draws):
        order = chance.permutation(heads) if layer is None else np.lexsort((chance.random(heads), np.asarray(layer)))
        shuffled.append(np.corrcoef(first[upper], second[np.ix_(order, order)][upper])[0, 1])
        drawn_heads = chance.integers(heads, size=heads)
        rows, columns = drawn_heads[upper[0]], drawn_heads[upper[1]]
        is_pair = rows != columns
        drawn.append(np.corrcoef(first[rows, columns][is_pair], second[rows, columns][is_pair])[0, 1])
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    p = (1 + int((np.array(shuffled) >= correlation).sum())) / (1 + draws)
    return RedundancyAgreement(correlation, float(low), float(high), p, len(upper[0]))


def nearest(distances: Float[np.ndarray, "head head"]) -> tuple[Sequence[int], Float[np.ndarray, " head"]]:
    """Return, for each head, the index of its nearest other head (in a tie, the first one) and the distance to it."""
    apart = distances + np.diag(np.full(len(distances), np.inf))
    return [int(k) for k in apart.argmin(1)], apart.min(1)
