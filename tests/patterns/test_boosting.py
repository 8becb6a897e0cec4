"""Boosted trees as plain arrays say what scikit-learn's say."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

from core.patterns import forest
from core.patterns.forest import BINS, LEAVES, RATE, RIDGE, Examples, boosted_probabilities, fit_boosted, has_boosted


@pytest.mark.parametrize("present", [(0, 1, 2), (1, 3), (0, 2, 3, 4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_arrays_say_what_scikit_learn_says(present, weighted):
    rng = np.random.default_rng(len(present))
    numbers = rng.choice(present, 120)
    measured = rng.normal(size=(120, 7)) + numbers[:, None] * rng.normal(size=7)
    weights = rng.uniform(0.2, 1, 120) if weighted else None
    arrays = fit_boosted(Examples(measured, numbers, weights), 5, rounds=12)
    model = HistGradientBoostingClassifier(
        max_iter=12,
        learning_rate=RATE,
        max_leaf_nodes=LEAVES,
        l2_regularization=RIDGE,
        early_stopping=False,
        random_state=0,
        max_bins=BINS,
    )
    new = rng.normal(size=(40, 7)) * 2
    seen, asked = measured.astype(np.float32), new.astype(np.float32)
    if weighted:  # by numbers of bins of even counts
        edges = [np.unique(np.sort(column)[(len(seen) - 1) * np.arange(1, BINS) // BINS]) for column in seen.T]
        seen, asked = (
            np.stack([[(of < value).sum() for value in column] for of, column in zip(edges, rows.T, strict=True)], 1)
            for rows in (seen, asked)
        )
    model.fit(seen, numbers, sample_weight=weights)
    found = boosted_probabilities(arrays, new)
    expected = np.zeros((40, 5))
    expected[:, model.classes_] = model.predict_proba(asked)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert all(values.dtype != object for values in arrays.values()), "nothing that needs a pickle"


def test_one_class_alone_has_nothing_to_boost():
    arrays = fit_boosted(Examples(np.zeros((10, 3)), np.full(10, 2)), 4)
    assert arrays == {}
    assert not has_boosted(arrays)


def held_out(right_of_forest, right_of_boosted, *, maps=100):
    """Two classes; the first so many maps of each part are answered rightly, by either, with a probability of .9."""
    truth = np.arange(maps) % 2

    def said(right):
        answers = np.where(np.arange(maps) < right, truth, 1 - truth)
        return np.where(answers[:, None] == np.arange(2), 0.9, 0.1)

    of_all = None if right_of_boosted is None else (said(right_of_forest) + said(right_of_boosted)) / 2
    return forest._HeldOut(said(right_of_forest), of_all, np.eye(2)[truth])


@pytest.mark.parametrize(
    ("parts", "helps"),
    [
        ([(80, 90), (80, 80)], True),
        ([(80, 80), (80, 70)], False),
        ([(80, 90), (80, 55)], False),  # much on one part, more is lost on the other
        ([(80, 90), (80, None)], False),  # one part of one class alone
    ],
)
def test_boosted_trees_have_a_say_where_they_lower_the_loss_on_what_was_left_out(parts, helps):
    assert forest._calibrated([held_out(*part) for part in parts])[1] is helps


def test_boosted_trees_have_half_of_the_say():
    rng = np.random.default_rng(0)
    measured, numbers = rng.normal(size=(60, 5)), rng.integers(3, size=60)
    trees = ExtraTreesClassifier(5, random_state=0).fit(measured.astype(np.float32), numbers)
    arrays = forest._nodes(trees, 3) | fit_boosted(Examples(measured, numbers), 3, rounds=2)
    of_forest = forest._of_forest(arrays, measured)
    expected = (of_forest + boosted_probabilities(arrays, measured)) / 2
    np.testing.assert_allclose(forest._of_all(arrays, measured, of_forest), expected)
    one = held_out(80, 90)
    np.testing.assert_array_equal(one.of(True), one.of_all)
    np.testing.assert_array_equal(one.of(False), one.of_forest)


def test_the_temperature_has_the_least_loss_against_the_shares_of_maps_on_which_people_part():
    sure, half = np.tile([0.95, 0.05], (50, 1)), np.full((50, 2), 0.5)
    kept, _ = forest._temperature([forest._HeldOut(sure, None, sure)], both=False)
    milder, _ = forest._temperature([forest._HeldOut(sure, None, half)], both=False)
    assert kept == pytest.approx(1, abs=0.02)
    assert milder == pytest.approx(forest.TEMPERATURES[1], abs=0.01), "as mild as allowed"
