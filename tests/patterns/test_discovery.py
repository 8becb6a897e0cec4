"""Whether clusters are patterns: planted patterns are, noise is not, and the index agrees with a count of pairs."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from core.errors import InputError
from core.patterns.discovery import CLUSTERED, Stability, adjusted_rand, discover
from core.patterns.shapes import shapes
from tests.patterns.test_clusters import planted


def crossed(maps, heads=12):
    """Heads and inputs of maps in order: every class of three has its own heads, and every input has all heads."""
    return [f"h{k % heads}" for k in range(maps)], [f"i{k // heads}" for k in range(maps)]


@pytest.fixture(scope="module")
def found():
    maps, classes = planted(100)
    return discover(shapes(maps), *crossed(300, heads=36)), classes


@pytest.mark.thorough
def test_planted_patterns_come_apart_and_are_claimed(found):
    discovery, classes = found
    labels = discovery.clustering.labels
    assert discovery.are_patterns
    assert discovery.clustered >= CLUSTERED
    assert adjusted_rand(labels, classes) >= 0.9
    for stability in (discovery.heads, discovery.inputs):
        assert stability.low <= stability.value <= stability.high
        assert stability.low > discovery.baseline


@pytest.mark.thorough
def test_patterns_are_claimed_by_the_lower_end_and_the_share_of_clustered_maps(found):
    discovery, _ = found
    base = discovery.baseline
    low = Stability(0.9, base, 1.0)
    assert not replace(discovery, heads=low).are_patterns
    assert not replace(discovery, inputs=low).are_patterns
    few = replace(discovery.clustering, labels=np.where(np.arange(300) < 179, 0, -1))
    assert not replace(discovery, clustering=few).are_patterns


@pytest.mark.thorough
def test_patterns_that_a_few_heads_have_are_unstable_over_heads_alone():
    """Each head has a point of its own: inputs agree on it, and halves of heads have no common cluster."""
    heads, inputs = crossed(144, heads=12)
    centres = np.random.default_rng(0).normal(size=(12, 30)) * 8
    statistics = centres[np.arange(144) % 12] + np.random.default_rng(1).normal(size=(144, 30))
    found = discover(statistics, heads, inputs)
    assert found.inputs.value > 0.9
    assert found.heads.value < found.inputs.value - 0.2


def without_clusters(kind, seed):
    """Statistics of maps of three patterns, without their clusters: permuted columns, or normal with the covariance."""
    chance, statistics = np.random.default_rng(seed), shapes(planted(100, seed=seed)[0])
    if kind == "permuted":
        return np.stack([chance.permutation(column) for column in statistics.T], axis=1)
    return chance.multivariate_normal(statistics.mean(0), np.cov(statistics.T), len(statistics), method="svd")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["permuted", "normal"])
def test_statistics_without_clusters_are_claimed_at_most_as_often_as_the_level(kind):
    found = [discover(without_clusters(kind, seed), *crossed(300, heads=36), seed=seed) for seed in range(10)]
    assert sum(each.are_patterns for each in found) <= 1


@pytest.mark.slow
def test_planted_patterns_are_found_in_nearly_every_sample():
    claimed = 0
    for seed in range(6):
        maps, classes = planted(100, seed=seed)
        found = discover(shapes(maps), *crossed(300, heads=36), seed=seed)
        claimed += found.are_patterns
        assert adjusted_rand(found.clustering.labels, classes) >= 0.9
    assert claimed >= 5


def test_the_index_is_that_of_pairs_of_maps_that_both_have_in_a_cluster():
    chance = np.random.default_rng(3)
    one, other = chance.integers(-1, 3, 60), chance.integers(-1, 4, 60)
    other[:30] = one[:30]
    pairs = list(combinations(np.flatnonzero((one >= 0) & (other >= 0)), 2))
    both = sum(one[a] == one[b] and other[a] == other[b] for a, b in pairs)
    first, second = (sum(of[a] == of[b] for a, b in pairs) for of in (one, other))
    expected = first * second / len(pairs)
    assert adjusted_rand(one, other) == pytest.approx((both - expected) / ((first + second) / 2 - expected))
    assert adjusted_rand(one, np.full(60, -1)) == 0
    assert adjusted_rand(one, np.zeros(60, int)) == 0
    few = np.where(np.arange(60) < 11, one, -1)  # less than 20 %
    assert adjusted_rand(few, few) == 0


@pytest.mark.parametrize(
    ("maps", "heads", "message"),
    [(40, 12, "at least 60 maps, from at least 4 heads; got 40 maps"), (72, 2, "got 72 maps from 2 heads")],
)
def test_too_few_maps_or_heads_are_refused(maps, heads, message):
    with pytest.raises(InputError, match=message):
        discover(np.random.default_rng(0).normal(size=(maps, 5)), *crossed(maps, heads))
