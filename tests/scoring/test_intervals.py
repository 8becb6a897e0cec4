"""Means: exact sums, the same however inputs are batched; how sure they are, by group and by jackknife."""

import numpy as np
import pytest
from scipy import stats

from core.scoring.few_inputs import FEWEST
from core.scoring.intervals import Means, student


def _filled(values, counts, batches):
    means = Means(1, values.shape[1], values.shape[2])
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
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(getattr(whole, name), getattr(split, name), atol=1e-12)
    np.testing.assert_array_equal(whole.n, split.n)
    np.testing.assert_array_equal(whole.inputs, (counts > 0).sum(0))
    np.testing.assert_array_equal(split.inputs, whole.inputs)
    np.testing.assert_allclose(split.p_above(), whole.p_above(), atol=1e-12)
    assert np.isfinite(split.p_above()).all(), "a merged accumulator knows that it has seen enough"


def test_a_ratio_of_sums_moves_as_it_does_without_one_input(data):
    """The jackknife (one input left out), spelled out: its standard error is that of the linearised ratio, nearly."""
    values, counts = data
    found = _filled(values, counts, [range(40)]).result()
    for head in range(2):
        for k in range(3):
            seen = [i for i in range(40) if counts[i, k] > 0]
            whole = sum(values[i, head, k] for i in seen) / sum(counts[i, k] for i in seen)
            rest = []
            for left in seen:
                others = [i for i in seen if i != left]
                rest.append(sum(values[i, head, k] for i in others) / sum(counts[i, k] for i in others))
            n = len(seen)
            error = ((n - 1) / n * sum((one - whole) ** 2 for one in rest)) ** 0.5
            assert found.spread.error[0, head, k] == pytest.approx(error, rel=0.1)


def test_beyond_64_inputs_groups_are_the_sample():
    sample = np.random.default_rng(2).exponential(1.0, (200, 1, 1))
    means = Means(1, 1, 1)
    means.update(0, sample, np.ones((200, 1)), list(range(1000, 1200)))
    groups = [sample[[i for i in range(200) if (1000 + i) % 64 == g], 0, 0] for g in range(64)]
    found = means.result()
    assert found.value[0, 0, 0] == pytest.approx(sample.mean())
    parts = np.array([sample.mean() + (one.sum() - sample.mean() * len(one)) * 64 / 200 for one in groups])
    assert found.spread.error[0, 0, 0] == pytest.approx(parts.std(ddof=1) / 8)
    assert found.spread.error[0, 0, 0] == pytest.approx(sample.std(ddof=1) / 200**0.5, rel=0.25)
    assert found.spread.different[0, 0, 0] == 64


def test_what_no_input_has_is_not_a_number_and_never_zero():
    means = Means(1, 2, 2)
    means.update(0, np.full((3, 2, 2), np.nan), np.array([[0.0, 0], [0, 0], [0, 0]]), [0, 1, 2])
    found = means.result()
    assert np.isnan(found.value).all()
    assert np.isnan(found.low).all()
    assert np.isnan(found.p_above()).all()
    assert not found.n.any()


def test_p_is_small_above_the_null_large_below_and_exact_without_spread():
    means = Means(1, 3, 1)
    sample = np.random.default_rng(0).normal([[1.0], [-1.0], [0.0]], 0.5, (50, 3, 1))
    sample[:, 2] = 0.0
    means.update(0, sample, np.ones((50, 1)), list(range(50)))
    p = means.result().p_above()[0, :, 0]
    assert p[0] < 1e-4
    assert p[1] > 0.99
    assert np.isnan(p[2]), "no input differs from 0: too few"


def test_few_inputs_give_an_interval_but_no_p():
    means = Means(1, 1, 1)
    means.update(0, np.full((FEWEST - 1, 1, 1), 2.0), np.ones((FEWEST - 1, 1)), list(range(FEWEST - 1)))
    found = means.result()
    assert found.value == 2
    assert np.isnan(found.p_above()).all()
    means.update(0, np.full((1, 1, 1), 2.0), np.ones((1, 1)), [99])
    assert means.result().p_above() == 1 / 2**FEWEST


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
    assert p[0] < 1e-4
    assert p[1] < 1e-4
    assert p[2] > 0.05
    assert np.isnan(p[3]), "no input differs: too few"
    assert found.p_above()[0, 0, 1] > 0.99
    assert np.isnan(_filled(values[:4], np.ones((4, 3)), [range(4)]).result().p_either()).all()


def test_students_interval_from_sums_is_scipys():
    values = np.random.default_rng(0).random(7)
    found = student(float(values.sum()), float((values**2).sum()), 7)
    assert found == pytest.approx(stats.t.interval(0.95, 6, values.mean(), stats.sem(values)))
    assert student(0.5, 0.25, 1) is None
    assert student(1.0, float("nan"), 7) is None
    assert student(3.0, 3.0, 3) == pytest.approx((1.0, 1.0))


def test_results_of_a_version_that_measured_less_merge_either_way(data):
    values, counts = data
    for first, second in ((2, 3), (3, 2)):
        merged = _filled(values[:20, :, :first], counts[:20, :first], [range(20)])
        later = Means(1, 2, second)
        later.update(0, values[20:, :, :second], counts[20:, :second], list(range(20, 40)))
        merged.merge(later)
        whole, some = _filled(values, counts, [range(40)]).result(), slice(20) if first == 3 else slice(20, 40)
        alone = _filled(values[some], counts[some], [range(20)]).result()
        found = merged.result()
        np.testing.assert_allclose(found.value[..., :2], whole.value[..., :2])
        np.testing.assert_allclose(found.value[..., 2], alone.value[..., 2])
        np.testing.assert_array_equal(found.n, [*counts[:, :2].sum(0), counts[some, 2].sum()])


def test_all_layers_at_once_are_one_after_another():
    chance = np.random.default_rng(3)
    values, counts = chance.random((6, 3, 2, 4)), chance.integers(0, 3, (6, 3, 4)).astype(float)
    together, apart, even = Means(3, 2, 4), Means(3, 2, 4), Means(3, 2, 4)
    together.update(slice(None), values.reshape(6, 6, 4), counts, range(6))
    even.update(slice(None), values.reshape(6, 6, 4), counts[:, 0], range(6))  # the same counts in every layer
    for layer in range(3):
        apart.update(layer, values[:, layer], counts[:, layer], range(6))
    for name in ("value", "low", "n", "inputs"):
        np.testing.assert_array_equal(getattr(together.result(), name), getattr(apart.result(), name))
    expected = np.where(counts[:, :1, None] > 0, values, 0).sum(0) / counts[:, 0].sum(0)
    np.testing.assert_allclose(even.result().value, expected)


def test_each_half_has_the_means_of_every_other_input(data):
    values, counts = data
    whole = _filled(values, counts, [range(40)])
    for parity in (0, 1):
        half, alone = whole.half(parity).result(), _filled(values, counts, [range(parity, 40, 2)]).result()
        np.testing.assert_allclose(half.value, alone.value)
        np.testing.assert_array_equal(half.n, alone.n)
