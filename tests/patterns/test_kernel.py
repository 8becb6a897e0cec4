"""The kernel regression beside the trees says what scikit-learn's says."""

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from core.codebook.registry import BERT
from core.patterns.forest import (
    CLIPPED,
    KERNEL,
    LEAST,
    PENALTY,
    WIDTH,
    Growth,
    _spread,
    fit_forest,
    fit_kernel,
    kernel_probabilities,
)
from tests.codebook.drawn_maps import synthetic_maps


def test_it_is_scikit_learns_kernel_ridge_with_weights():
    rng = np.random.default_rng(0)
    measured, new = rng.normal(size=(80, 6)), rng.normal(size=(30, 6)) * 2
    shares, weights = rng.dirichlet(np.ones(3), 80), rng.uniform(0.3, 1, 80)
    spread = _spread(measured)
    arrays = spread | fit_kernel(measured, shares, weights, spread)
    scaled, asked = (
        np.clip((one - measured.mean(0)) / (measured.std(0) + 1e-3), -CLIPPED, CLIPPED) for one in (measured, new)
    )
    mean = np.average(shares, axis=0, weights=weights)
    model = KernelRidge(alpha=PENALTY, kernel="rbf", gamma=WIDTH / 6)
    expected = np.maximum(model.fit(scaled, shares - mean, sample_weight=weights).predict(asked) + mean, LEAST)
    np.testing.assert_allclose(
        kernel_probabilities(arrays, new), expected / expected.sum(1, keepdims=True), atol=2e-3
    )  # places are float16


def test_a_class_without_examples_has_no_probability():
    shares = np.tile([0.5, 0.5, 0.0], (9, 1))
    measured = np.random.default_rng(1).normal(size=(9, 4))
    arrays = _spread(measured) | fit_kernel(measured, shares, np.ones(9), _spread(measured))
    found = kernel_probabilities(arrays, measured)
    assert (found[:, 2] == 0).all()
    assert np.allclose(found.sum(1), 1)


def test_encoders_classes_alone_have_it():
    maps, names, _ = synthetic_maps(each=8)
    numbers = np.array([BERT.names.index(name) for name in names])
    kept = {"origins": [str(k % 2) for k in range(len(maps))], "growth": Growth(10, rounds=2)}
    assert KERNEL + "mean" not in fit_forest(maps, numbers, (*BERT.names, "own"), **kept)
