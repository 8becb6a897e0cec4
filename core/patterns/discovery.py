"""Whether clusters of attention maps are patterns: their stability over halves of heads and of inputs, with a baseline.

The maps are divided into two halves at random, each half is clustered, and the maps of the other half are assigned to
the cluster of their nearest neighbour. Stability is the adjusted Rand index between both clusterings, over maps that
both put into a cluster; it is 0 if these are less than COMMON of the maps. The smallest size of a cluster is the one
with the largest mean stability over SEARCHED halves, among sizes that put at least CLUSTERED of the maps into a cluster
if there is one. Stability is then measured on HALVES new halves.

HDBSCAN finds clusters in noise too. The baseline is the stability, with the same size, of statistics without clusters:
statistics whose columns were permuted, or normal ones with the same covariance (Liu et al. 2008), whichever is larger.
With 19 samples of each, the largest mean is the 95th percentile. The size is chosen for the maps only, which makes the
search 20 times faster. The rows of a sample are exchangeable, so halves of heads and of inputs have one baseline.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int

from ..errors import InputError
from .clusters import SMALLEST, Clustering, Statistics, cluster_maps, components, fitted

CLUSTERED, COMMON = 0.6, 0.2  # share of the maps; a common share of .2 is that of two independent clusterings of .45
SHARES = (0.01, 0.02, 0.04, 0.08, 0.12)  # smallest cluster, as a share of the maps
SEARCHED, HALVES = 6, 40  # halves of heads, and as many of inputs
OF_SAMPLE = 20  # halves of each sample without clusters
SAMPLES = 19  # of each kind without clusters
FEWEST_MAPS, FEWEST_GROUPS = 60, 4

Groups = Sequence[str]
Distances = Float32[np.ndarray, "map map"]


@dataclass(frozen=True)
class Stability:
    """The agreement of clusterings learned from two random halves of the heads or inputs. `value` is the mean adjusted
    Rand index. `low` and `high` are the bounds of the central 95 % of the indices."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Discovery:
    """Clusters of attention maps, with their stability over random halves of the heads and of the inputs. `baseline` is
    the largest mean stability in random data without clusters."""

    clustering: Clustering
    smallest: int
    heads: Stability
    inputs: Stability
    baseline: float

    @property
    def clustered(self) -> float:
        """Return the fraction of maps that belong to a cluster."""
        return float((self.clustering.labels >= 0).mean())

    @property
    def are_patterns(self) -> bool:
        """Return whether the clusters count as patterns: enough maps are clustered, and nearly all pairs of random
        halves agree better than the baseline."""
        return min(self.heads.low, self.inputs.low) > self.baseline and self.clustered >= CLUSTERED


def discover(statistics: Statistics, heads: Groups, inputs: Groups, *, seed: int = 0) -> Discovery:
    """Return clusters of maps, given the head and input of each map. Raises InputError for too few maps, heads or
    inputs."""
    groups = [np.unique(of, return_inverse=True)[1] for of in (heads, inputs)]
    for name, of in zip(("heads", "inputs"), groups, strict=True):
        if len(statistics) < FEWEST_MAPS or len(set(of)) < FEWEST_GROUPS:
            raise InputError(
                f"Discovering patterns needs at least {FEWEST_MAPS} maps, from at least {FEWEST_GROUPS} {name}; got "
                f"{len(statistics)} maps from {len(set(of))} {name}. Choose more examples or more maps."
            )
    chance, apart = np.random.default_rng(seed), _distances(statistics)
    sizes = sorted({2 * max(SMALLEST, round(share * len(statistics) / 2)) for share in SHARES})
    mean = np.mean([_indices(apart, of, sizes, chance, SEARCHED).mean(0) for of in groups], axis=0)
    enough = [(fitted(apart, size, metric="precomputed") >= 0).mean() >= CLUSTERED for size in sizes]
    size = sizes[int(np.argmax(np.where(enough, mean, -1) if any(enough) else mean))]
    found = []
    for of in groups:
        values = _indices(apart, of, [size], chance, HALVES)
        found.append(Stability(float(values.mean()), *np.quantile(values, (0.025, 0.975)).tolist()))
    every, centred = np.arange(len(statistics)), (statistics - statistics.mean(0)) / np.sqrt(len(statistics))
    samples = [np.stack([chance.permutation(of) for of in statistics.T], axis=1) for _ in range(SAMPLES)]
    samples += [chance.normal(size=2 * [len(statistics)]) @ centred for _ in range(SAMPLES)]
    baseline = max(_indices(_distances(sample), every, [size], chance, OF_SAMPLE).mean() for sample in samples)
    return Discovery(cluster_maps(statistics, seed=seed, smallest=size), size, found[0], found[1], float(baseline))


def _distances(statistics: Statistics) -> Distances:
    from sklearn.metrics import pairwise_distances  # 1 s of start-up

    return np.asarray(pairwise_distances(components(statistics)), dtype=np.float32)


def _indices(
    apart: Distances, groups: np.ndarray, sizes: Sequence[int], chance: np.random.Generator, halves: int
) -> np.ndarray:
    """Return the adjusted Rand index [half, size] between clusterings of random halves of groups of maps."""
    found = np.zeros((halves, len(sizes)))
    count = groups.max() + 1
    for number in range(halves):
        first = np.isin(groups, chance.permutation(count)[: count // 2])
        pairs = zip(_of_half(apart, first, sizes), _of_half(apart, ~first, sizes), strict=True)
        found[number] = [adjusted_rand(one, other) for one, other in pairs]
    return found


def _of_half(apart: Distances, half: np.ndarray, sizes: Sequence[int]) -> list[Int[np.ndarray, " map"]]:
    """Return the clusters of half of the maps, and of the other maps by their nearest neighbour. A cluster of all maps
    has at least a size, and a cluster of half of the maps half of it."""
    within, nearest = apart[np.ix_(half, half)], apart[np.ix_(~half, half)].argmin(1)
    found = []
    for size in sizes:
        labels = np.full(len(apart), -1)
        labels[half] = clusters = fitted(within, size // 2, metric="precomputed")
        labels[~half] = clusters[nearest]
        found.append(labels)
    return found


def adjusted_rand(one: Int[np.ndarray, " map"], other: Int[np.ndarray, " map"]) -> float:
    """Return the adjusted Rand index of two clusterings, over the maps with a cluster (label 0 or higher) in both.
    Return 0 if the fraction of these maps is below COMMON, or if either clustering has only one cluster of these
    maps."""
    from sklearn.metrics import adjusted_rand_score  # 1 s of start-up

    both = (one >= 0) & (other >= 0)
    if both.mean() < COMMON or min(len(set(one[both])), len(set(other[both]))) < 2:
        return 0.0
    return float(adjusted_rand_score(one[both], other[both]))
