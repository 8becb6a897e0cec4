"""The mean pattern of a head: its maps brought to one size and averaged; and heads grouped by it, without any label.

A map of L tokens becomes SIZE x SIZE by areas: cell (a, b) holds what the queries in the a-th part of the input give to
the keys in its b-th part, so every row still sums to 1 and any length compares with any other.
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
    """How much of each token lies in each of `size` equal parts of the input.

    Args:
        length: tokens of the input, at least 1.
        size: parts, at least 1.

    Returns:
        Shares of tokens, float64. *Range:* 0 to 1; rows sum to 1, columns to length / size. Cached: not to be written
        to.
    """
    tokens, edges = np.arange(length)[:, None] / length, np.arange(size) / size
    overlap = np.minimum(tokens + 1 / length, edges + 1 / size) - np.maximum(tokens, edges)
    return np.maximum(overlap, 0) * length


def resized(weights: Float[np.ndarray, "*heads query key"]) -> Float[np.ndarray, "*heads size size"]:
    """Maps of any length as SIZE x SIZE, by areas.

    Returns:
        What queries of one part give to keys of another, the mean over these queries. Rows sum to 1 where they did.
    """
    share = parts(weights.shape[-1])
    return np.asarray((share / share.sum(0)).T @ weights @ share)


class MeanPatterns:
    """Observer: the mean resized map of every head. attending: as of `AttentionMaps`."""

    def __init__(self, layers: int, heads: int, attending: Sequence[int] = ()):
        self.sums, self.inputs = np.zeros((layers, heads, SIZE, SIZE)), 0
        self.first = min(attending, default=0)

    def update(self, layer: int, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        """Add one layer's maps."""
        self.sums[layer] += resized(weights.double().cpu().numpy()).sum(0)
        self.inputs += len(inputs) if layer == self.first else 0

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs] | None:
        """Of long inputs each query's weight on the parts of the input."""
        return None if queries != keys else [Needs(values=parts(keys)) for _ in inputs]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        """Add one layer without its maps."""
        share = parts(sums[0].values.shape[1])
        self.sums[layer] += sum((share / share.sum(0)).T @ layer_sums.values.astype(np.float64) for layer_sums in sums)
        self.inputs += len(inputs) if layer == self.first else 0

    def result(self) -> Float[np.ndarray, "layer head size size"]:
        """The means; NaN before any input."""
        return self.sums / self.inputs if self.inputs else np.full_like(self.sums, np.nan)


@dataclass(frozen=True)
class Grouping:
    """Heads in groups by mean pattern.

    Attributes:
        group: number of each head's group, from 0, the largest group first.
        clear: silhouette of each head: how much nearer it is to its own group than to the next. *Range:* -1 to 1; 0 for
            all heads where there is one group or as many as heads.
    """

    group: Int[np.ndarray, " head"]
    patterns: Float[np.ndarray, "group size size"]
    clear: Float[np.ndarray, " head"]


def grouped(patterns: Float[np.ndarray, "head size size"], *, groups: int) -> Grouping:
    """Group heads by Ward's linkage of the square roots of their patterns (Hellinger distance of the rows).

    Args:
        patterns: mean pattern of each head, without NaN.

    Returns:
        The groups; fewer than `groups` where heads are fewer or alike. A single head is its own group.
    """
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
    """How alike two pictures of redundancy are.

    Attributes:
        r: Pearson correlation of the distances between heads, -1 to 1.
        low, high: its 95 % interval over heads.
        p: how likely heads with names shuffled within their layers would agree as much (Mantel), 0 to 1.
    """

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
    """Whether the same heads are alike in both: Bian et al. 2021 say so of tasks and of phases of training.

    Heads, not pairs, are the sample: they are drawn with replacement for the interval (pairs of a head with itself left
    out), and shuffled for p.

    Args:
        second: of the same heads, in the other task or phase.
        layer: of each head: only heads of one layer change names, because heads of a layer are alike in any model. All
            heads do where it is None.

    Returns:
        All but `pairs` NaN for fewer than four heads, or where all distances of one picture are equal.
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
    """The most alike other head of each head.

    Args:
        distances: between heads, at least two; the diagonal is not looked at.

    Returns:
        Of each head the number of the nearest other one, the first of equally near ones; and the distance to it, in the
        unit of `distances`.
    """
    apart = distances + np.diag(np.full(len(distances), np.inf))
    return [int(k) for k in apart.argmin(1)], apart.min(1)
