"""The regressions beside the trees return what those of scikit-learn return."""

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression

from core.codebook.registry import BERT
from core.patterns.forest import (
    CLIPPED,
    FLOOR,
    KERNEL,
    LEAST,
    PENALTY,
    STRENGTH,
    WIDTH,
    Growth,
    _grown,
    _of_all,
    _of_forest,
    _statistics,
    fit_forest,
    fit_regressions,
    kernel_probabilities,
    linear_probabilities,
    parts,
)
from core.patterns.shapes import NAMES, OF_ALL, SENTENCE_NAMES, statistics
from tests.codebook.drawn_maps import synthetic_maps

COLUMNS = len(SENTENCE_NAMES) + 4


def test_they_are_scikit_learns_with_weights():
    rng = np.random.default_rng(0)
    measured, new = rng.normal(size=(80, COLUMNS)), rng.normal(size=(30, COLUMNS)) * 2
    shares, weights = rng.dirichlet(np.ones(3), 80), rng.uniform(0.3, 1, 80)
    arrays = fit_regressions(measured, shares, weights, 60)
    real = measured[:60]
    scaled, asked = (np.clip((one - real.mean(0)) / (real.std(0) + 1e-3), -CLIPPED, CLIPPED) for one in (measured, new))
    mean = np.average(shares, axis=0, weights=weights)
    model = KernelRidge(alpha=PENALTY, kernel="rbf", gamma=WIDTH / COLUMNS)
    expected = np.maximum(model.fit(scaled, shares - mean, sample_weight=weights).predict(asked) + mean, LEAST)
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(kernel_probabilities(arrays, new), expected, atol=2e-3)  # places are float16
    each = [(row, number, share) for row, of in enumerate(shares) for number, share in enumerate(of) if share >= 0.05]
    rows, numbers, given = (np.array(column) for column in zip(*each, strict=True))
    linear = LogisticRegression(C=STRENGTH, max_iter=2000, tol=1e-8)
    linear.fit(scaled[rows], numbers, sample_weight=given * weights[rows])
    np.testing.assert_allclose(linear_probabilities(arrays, new), linear.predict_proba(asked), atol=0.02)


def test_a_class_without_examples_has_no_probability():
    shares = np.array([[0.5, 0.0, 0.5, 0.0], [0.1, 0.0, 0.1, 0.8], [0.8, 0.0, 0.1, 0.1]])[np.arange(9) % 3]
    measured = np.random.default_rng(1).normal(size=(9, COLUMNS))
    arrays = fit_regressions(measured, shares, np.ones(9), 9)
    for found in (kernel_probabilities(arrays, measured), linear_probabilities(arrays, measured)):
        assert (found[:, 1] == 0).all()
        assert np.allclose(found.sum(1), 1)


def test_encoders_classes_alone_have_them():
    maps, names, _ = synthetic_maps(each=8)
    numbers = np.array([BERT.names.index(name) for name in names])
    kept = {"origins": [str(k % 2) for k in range(len(maps))], "growth": Growth(10, rounds=2)}
    arrays = _grown(_statistics(maps), parts(numbers, len(BERT)), (), (), BERT.names, Growth(10, rounds=2))
    assert KERNEL + "mean" not in fit_forest(maps, numbers, (*BERT.names, "own"), **kept)
    # the same classifier with every statistic, or with those of encoders alone
    every = statistics(maps[:5])
    few = np.concatenate([every[:, :OF_ALL], every[:, len(NAMES) :]], axis=1)
    models = [_of_forest(arrays, every), kernel_probabilities(arrays, every), linear_probabilities(arrays, every)]
    product = np.prod([np.cbrt(one + FLOOR) for one in models], axis=0)
    np.testing.assert_allclose(_of_all(arrays, every, models[0]), product / product.sum(1, keepdims=True))
    np.testing.assert_allclose(_of_all(arrays, few, models[0]), _of_all(arrays, every, models[0]))


def test_small_probabilities_count_for_the_temperature_but_are_no_examples():
    soft = np.array([[0.97, 0.03], [0.4, 0.6], [0.02, 0.98]])
    known = parts(np.array([0, 1, 1]), 2, soft)
    assert known.maps.tolist() == [0, 1, 1, 2]
    np.testing.assert_array_equal(known.of(np.array([2, 0])).shares(2, 2), soft[[2, 0]])
