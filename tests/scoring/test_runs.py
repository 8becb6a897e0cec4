"""Scores of several runs: means, intervals that cover, differences paired by row."""

import numpy as np
import pytest
from scipy import stats

from core.interval import Interval
from core.scoring.influence import mean_score, score_difference


def test_a_mean_over_runs_and_its_difference():
    gold = np.array([0, 1] * 30)
    right, half = np.tile(gold, (2, 1)), np.stack([gold, np.zeros(60, dtype=int)])
    whole = mean_score("accuracy", gold, right)
    assert (whole.value, whole.high) == (1, 1)
    assert 0.9 < whole.low < 0.96
    some = mean_score("accuracy", gold, half)
    assert some.value == pytest.approx(0.75)
    assert some.low < 0.6
    assert some.high > 0.9  # two runs that differ: the interval says so
    more = score_difference("accuracy", gold, right, half)
    assert more.value == pytest.approx(0.25)
    same = score_difference("accuracy", gold, half, half)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    assert mean_score("pearson", gold, np.zeros((1, 60))) == Interval(None, None, None)
    assert some.fields() == {"value": some.value, "low": some.low, "high": some.high}


def test_intervals_cover_the_share_that_was_planted():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(60):
        gold = np.ones(150, dtype=int)
        found = mean_score("accuracy", gold, (rng.random((1, 150)) < 0.7).astype(int))
        covered += found.low <= 0.7 <= found.high
    assert covered >= 52


def test_a_score_of_one_run_is_agresti_and_coulls_and_of_a_correlation_fishers():
    gold, rng = np.ones(48, dtype=int), np.random.default_rng(1)
    right = (np.arange(48) < 36).astype(int)
    found, share = mean_score("accuracy", gold, right[None]), 38 / 52
    reach = stats.t.ppf(0.975, 47) * np.sqrt(share * (1 - share) / 52)
    assert (found.low, found.high) == pytest.approx((share - reach, share + reach), abs=2e-3)
    x = rng.normal(size=400)
    y = x + rng.normal(size=400)
    r = mean_score("pearson", x, y[None])
    fisher = np.arctanh(r.value) + 1.96 / np.sqrt(397) * np.array([-1, 1])
    assert (r.low, r.high) == pytest.approx(tuple(np.tanh(fisher)), abs=0.006)


def test_one_row_has_no_interval():
    one = np.array([1])
    assert mean_score("accuracy", one, one[None]) == Interval(1.0, None, None)
    assert score_difference("accuracy", one, one[None], 1 - one[None]) == Interval(1.0, None, None)


def test_two_seeds_say_less_than_many():
    """Runs that differ by more than rows explain: two of them leave nearly everything open, twelve do not."""
    gold, rng = np.ones(2000, dtype=int), np.random.default_rng(3)
    many = (rng.random((12, 2000)) < rng.normal(0.7, 0.05, (12, 1))).astype(int)
    few, all_of_them = mean_score("accuracy", gold, many[:2]), mean_score("accuracy", gold, many)
    assert few.high - few.low > 3 * (all_of_them.high - all_of_them.low)


def test_correlations_of_runs_that_differ_leave_more_open_and_a_change_of_sign_is_a_change_of_two():
    rng = np.random.default_rng(0)
    gold = rng.normal(size=300)
    near, far = gold + 0.3 * rng.normal(size=300), gold + 3 * rng.normal(size=300)
    apart, alike = mean_score("pearson", gold, np.stack([near, far])), mean_score("pearson", gold, np.stack([far, far]))
    assert apart.high - apart.low > 5 * (alike.high - alike.low)  # of two runs, with one degree of freedom
    turned = score_difference("pearson", gold, near[None], -near[None])
    assert turned.value == pytest.approx(2 * np.corrcoef(gold, near)[0, 1])
    assert 1 < turned.low < turned.value < turned.high <= 2
