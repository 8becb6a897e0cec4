"""Clusters of maps without labels: planted patterns, any order, and data without clusters."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from core.errors import InputError
from core.patterns.clusters import EXEMPLARS, FEWEST, cluster_maps
from core.patterns.shapes import shapes


def planted(per_class=40, seed=0):
    """Noisy maps of vertical, diagonal and block, and the class of each."""
    rng = np.random.default_rng(seed)
    maps, classes = [], []
    for k in range(3 * per_class):
        length = int(rng.integers(12, 30))
        weights = rng.dirichlet(np.full(length, 0.6), length) * 0.3
        if k % 3 == 0:
            weights[:, 0] += 0.7
        elif k % 3 == 1:
            weights[np.arange(length), np.maximum(np.arange(length) - 1, 0)] += 0.7
        else:
            half = length // 2
            weights[:half, :half] += 0.7 / half
            weights[half:, half:] += 0.7 / (length - half)
        maps.append((weights / weights.sum(1, keepdims=True)).astype(np.float32))
        classes.append(k % 3)
    return maps, np.array(classes)


@pytest.fixture(scope="module")
def statistics():
    maps, classes = planted()
    return shapes(maps), classes


def test_vertical_diagonal_and_block_come_apart(statistics):
    found = cluster_maps(statistics[0], smallest=12)
    clustered = found.labels >= 0
    assert clustered.mean() > 0.6
    assert adjusted_rand_score(statistics[1][clustered], found.labels[clustered]) >= 0.9
    assert adjusted_rand_score(statistics[1], found.nearest) >= 0.9


def test_clusters_do_not_depend_on_the_order_of_the_maps(statistics):
    found, order = cluster_maps(statistics[0]), np.random.default_rng(1).permutation(len(statistics[0]))
    other = cluster_maps(statistics[0][order])
    np.testing.assert_array_equal(other.labels, found.labels[order])
    np.testing.assert_array_equal(other.nearest, found.nearest[order])
    np.testing.assert_array_equal(order[other.exemplars], found.exemplars)
    np.testing.assert_array_equal(other.centres, found.centres)


def test_every_map_has_a_nearest_cluster_and_clusters_are_numbered_by_size(statistics):
    found = cluster_maps(statistics[0])
    sizes = np.bincount(found.labels[found.labels >= 0])
    assert (np.diff(sizes) <= 0).all()
    assert sizes.min() >= 5
    assert found.nearest.min() == 0
    assert found.nearest.max() == len(sizes) - 1
    clustered = found.labels >= 0
    np.testing.assert_array_equal(found.nearest[clustered], found.labels[clustered])
    assert found.exemplars.shape == (len(sizes), EXEMPLARS)
    np.testing.assert_array_equal(found.labels[found.exemplars], np.arange(len(sizes))[:, None].repeat(EXEMPLARS, 1))


def test_noise_leaves_all_maps_in_one_nearest_cluster():
    found = cluster_maps(np.random.default_rng(0).normal(size=(60, 40)), smallest=12)
    assert (found.labels == -1).all()
    assert (found.nearest == 0).all()
    assert len(found.centres) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones((1, 4)), f"Clustering needs at least {FEWEST} maps; got 1"),
        (np.zeros((0, 4)), f"Clustering needs at least {FEWEST} maps; got 0"),
        (np.ones((30, 4)), "all 30 maps have the same statistics"),
    ],
)
def test_too_few_or_equal_maps_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        cluster_maps(values)
