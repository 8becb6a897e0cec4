"""Shares freed of a classifier's confusions: exact where nothing is drawn, and the intervals hold the truth."""

import numpy as np
import pytest

from core.patterns.class_shares import true_changes, true_shares

CHANCE = np.array([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]])
EXACT = np.repeat((CHANCE * 10).astype(int)[None], 50, axis=0)  # every labelled input says the same


def test_without_noise_the_true_change_and_shares_come_back():
    true = np.array([[0.5, 0.3, 0.2], [0.4, 0.5, 0.1]])
    counted = true @ CHANCE
    value, low, high = true_changes(counted[1] - counted[0], np.zeros(3), EXACT)
    assert value == pytest.approx(true[1] - true[0])
    assert np.all((low < value) & (value < high))  # 500 labelled maps of a class are no exact confusions
    heads = np.rint(counted * 10_000).astype(int)
    value, low, high = true_shares(heads, np.array([True, False, True]), EXACT)
    assert value == pytest.approx(true[:, [0, 2]].sum(1), abs=1e-3)
    assert np.all((low < value) & (value < high))


def test_a_change_of_nothing_has_no_error_from_confusions():
    noisy = np.random.default_rng(0).multinomial(2, CHANCE[0], size=(40, 3))
    value, low, high = true_changes(np.zeros(3), np.full(3, 0.01), noisy)
    assert value == pytest.approx(0)
    inverse = np.linalg.pinv((noisy.sum(0) / noisy.sum((0, 2))[:, None]).T)
    assert high == pytest.approx(np.abs(inverse).sum(1) * 0.01)
    assert low == pytest.approx(-high)


def test_a_class_without_labelled_maps_is_taken_to_be_right():
    without = EXACT.copy()
    without[:, 2] = 0
    change = np.array([0.1, -0.04, -0.06])
    value, *_ = true_changes(change @ np.vstack([CHANCE[:2], [0, 0, 1]]), np.zeros(3), without)
    assert value == pytest.approx(change)


def test_a_class_of_twelve_maps_without_an_error_does_not_show_that_there_is_none():
    """Resampling twelve right maps would give no error at all."""
    few = EXACT.copy()
    few[:, 2] = 0
    few[:12, 2, 2] = 1
    _, low, high = true_changes(np.array([0.1, 0.0, -0.1]), np.zeros(3), few)
    assert np.all(high - low > 0.01)
    _, low, high = true_shares(np.array([[0, 0, 300]]), np.array([False, False, True]), few)
    assert high[0] - low[0] > 0.01


def test_counts_that_no_shares_give_have_no_interval():
    """Maps of the third class are called the second in three of ten; those of the others never the third so often."""
    always_third = np.array([[0, 0, 1000], [500, 500, 0]])
    value, low, high = true_shares(always_third, np.array([False, False, True]), EXACT)
    assert value[0] == pytest.approx(1, abs=1e-4)
    assert np.isnan([low[0], high[0]]).all()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [0, 1])
def test_intervals_hold_the_truth_where_confusions_are_known_from_few_inputs(seed):
    rng = np.random.default_rng(seed)
    true, inside, shares = np.array([0.1, -0.06, -0.04]), [], []
    for _ in range(60):
        held_out = np.stack([rng.multinomial(2, CHANCE[k], size=60) for k in range(3)], axis=1)
        counted = true @ CHANCE + rng.normal(0, 0.004, 3)
        _, low, high = true_changes(counted, np.full(3, 1.96 * 0.004), held_out)
        inside.append((low <= true) & (true <= high))
        head = rng.multinomial(300, np.array([0.5, 0.3, 0.2]) @ CHANCE)[None]
        _, low, high = true_shares(head, np.array([True, False, False]), held_out)
        shares.append(not (low[0] > 0.5 or high[0] < 0.5))
    assert np.mean(inside) > 0.93
    assert np.mean(shares) > 0.85  # of 60: 95 % less three errors
