"""When a head begins to look somewhere: against a loop, and orders that are put in."""

import numpy as np
import pytest

from core.studies.comparison.development import NEVER, change_points, role_order


def begun(curve, bound):
    """Scanning back from the last snapshot."""
    first = NEVER
    for place in reversed(range(len(curve))):
        if not curve[place] > bound:
            break
        first = place
    return first


def test_a_head_has_a_role_from_the_first_snapshot_after_which_it_keeps_it():
    rng = np.random.default_rng(0)
    values = rng.random((9, 4, 5))
    values[-3:, 1] = 0.9
    values[0, 2, 2] = np.nan
    values[:, 0, 0] = 0.8
    before = values.copy()
    points = change_points(values, 0.4)
    for layer, head in np.ndindex(4, 5):
        assert points[layer, head] == begun(values[:, layer, head], 0.4)
    assert points[0, 0] == 0
    assert (points == NEVER).any()
    assert np.array_equal(values, before, equal_nan=True)


def test_the_earlier_role_comes_first_and_a_role_without_heads_never_does():
    points = {
        "early": np.array([[2, 3], [2, NEVER]]),
        "late": np.array([[7, 8], [6, 7]]),
        "none": np.full((2, 2), NEVER),
    }
    orders = role_order(points, seed=0)
    assert (orders["early"].heads, orders["early"].earliest, orders["early"].median) == (3, 2, 2)
    assert orders["early"].first == 1
    assert 6 <= orders["late"].low <= orders["late"].median == 7 <= orders["late"].high <= 8
    assert orders["late"].first == orders["none"].first == 0
    assert np.isnan(orders["none"].median)


def test_a_median_is_the_snapshot_by_which_half_of_the_heads_have_begun():
    """Of two heads that began at n and n + 1, n, whatever n is; halves were rounded to even ones."""
    for n in range(4):
        order = role_order({"role": np.array([n, n + 1])}, seed=0)["role"]
        assert (order.median, order.low, order.high) == (n, n, n + 1)
    of_six = np.array([1, 1, 4, 5, 9, 9])
    order = role_order({"role": of_six}, seed=0)["role"]
    assert order.median == 4
    assert {order.low, order.high} <= set(of_six.tolist())


def test_roles_of_one_kind_are_first_as_often():
    rng = np.random.default_rng(1)
    firsts = [
        role_order({"a": rng.integers(10, size=12), "b": rng.integers(10, size=12)}, seed=k, draws=99)["a"].first
        for k in range(100)
    ]
    assert np.mean(firsts) == pytest.approx(0.55, abs=0.1)  # ties count for both
