"""Boosted trees as plain arrays say what scikit-learn's say."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from core.patterns import forest
from core.patterns.boosting import (
    BINS,
    LEAVES,
    RATE,
    RIDGE,
    Examples,
    boosted_probabilities,
    fit_boosted,
    has_boosted,
)


@pytest.mark.parametrize("present", [(0, 1, 2), (1, 3), (0, 2, 3, 4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_arrays_say_what_scikit_learn_says(present, weighted):
    rng = np.random.default_rng(len(present))
    numbers = rng.choice(present, 120)
    measured = rng.normal(size=(120, 7)) + numbers[:, None] * rng.normal(size=7)
    weights = rng.uniform(0.2, 1, 120) if weighted else None
    arrays = fit_boosted(Examples(measured, numbers, weights), 5, rounds=12)
    model = HistGradientBoostingClassifier(
        max_iter=12, learning_rate=RATE, max_leaf_nodes=LEAVES, l2_regularization=RIDGE, early_stopping=False,
        random_state=0, max_bins=BINS,
    ).fit(measured.astype(np.float32), numbers, sample_weight=weights)  # fmt: skip
    new = rng.normal(size=(40, 7)) * 2
    found = boosted_probabilities(arrays, new)
    expected = np.zeros((40, 5))
    expected[:, model.classes_] = model.predict_proba(new.astype(np.float32))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert all(values.dtype != object for values in arrays.values()), "nothing that needs a pickle"


def test_one_class_alone_has_nothing_to_boost():
    arrays = fit_boosted(Examples(np.zeros((10, 3)), np.full(10, 2)), 4)
    assert arrays == {}
    assert not has_boosted(arrays)


def held_out(right_of_forest, right_of_boosted, *, maps=100):
    """Two classes; the first so many maps of each part are answered rightly, by either."""
    truth = np.arange(maps) % 2

    def said(right, sure):
        answers = np.where(np.arange(maps) < right, truth, 1 - truth)
        return np.where(answers[:, None] == np.arange(2), sure, 1 - sure)

    boosted = None if right_of_boosted is None else said(right_of_boosted, 0.9)
    return forest._HeldOut(said(right_of_forest, 0.6), boosted, truth)


@pytest.mark.parametrize(
    ("parts", "helps"),
    [
        ([(80, 84), (80, 80)], True),  # two points in the mean
        ([(80, 81), (80, 80)], False),  # half a point
        ([(80, 90), (80, 60)], False),  # much on one part, less on the other
        ([(80, 90), (80, None)], False),  # one part of one class alone
    ],
)
def test_boosted_trees_have_a_say_where_they_bring_a_point_on_what_was_left_out(parts, helps):
    assert forest._helps([held_out(*part) for part in parts], 2) is helps


def test_half_of_the_say_is_the_mean_of_both():
    one = held_out(80, 90)
    np.testing.assert_allclose(one.of(True), (one.of_forest + one.of_boosted) / 2)
    np.testing.assert_array_equal(one.of(False), one.of_forest)
