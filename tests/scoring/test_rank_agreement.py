"""Rank agreement between operators equals scipy's tau-b; its interval covers and widens with fewer rows."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from core.errors import InputError
from core.scoring.rank_agreement import operators_agree, signs_between, tau_b


def test_tau_is_scipys_ties_and_all():
    generator = np.random.default_rng(0)
    for _ in range(20):
        one, two = generator.integers(0, 6, (2, 12)).astype(float)
        assert float(tau_b(signs_between(one), signs_between(two))) == pytest.approx(kendalltau(one, two).statistic)
    assert np.isnan(tau_b(signs_between(np.ones(4)), signs_between(np.arange(4.0))))


def test_every_two_operators_by_their_mean_effects():
    effects = np.random.default_rng(1).normal(size=(3, 10, 40))
    kept = effects.copy()
    found = operators_agree(effects, resamples=100)
    for one in range(3):
        for two in range(3):
            wanted = kendalltau(effects[one].mean(1), effects[two].mean(1)).statistic
            assert found.tau[one, two] == pytest.approx(wanted)
            assert found.low[one, two] <= found.tau[one, two] + 0.35
    assert np.array_equal(effects, kept)
    assert found.n == 40


def test_shared_effects_agree_and_more_rows_narrow_the_interval():
    generator = np.random.default_rng(2)
    truth = np.linspace(-1, 1, 15)[None, :, None]
    wide, narrow = (
        operators_agree(truth + generator.normal(0, 1, (2, 15, rows)), seed=3, resamples=200) for rows in (20, 600)
    )
    assert narrow.tau[0, 1] > 0.7
    assert narrow.high[0, 1] - narrow.low[0, 1] < wide.high[0, 1] - wide.low[0, 1]
    assert narrow.low[0, 1] > 0.5


def test_too_little_is_refused():
    with pytest.raises(InputError, match="seen 2 heads and 5 rows"):
        operators_agree(np.zeros((2, 2, 5)))
