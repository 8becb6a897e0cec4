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


def test_every_two_operators_across_halves_spelled_out():
    effects = np.random.default_rng(1).normal(size=(3, 10, 40)) + np.linspace(-1, 1, 10)[None, :, None]
    kept = effects.copy()
    found = operators_agree(effects, seed=4, resamples=100, halves=7)
    generator = np.random.default_rng(4)
    halves = [generator.permutation(40) < 20 for _ in range(7)]
    for one in range(3):
        for two in range(3):
            taus = []
            for half in halves:
                for side in (half, ~half):
                    taus.append(kendalltau(effects[one][:, side].mean(1), effects[two][:, ~side].mean(1)).statistic)
            assert found.tau[one, two] == pytest.approx(np.mean(taus))  # no ties: the mean of all ways
            assert found.low[one, two] <= found.tau[one, two] <= found.high[one, two]
            same = kendalltau(effects[one].mean(1), effects[two].mean(1)).statistic
            assert found.same_rows[one, two] == pytest.approx(same)
    assert found.mean_reliability(0, 1) == pytest.approx(np.sqrt(found.tau[0, 0] * found.tau[1, 1]))
    assert np.array_equal(effects, kept)
    assert found.n == 40


def shared_noise(seed, heads, truth):
    """Two operators on the same 60 rows: true effects that agree by `truth`, and noise that is mostly the rows'."""
    generator = np.random.default_rng(seed)
    means = generator.multivariate_normal([0, 0], [[1, truth], [truth, 1]], size=heads).T / np.sqrt(60)
    rows, own = generator.normal(size=(heads, 60)), generator.normal(size=(2, heads, 60))
    return means[:, :, None] + np.sqrt(0.8) * rows + np.sqrt(0.2) * own


def test_noise_that_operators_share_is_no_agreement_and_intervals_cover():
    for truth in (0.0, 0.9):
        wanted = operators_agree(shared_noise(99, 400, truth), resamples=2, halves=8).tau[0, 1]
        runs = [operators_agree(shared_noise(k, 30, truth), seed=k, resamples=100, halves=8) for k in range(30)]
        assert sum(one.low[0, 1] <= wanted <= one.high[0, 1] for one in runs) >= 24
        means = [np.mean([one.tau[0, 1] for one in runs]), np.mean([one.same_rows[0, 1] for one in runs])]
        if truth == 0:
            assert abs(means[0]) < 0.05
            assert means[1] > 0.2  # the same rows would pass noise for agreement


def test_shared_effects_agree_and_more_rows_show_it():
    generator = np.random.default_rng(2)
    truth = np.linspace(-1, 1, 15)[None, :, None]
    few, many = (
        operators_agree(truth + generator.normal(0, 1, (2, 15, rows)), seed=3, resamples=200) for rows in (20, 600)
    )
    assert many.tau[0, 1] > 0.8 > few.tau[0, 1]
    assert many.mean_reliability(0, 1) > 0.8
    assert many.low[0, 1] > 0.6


def test_an_operator_without_effects_ranks_nothing():
    effects = np.zeros((2, 5, 10))
    effects[0] = np.random.default_rng(0).normal(size=(5, 10))
    found = operators_agree(effects, resamples=20)
    assert np.isnan(found.tau[0, 1])
    assert np.isnan(found.low[0, 1])
    assert np.isnan(found.mean_reliability(0, 1))


def test_three_heads_on_four_rows_are_enough():
    effects = np.array([[0.0], [1.0], [2.0]]) + np.array([0.01, -0.02, 0.03, 0.0])
    found = operators_agree(np.stack([effects, -effects]), resamples=20)
    np.testing.assert_allclose(found.tau, [[1, -1], [-1, 1]])


def test_too_little_is_refused():
    with pytest.raises(InputError, match="got 2 heads and 5 examples"):
        operators_agree(np.zeros((2, 2, 5)))
    with pytest.raises(InputError, match="got 4 heads and 3 examples"):
        operators_agree(np.zeros((2, 4, 3)))
