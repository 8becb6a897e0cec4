"""Clusters of attention maps without labels, by the length-independent statistics of the pattern classifier.

Statistics are standardised over maps, reduced by principal components to VARIANCE of their variance, and clustered by
HDBSCAN. Leaf clusters are used, because the largest stable clusters of maps often have nearly all maps.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError

VARIANCE = 0.95
FEWEST = 20  # maps
SMALLEST = 5  # maps of a cluster
EXEMPLARS = 3
NEIGHBOURS = 1  # HDBSCAN's min_samples; larger numbers leave more maps unclustered

Statistics = Float[np.ndarray, "map statistic"]


@dataclass(frozen=True, eq=False)
class Clustering:
    """Clusters of attention maps, largest cluster first.

    Attributes:
        labels: cluster of each map; -1 if it is unclustered.
        nearest: the same with unclustered maps in the cluster of the clustered map that is nearest.
        centres: mean of each cluster in principal components. *Shape:* (cluster, component).
        exemplars: the maps of each cluster that are nearest to its centre. *Shape:* (cluster, EXEMPLARS).
    """

    labels: Int[np.ndarray, " map"]
    nearest: Int[np.ndarray, " map"]
    centres: Float[np.ndarray, "cluster component"]
    exemplars: Int[np.ndarray, "cluster exemplar"]


def cluster_maps(statistics: Statistics, *, seed: int = 0, smallest: int = SMALLEST) -> Clustering:
    """Cluster attention maps by their statistics. If no cluster is found, `labels` is -1 and `nearest` is 0 for all
    maps.

    Clusters do not depend on the order of the maps. Raises InputError for too few or equal maps.
    """
    order = _canonical(statistics)
    points = components(statistics[order], seed=seed)
    labels = _numbered(fitted(points, smallest))
    nearest = np.where(labels >= 0, labels, 0)
    if (labels == -1).any() and (labels >= 0).any():
        nearest = _of_nearest(points, labels)
    clusters = [np.flatnonzero(nearest == 0)] if (labels == -1).all() else [
        np.flatnonzero(labels == k) for k in range(labels.max() + 1)
    ]  # fmt: skip
    centres = np.stack([points[cluster].mean(0) for cluster in clusters])
    exemplars = [
        order[cluster[np.argsort(np.linalg.norm(points[cluster] - centre, axis=1), kind="stable")[:EXEMPLARS]]]
        for cluster, centre in zip(clusters, centres, strict=True)
    ]
    back = np.argsort(order)
    return Clustering(labels[back], nearest[back], centres, np.stack(exemplars))


def components(statistics: Statistics, *, seed: int = 0) -> Float[np.ndarray, "map component"]:
    """Return the leading principal components of standardised map statistics. Together, these components explain at
    least the fraction VARIANCE of the total variance.

    Raises InputError for too few or equal maps.
    """
    from sklearn.decomposition import PCA  # 1 s of start-up

    if len(statistics) < FEWEST:
        raise InputError(f"Clustering needs at least {FEWEST} maps; got {len(statistics)}. Choose more maps.")
    deviation = statistics.std(0)
    varies = deviation > 1e-9 * (1 + np.abs(statistics).max(0))
    if not varies.any():
        raise InputError(
            f"Clustering needs maps with different statistics; all {len(statistics)} maps have the same statistics. "
            "Choose other maps."
        )
    scaled = (statistics[:, varies] - statistics[:, varies].mean(0)) / deviation[varies]
    return PCA(VARIANCE, svd_solver="full", random_state=seed).fit_transform(scaled)


def fitted(points: np.ndarray, smallest: int, *, metric: str = "euclidean") -> Int[np.ndarray, " map"]:
    """Return the HDBSCAN cluster of each point, or -1 for noise. If `metric` is "precomputed", `points` is a distance
    matrix."""
    from sklearn.cluster import HDBSCAN  # 1 s of start-up

    return HDBSCAN(
        min_cluster_size=smallest, min_samples=NEIGHBOURS, metric=metric, cluster_selection_method="leaf", copy=True
    ).fit_predict(points)


def _canonical(statistics: np.ndarray) -> Int[np.ndarray, " map"]:
    """Return an order of maps that depends on their statistics alone."""
    return np.lexsort(statistics.T[::-1])


def _numbered(labels: np.ndarray) -> Int[np.ndarray, " map"]:
    """Number clusters from the largest to the smallest, and clusters of equal size by their first map."""
    numbers, first, sizes = np.unique(labels[labels >= 0], return_index=True, return_counts=True)
    new = np.full(len(numbers) + 1, -1)
    new[numbers[np.lexsort((first, -sizes))]] = np.arange(len(numbers))
    return new[labels]


def _of_nearest(points: np.ndarray, labels: np.ndarray) -> Int[np.ndarray, " map"]:
    """Return the cluster of each map, or that of the clustered map that is nearest."""
    from sklearn.neighbors import NearestNeighbors  # 1 s of start-up

    known = np.flatnonzero(labels >= 0)
    near = NearestNeighbors(n_neighbors=1).fit(points[known]).kneighbors(points, return_distance=False)[:, 0]
    return np.where(labels >= 0, labels, labels[known[near]])
