"""Which heads recur over runs: intervals beside statsmodels' and scipy's."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from core.scoring.circuits import recurring, recurs_by_chance


def test_shares_have_the_intervals_of_statsmodels_and_scipy():
    matched = np.random.default_rng(0).random((7, 5)) < 0.6
    found = recurring(matched)
    assert found.found.tolist() == matched.sum(0).tolist()
    for head, count in enumerate(found.found):
        expected = proportion_confint(count, 7, method="wilson")
        assert (found.low[head], found.high[head]) == pytest.approx(expected)
    shares = matched.mean(1)
    ends = stats.t.interval(0.95, 6, shares.mean(), stats.sem(shares))
    assert (found.share, found.share_low, found.share_high) == pytest.approx((shares.mean(), *ends))
    assert (found.everywhere, found.nowhere) == (matched.all(0).sum(), (~matched).all(0).sum())


def test_one_run_has_no_interval_over_runs_and_runs_that_keep_all_are_cut_at_one():
    assert np.isnan(recurring(np.ones((1, 3), dtype=bool)).share_low)
    all_kept = recurring(np.ones((3, 4), dtype=bool))
    assert (all_kept.share, all_kept.share_low, all_kept.share_high, all_kept.everywhere) == (1, 1, 1, 4)
    once = recurring(np.eye(3, 4, dtype=bool)[[0, 2, 2]] & [[True], [False], [False]])
    assert once.share == pytest.approx(1 / 12)
    assert once.share_low == 0


def test_heads_in_all_runs_have_the_tail_that_random_choices_have():
    found = np.zeros((3, 10), dtype=bool)
    found[0, :5] = found[1, 2:7] = found[2, 3:9] = True  # heads 4 and 5 in all three
    rng = np.random.default_rng(0)
    drawn = [np.stack([rng.permutation(run) for run in found]).all(0).sum() for _ in range(4000)]
    assert recurs_by_chance(found) == pytest.approx(np.mean(np.array(drawn) >= found.all(0).sum()), abs=0.03)
    assert recurs_by_chance(found[:2]) == pytest.approx(stats.hypergeom.sf(2, 10, 5, 5))
    assert recurs_by_chance(found[:1]) == pytest.approx(1)
    assert recurs_by_chance(np.zeros((3, 4), dtype=bool)) == pytest.approx(1)
    same = np.tile(np.arange(72) < 8, (3, 1))
    assert recurs_by_chance(same) < 1e-12


@pytest.mark.slow  # 4 CPU seconds: 400 draws
def test_the_interval_over_runs_covers():
    """Runs that keep each of 36 heads with a chance that differs between runs."""
    rng, covered = np.random.default_rng(1), 0
    for _ in range(400):
        chance = np.clip(rng.normal(0.6, 0.1, size=5), 0, 1)
        found = recurring(rng.random((5, 36)) < chance[:, None])
        covered += found.share_low <= 0.6 <= found.share_high
    assert covered >= 0.93 * 400
