import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.patterns.training import BANDS, STATISTICS, features, statistics


def at(one, name):
    return statistics(one)[STATISTICS.index(name)]


@given(st.integers(1, 40), st.integers(0, 99), st.booleans())
def test_every_statistic_is_finite_for_any_length(length, seed, causal):
    weights = np.random.default_rng(seed).random((length, length)).astype(np.float32) + 1e-3
    weights = np.tril(weights) if causal else weights
    found = statistics(weights / weights.sum(-1, keepdims=True))
    assert found.shape == (len(STATISTICS),)
    assert np.isfinite(found).all()


def test_a_previous_token_map_is_all_on_offset_minus_one():
    weights = np.eye(10, k=-1, dtype=np.float32)
    weights[0, 0] = 1
    assert at(weights, "mass at offset -1") == 1
    assert at(weights, "mass at offset +1") == 0


def test_block_statistic_by_a_loop_over_cuts():
    rng = np.random.default_rng(0)
    weights = rng.random((9, 9)).astype(np.float32)
    weights /= weights.sum(-1, keepdims=True)
    best = -np.inf
    for cut in range(2, 8):
        inside = sum(float(weights[i, j]) for i in range(9) for j in range(9) if (i < cut) == (j < cut))
        best = max(best, (inside - (cut**2 + (9 - cut) ** 2) / 9) / 9)
    assert at(weights, "two blocks best cut") == pytest.approx(best)


@pytest.mark.parametrize("length", [3, 8, 13, 64])
def test_the_coarse_picture_of_a_uniform_map_is_uniform(length):
    weights = np.full((length, length), 1 / length, dtype=np.float32)
    coarse = statistics(weights)[-BANDS * BANDS :]
    np.testing.assert_allclose(coarse, 1 / BANDS, rtol=1e-5)


def test_features_stacks_maps_of_different_lengths_and_leaves_them_alone():
    maps = [np.full((n, n), 1 / n, dtype=np.float32) for n in (4, 7)]
    before = [one.copy() for one in maps]
    assert features(maps).shape == (2, len(STATISTICS))
    assert all(np.array_equal(a, b) for a, b in zip(maps, before, strict=True))


def test_columns_and_halves_by_hand():
    weights = np.array([[0.5, 0.1, 0.2, 0.1, 0.1]] * 5, dtype=np.float32)
    assert at(weights, "strongest column") == pytest.approx(0.5)
    assert at(weights, "second column") == pytest.approx(0.2)
    assert at(weights, "strongest inner column") == pytest.approx(0.2)
    assert at(weights, "first half of keys") == pytest.approx(0.8)  # the middle key is of the first half
    assert at(weights, "lower-left half") == pytest.approx((4 * 0.5 + 3 * 0.1 + 2 * 0.2 + 0.1) / 5)
    assert at(np.ones((1, 1), dtype=np.float32), "second column") == 0
