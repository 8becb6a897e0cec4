"""Mean patterns, groups by them, and whether redundancy stays: against loops and planted heads."""

import numpy as np
import pytest
import torch

from core.scoring.mean_patterns import SIZE, MeanPatterns, grouped, nearest, redundancy_agreement, resized


def rows_of(length, offset):
    """A head that looks `offset` tokens on, round the end."""
    return np.eye(length)[(np.arange(length) + offset) % length]


@pytest.mark.parametrize("length", [1, 5, SIZE, 2 * SIZE, 31])
def test_rows_of_any_length_still_sum_to_1(length):
    weights = np.random.default_rng(length).dirichlet(np.ones(length), size=(2, length))
    small = resized(weights)
    assert small.shape == (2, SIZE, SIZE)
    np.testing.assert_allclose(small.sum(-1), 1)


def test_twice_the_size_is_the_mean_of_cells_by_hand():
    weights = np.random.default_rng(0).dirichlet(np.ones(2 * SIZE), size=(2 * SIZE,))
    by_hand = np.zeros((SIZE, SIZE))
    for query in range(2 * SIZE):
        for key in range(2 * SIZE):
            by_hand[query // 2, key // 2] += weights[query, key] / 2  # mean over queries, sum over keys
    np.testing.assert_allclose(resized(weights), by_hand)


def test_the_observer_is_the_mean_over_inputs_of_any_length():
    chance = np.random.default_rng(1)
    inputs = [chance.dirichlet(np.ones(length), size=(2, length)) for length in (4, 9, 9)]
    observer = MeanPatterns(1, 2)
    observer.update(0, torch.from_numpy(inputs[0][None]), [0])
    observer.update(0, torch.from_numpy(np.stack(inputs[1:])), [1, 2])
    np.testing.assert_allclose(observer.result()[0], np.mean([resized(one) for one in inputs], 0))


def test_planted_kinds_of_heads_are_grouped_and_the_nearest_is_of_the_same_kind():
    kinds = [rows_of(SIZE, 1), rows_of(SIZE, 0), np.full((SIZE, SIZE), 1 / SIZE)]
    chance = np.random.default_rng(2)
    heads = [0.9 * kinds[k] + 0.1 * chance.dirichlet(np.ones(SIZE), size=SIZE) for k in (0, 1, 2, 0, 1, 0)]
    grouping = grouped(np.stack(heads), groups=3)
    assert grouping.group.tolist() == [0, 1, 2, 0, 1, 0]  # the largest group first
    assert (grouping.clear[[0, 1, 3, 4, 5]] > 0.3).all()
    np.testing.assert_allclose(grouping.patterns[0], np.mean([heads[k] for k in (0, 3, 5)], 0))
    flat = np.array([[np.abs(a - b).sum() for b in heads] for a in heads])
    others, apart = nearest(flat)
    assert {others[0], others[3], others[5]} <= {0, 3, 5}
    assert others[1] == 4
    assert apart[1] == flat[1, 4]


@pytest.mark.thorough
def test_redundancy_that_is_kept_and_one_that_is_not():
    chance = np.random.default_rng(3)
    places, elsewhere = chance.normal(size=(20, 2)), chance.normal(size=(20, 2))
    apart, other = (np.sqrt(((one[:, None] - one) ** 2).sum(-1)) for one in (places, elsewhere))
    noisy = np.sqrt((((places + 0.1)[:, None] - places * 1.02) ** 2).sum(-1))
    noisy = (noisy + noisy.T) / 2
    same, none = redundancy_agreement(apart, noisy), redundancy_agreement(apart, other)
    upper = np.triu_indices(20, 1)
    assert same.r == pytest.approx(np.corrcoef(apart[upper], noisy[upper])[0, 1])
    assert same.low > 0.9
    assert same.p == pytest.approx(0.001)
    assert none.p > 0.05
    assert none.low < 0 < none.high or none.low < 0.2
    assert np.isnan(redundancy_agreement(apart[:3, :3], other[:3, :3]).r)  # too few heads to say


@pytest.mark.thorough
def test_heads_that_are_alike_through_their_layer_alone_are_not_the_same_heads():
    """Two runs whose heads have nothing in common but the layer they are in: 60 of 60 such pairs were called alike."""
    layer, upper, small = np.repeat(range(6), 6), np.triu_indices(36, 1), 0
    for seed in range(60):
        chance = np.random.default_rng(seed)
        centres = 3 * chance.normal(size=(6, 4))
        runs = [centres[layer] + 0.7 * chance.normal(size=(36, 4)) for _ in range(2)]
        first, other = (np.sqrt(((run[:, None] - run) ** 2).sum(-1)) for run in runs)
        assert np.corrcoef(first[upper], other[upper])[0, 1] > 0.4
        small += redundancy_agreement(first, other, layer=layer.tolist(), seed=seed, draws=99).p <= 0.05
    assert small <= 8  # 0.99 quantile of 60 draws at 5 %


def test_the_same_heads_are_found_within_their_layers():
    chance, layer = np.random.default_rng(1), np.repeat(range(6), 6)
    places = 3 * chance.normal(size=(6, 4))[layer] + chance.normal(size=(36, 4))
    first, other = (np.sqrt(((run[:, None] - run) ** 2).sum(-1)) for run in (places, places + 0.3))
    assert redundancy_agreement(first, other, layer=layer.tolist(), draws=99).p == 0.01
    assert (
        redundancy_agreement(first, other, layer=list(range(36)), draws=9).p == 1
    )  # one head a layer: nothing to shuffle


def test_two_heads_can_be_two_groups_and_pairs_are_counted():
    apart = grouped(np.stack([rows_of(SIZE, 0), rows_of(SIZE, 3)]), groups=2)
    assert sorted(apart.group.tolist()) == [0, 1]
    distances = np.random.default_rng(5).random((4, 4))
    kept = redundancy_agreement(distances + distances.T, distances + distances.T, draws=19)
    assert kept.pairs == 6
    assert kept.r == pytest.approx(1)
    assert redundancy_agreement(np.zeros((4, 4)), distances, draws=19).pairs == 6


def test_one_head_is_a_group_of_its_own_and_no_input_has_no_mean():
    pattern = resized(np.eye(5))[None]
    alone = grouped(pattern, groups=3)
    assert (alone.group.tolist(), alone.clear.tolist()) == ([0], [0.0])
    np.testing.assert_array_equal(alone.patterns, pattern)
    assert np.isnan(MeanPatterns(1, 2).result()).all()


def test_distances_that_cannot_be_compared_have_no_figures():
    distances = np.random.default_rng(0).random((5, 5))
    for first, other in (
        (distances[:3, :3], distances[:3, :3]),
        (np.ones((5, 5)), distances),
        (distances, np.ones((5, 5))),
    ):
        kept = redundancy_agreement(first, other, draws=9)
        assert np.isnan([kept.r, kept.low, kept.high, kept.p]).all()
        assert kept.pairs == len(first) * (len(first) - 1) / 2


def test_shuffled_heads_and_drawn_heads_by_a_loop():
    rng = np.random.default_rng(8)
    first, other = (np.abs(rng.normal(size=(6, 6))) for _ in range(2))
    first, other = first + first.T, other + other.T
    kept, chance = redundancy_agreement(first, other, seed=4, draws=49), np.random.default_rng(4)
    pairs = [(a, b) for a in range(6) for b in range(a + 1, 6)]

    def r_of(order, drawn):
        x = [first[drawn[a], drawn[b]] for a, b in pairs if drawn[a] != drawn[b]]
        y = [other[order[drawn[a]], order[drawn[b]]] for a, b in pairs if drawn[a] != drawn[b]]
        return np.corrcoef(x, y)[0, 1]

    same = list(range(6))
    shuffled, resampled = [], []
    for _ in range(49):
        shuffled.append(r_of(chance.permutation(6), same))
        resampled.append(r_of(same, chance.integers(6, size=6)))
    own = r_of(same, same)
    assert kept.r == pytest.approx(own)
    assert kept.p == (1 + sum(value >= own for value in shuffled)) / 50
    np.testing.assert_allclose((kept.low, kept.high), np.nanquantile(resampled, [0.025, 0.975]))
