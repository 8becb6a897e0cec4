"""Rank correlations beside scipy's, and their intervals beside what other draws of heads give."""

import numpy as np
import pytest
from scipy import stats

from core.errors import InputError
from core.scoring.rank_agreement import rank_correlation


def test_the_value_is_scipys_ties_and_all():
    rng = np.random.default_rng(0)
    for _ in range(5):
        first, second = rng.integers(0, 6, (2, 12))
        found = rank_correlation(first, second)
        assert found.value == pytest.approx(stats.spearmanr(first, second).statistic)
        assert -1 <= found.low <= found.value <= found.high <= 1
        assert found.n == 12
    order = np.arange(10.0)
    same, turned = rank_correlation(order, order**3), rank_correlation(order, -order)
    assert (same.value, same.low, same.high) == pytest.approx((1, 1, 1))
    assert (turned.value, turned.low, turned.high) == pytest.approx((-1, -1, -1))


def test_the_interval_is_as_wide_as_draws_of_heads_spread():
    rng = np.random.default_rng(1)
    first = rng.normal(size=60)
    second = first + rng.normal(size=60)
    found = rank_correlation(first, second, seed=3)
    drawn = [stats.spearmanr(first[k], second[k]).statistic for k in rng.integers(60, size=(300, 60))]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.06)


def test_what_ranks_nothing_has_no_correlation():
    two = rank_correlation(np.array([1.0, 2.0]), np.array([2.0, 1.0]))
    constant = rank_correlation(np.ones(5), np.arange(5.0))
    assert {two.value, two.low, two.high, constant.value, constant.low, constant.high} == {None}
    assert (two.n, constant.n) == (2, 5)
    with pytest.raises(InputError, match=r"shapes \(3,\) and \(4,\)"):
        rank_correlation(np.ones(3), np.ones(4))


def test_fewer_than_ten_heads_have_a_correlation_without_an_interval():
    order = np.arange(10.0)
    nine, ten = (rank_correlation(order[:n], order[:n] ** 2) for n in (9, 10))
    assert nine.value == ten.value == pytest.approx(1)
    assert (nine.low, nine.high) == (None, None)
    assert np.isfinite([ten.low, ten.high]).all()
