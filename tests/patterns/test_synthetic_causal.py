"""Synthetic maps of decoders: causal, of every class, and with the class that a clear map has."""

import numpy as np
import pytest

from core.codebook.registry import GPT2
from core.patterns import forest
from core.patterns.shapes import statistics
from core.patterns.synthetic_causal import causal_probabilities, synthetic_causal_maps

LENGTH, CUT = 24, 10


def causal(weights):
    lower = np.tril(weights)
    return lower / lower.sum(1, keepdims=True)


def columns(*keys):
    weights = np.full((LENGTH, LENGTH), 0.01)
    weights[:, list(keys)] = 1
    return causal(weights)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (np.eye(LENGTH), "diagonal"),
        (causal(np.eye(LENGTH, k=-1) + 0.01), "diagonal"),
        (columns(0), "majority"),
        (causal(columns(2) * (np.arange(LENGTH) < CUT)[:, None] + columns(11)), "block"),
        (causal(np.ones((LENGTH, LENGTH))), "overall"),
    ],
)
def test_a_clear_map_has_its_class(weights, expected):
    likely = causal_probabilities(weights, CUT)
    assert likely.sum() == pytest.approx(1)
    assert GPT2.names[likely.argmax()] == expected
    assert likely.max() > 0.6


def test_synthetic_maps_are_causal_and_of_every_class():
    maps, likely = synthetic_causal_maps(200, 3)
    for weights in maps:
        np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)
        assert not np.triu(weights, 1).any()
    assert np.isfinite(statistics(maps)).all()
    np.testing.assert_allclose(likely.sum(1), 1)
    assert (np.bincount(likely.argmax(1), minlength=4) >= 15).all()
    again, same = synthetic_causal_maps(200, 3)
    np.testing.assert_array_equal(same, likely)
    assert all((one == other).all() for one, other in zip(maps, again, strict=True))


def test_rare_classes_of_decoders_have_more_weight():
    shares, trust = np.eye(4)[[0] * 16 + [1]], np.ones(17)
    balanced, weights = forest._balanced(shares, trust)
    np.testing.assert_allclose(balanced, shares)
    assert weights[-1] / weights[0] == pytest.approx(16**forest.BALANCE)
