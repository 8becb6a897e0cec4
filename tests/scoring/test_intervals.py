"""Means and their bootstrap: exact sums, the same however inputs are batched, honest intervals."""

import numpy as np
import pytest

from core.scoring.intervals import FEWEST, Means, draws


def _filled(values, counts, batches, *, resamples=50):
    means = Means(1, values.shape[1], values.shape[2], seed=3, resamples=resamples)
    for batch in batches:
        means.update(0, values[batch], counts[batch], [int(k) for k in batch])
    return means


@pytest.fixture
def data():
    chance = np.random.default_rng(0)
    return chance.normal(0.3, 0.1, (40, 2, 3)), chance.integers(0, 3, (40, 3)).astype(float)


def test_the_mean_is_the_sum_over_the_count_of_inputs_that_have_it(data):
    values, counts = data
    found = _filled(values, counts, [range(40)]).result()
    for head in range(2):
        for k in range(3):
            seen = [i for i in range(40) if counts[i, k] > 0]
            expected = sum(values[i, head, k] for i in seen) / sum(counts[i, k] for i in seen)
            assert found.value[0, head, k] == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(found.n, counts.sum(0))


def test_batches_shards_and_order_change_nothing(data):
    values, counts = data
    whole = _filled(values, counts, [range(40)]).result()
    order = np.random.default_rng(1).permutation(40)
    parts = [_filled(values, counts, [order[:7], order[7:20]]), _filled(values, counts, [order[20:]])]
    parts[0].merge(Means.unpacked(parts[1].packed()))
    split = parts[0].result()
    for name in ("value", "low", "high", "error"):
        np.testing.assert_allclose(getattr(whole, name), getattr(split, name), atol=1e-5)


def test_resamples_are_ratios_of_drawn_sums(data):
    values, counts = data
    means = _filled(values, counts, [range(40)])
    times = np.stack([draws(3, i, 50) for i in range(40)])
    kept = np.where(counts[:, None, :] > 0, values, 0)
    expected = np.einsum("ib,ihk->bhk", times, kept) / np.einsum("ib,ik->bk", times, counts)[:, None]
    np.testing.assert_allclose(means.result().low[0], np.quantile(expected, 0.025, axis=0), atol=1e-5)


def test_intervals_cover_the_true_mean_about_as_often_as_they_say():
    covered = 0
    for seed in range(200):
        means = Means(1, 1, 1, seed=seed, resamples=200)
        sample = np.random.default_rng([9, seed]).exponential(1.0, (60, 1, 1))
        means.update(0, sample, np.ones((60, 1)), list(range(60)))
        found = means.result()
        covered += bool(found.low[0, 0, 0] <= 1.0 <= found.high[0, 0, 0])
    assert 0.85 <= covered / 200 <= 0.99


def test_what_no_input_has_is_not_a_number_and_never_zero():
    means = Means(1, 2, 2, resamples=20)
    means.update(0, np.full((3, 2, 2), np.nan), np.array([[0.0, 0], [0, 0], [0, 0]]), [0, 1, 2])
    found = means.result()
    assert np.isnan(found.value).all()
    assert np.isnan(found.low).all()
    assert np.isnan(found.p_above()).all()
    assert not found.n.any()


def test_p_is_small_above_the_null_large_below_and_exact_without_spread():
    means = Means(1, 3, 1, resamples=200)
    sample = np.random.default_rng(0).normal([[1.0], [-1.0], [0.0]], 0.5, (50, 3, 1))
    sample[:, 2] = 0.0
    means.update(0, sample, np.ones((50, 1)), list(range(50)))
    p = means.result().p_above()[0, :, 0]
    assert p[0] < 1e-6
    assert p[1] > 0.999
    assert p[2] == 1


def test_few_inputs_give_an_interval_but_no_p():
    means = Means(1, 1, 1)
    means.update(0, np.full((FEWEST - 1, 1, 1), 2.0), np.ones((FEWEST - 1, 1)), list(range(FEWEST - 1)))
    found = means.result()
    assert found.value == 2
    assert np.isnan(found.p_above()).all()
    means.update(0, np.full((1, 1, 1), 2.0), np.ones((1, 1)), [99])
    assert means.result().p_above() == 0


def test_differences_are_paired(data):
    """The same inputs are drawn in both, so a constant shift has no spread at all."""
    values, _ = data
    counts = np.ones((40, 3))
    found = _filled(values + 0.25, counts, [range(40)]).result(minus=_filled(values, counts, [range(40)]))
    np.testing.assert_allclose(found.value, 0.25, atol=1e-6)
    np.testing.assert_allclose(found.high - found.low, 0, atol=1e-5)


def test_a_difference_is_tested_either_way():
    chance = np.random.default_rng(0)
    values = np.stack([chance.normal(mean, 0.1, 40) for mean in (0.5, -0.5, 0.0)], 1)[:, None, :]
    means = _filled(np.concatenate([values, np.zeros((40, 1, 1))], 2), np.ones((40, 4)), [range(40)])
    found = means.result()
    p = found.p_either()[0, 0]
    assert p[0] < 1e-6
    assert p[1] < 1e-6
    assert p[2] > 0.05
    assert p[3] == 1  # the same everywhere
    assert found.p_above()[0, 0, 1] > 0.99
    assert np.isnan(_filled(values[:4], np.ones((4, 3)), [range(4)]).result().p_either()).all()
