import numpy as np
import pytest

from core.codebook.registry import BERT
from core.patterns.forest import planted
from core.patterns.shapes import shapes
from core.patterns.synthetic import class_probabilities, synthetic_maps

SYNTHETIC = [7382.0, -0.870443985, 1910.53369, 1061.54846]
LIKELY = [87.506847, 81.2041059, 37.3398221, 23.7133268, 70.2358983]
PLANTED = [642.0, 0.880358059, 132.554626, 56.8242683]
STATISTICS = [
    0.54364, 0.54824, 0.16429, 1.1432, 1.3014, 0.65409, 0.50855, 0.31756, 0.76148, 1.7287, 0.93924, 1.5628,
    1.8197, 2.9078, 0.55403, 1.0684, 1.2215, 1.3921, 1.0982, 1.3869, 1.7537, 0.32037, 1.0614, 1.0963, 1.3927,
    1.5734, 1.0585, 1.4165, 1.1762, 1.2845, 1.4432, 1.0924, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
    0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
]  # fmt: skip
OF_CAUSAL = [
    0.6831, 0.67138, 0.11499, 0.97313, 1.1928, 0.72499, 0.74366, 0.58583, 0.55921, 1.516, 1.6592, 2.1762,
    2.2024, 3.1254, 0.75289, 1.3617, 1.4636, 1.8623, 1.5307, 1.3421, 1.9626, 0.30484, 1.0656, 1.1691, 1.6045,
    1.8104, 1.3597, 1.6262, 1.2598, 1.55, 1.4872, 1.0373, 1.3051, 1.9088, 1.8183, 1.2564, 1.1797, 0.72032,
    0.6629, 0.58526, 3.309, 4.7031, 4.7138, 1.996, 2.6629, 2.319, 1.7321, 1.6108, 5.0013,
]  # fmt: skip
ONE, TWO, EVEN = np.zeros(20, dtype=bool), np.arange(20) >= 8, np.arange(16) >= 8


def with_column(rows):
    weights = np.full((20, 20), 0.5 / 19)
    weights[:, 7] = 0.5
    weights[rows:] = 1 / 20
    return weights


def squares(second=TWO):
    weights = (second[:, None] == second).astype(float)
    return weights / weights.sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("weights", "second", "expected"),
    [
        (with_column(20), ONE, "vertical"),
        (with_column(6), ONE, "heterogeneous"),
        (np.eye(20), ONE, "diagonal"),
        (np.eye(20) / 2 + with_column(20) / 2 + 0.25 * (np.arange(20) == 7), ONE, "vertical+diagonal"),
        (squares(), TWO, "block"),
        (squares(), ONE, "heterogeneous"),
        (np.full((20, 20), 0.05), TWO, "heterogeneous"),
        (squares(EVEN), EVEN, "block"),  # each cell has 0.125, also those of the main diagonal
        (squares(EVEN) / 2 + np.eye(16) / 2, EVEN, "diagonal"),
    ],
)
def test_a_clear_map_has_its_class(weights, second, expected):
    likely = class_probabilities(weights, second)
    assert likely.sum() == pytest.approx(1)
    assert BERT.names[likely.argmax()] == expected
    assert likely.max() > 0.6


def test_a_column_is_more_likely_followed_in_more_rows():
    likely = [class_probabilities(with_column(rows), ONE)[0] for rows in (10, 12, 13, 15)]
    assert likely == sorted(likely)
    assert likely[0] < 0.3
    assert likely[-1] > 0.7


def test_synthetic_maps_have_every_class_and_many_lengths():
    maps, likely = synthetic_maps(150, 1)
    assert set(likely.argmax(1)) == set(range(5))
    assert len({len(one) for one in maps}) > 20
    assert all(np.allclose(one.sum(1), 1, atol=1e-5) for one in maps)
    assert ((likely.max(1) < 0.8).mean()) > 0.15, "maps near borders"
    again, _ = synthetic_maps(150, 1)
    assert all(np.array_equal(one, other) for one, other in zip(maps, again, strict=True))


def sums(maps):
    """Sums over maps in which every cell has a factor of its own."""
    factors = [np.cos(1.3 * np.arange(len(one)))[:, None] * np.sin(0.7 + np.arange(len(one))) for one in maps]
    own = sum(float((factor * one).sum()) for factor, one in zip(factors, maps, strict=True))
    return [sum(map(len, maps)), own, *(float(sum((one**power).sum() for one in maps)) for power in (2, 3))]


def test_the_bundled_classifier_was_trained_on_these_maps_and_statistics():
    """Another recipe needs another training (data/recipes), and then other sums here."""
    maps, likely = synthetic_maps(300, 0)
    np.testing.assert_allclose(sums(maps), SYNTHETIC, rtol=1e-4)
    np.testing.assert_allclose(likely.sum(0), LIKELY, rtol=1e-6)
    found, _ = planted(maps[:40], [BERT.names[k] for k in likely[:40].argmax(1)], BERT.names, enough=20)
    np.testing.assert_allclose(sums(found), PLANTED, rtol=1e-4)
    back = [np.tril(one) / np.tril(one).sum(1, keepdims=True) for one in maps[:20]]  # as a decoder's
    for chosen, expected in ((maps[:60], STATISTICS), (back, OF_CAUSAL)):
        by_four = shapes(chosen).mean(0).reshape(-1, 4)
        np.testing.assert_allclose(by_four @ [1, 0.7, 0.4, 1.3], expected, rtol=1e-3, atol=1e-5)
