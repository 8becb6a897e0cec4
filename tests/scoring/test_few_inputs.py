"""Means of few inputs: t and Hall's t by hand, what is too few, and simulated studies in which nothing is there."""

import numpy as np
import pytest
from scipy import stats

from core.scoring import few_inputs
from core.scoring.few_inputs import FEWEST, ends, mean_interval, p_above, p_either, spread_of
from tests.simulations.few_inputs import simulate


def judged(values):
    values = np.asarray(values, dtype=float)[:, None]
    mean = values.mean(0)
    return mean, spread_of(values, np.ones(values.shape, dtype=bool), mean)


def test_symmetric_values_have_students_interval():
    values = [0.1, -0.2, 0.3, 0.05, -0.15, -0.1, 0.2, -0.3, -0.05, 0.15]
    mean, spread = judged(values)
    assert spread.error[0] == pytest.approx(stats.sem(values))
    assert spread.lean[0] == pytest.approx(0, abs=1e-12)
    low, high = ends(mean, spread)
    expected = stats.t.interval(0.95, 9, loc=np.mean(values), scale=stats.sem(values))
    assert (low[0], high[0]) == pytest.approx(expected)


def test_skewed_values_reach_further_on_their_long_side_by_halls_transformation():
    values = np.array([0.1, 0.2, 0.1, 0.3, 0.2, 0.15, 0.1, 0.12, 0.2, 1.9, 0.3, 0.11]) - 0.21
    mean, spread = judged(values)
    a = stats.skew(values, bias=False) / np.sqrt(12)
    assert spread.lean[0] == pytest.approx(a)
    error, t = stats.sem(values), stats.t.ppf(0.975, 11)

    def transformed(limit):
        away = (mean[0] - limit) / error
        return away + a * away**2 / 3 + a**2 * away**3 / 27 + a / 6

    low, high = ends(mean, spread)
    assert low[0] == pytest.approx(mean[0] - t * error), "the short side is Student's"
    assert high[0] > mean[0] + t * error
    assert transformed(high[0]) == pytest.approx(-t)
    away = mean[0] / error
    bent = away + a * away**2 / 3 + a**2 * away**3 / 27 + a / 6
    by_hand = [max(stats.t.sf(x, 11 / 3) for x in (sign * away, sign * bent)) for sign in (1, -1)]
    assert p_above(mean, spread)[0] == pytest.approx(by_hand[0])
    assert p_either(mean, spread)[0] == pytest.approx(min(1, 2 * min(by_hand)))


def test_p_is_gated_on_inputs_that_differ_from_0_and_the_spread_counts_those():
    some = [0.5, 0.6] * ((FEWEST - 1) // 2 + 1)
    few, enough = (judged([0.0] * 40 + some[:n]) for n in (FEWEST - 1, FEWEST))
    assert np.isnan(p_above(*few)[0])
    assert np.isnan(p_either(*few)[0])
    assert 0 < p_above(*enough)[0] < 1
    assert few[1].different[0] == FEWEST - 1
    low, high = ends(*few)
    reach = stats.t.ppf(0.975, FEWEST - 2) * few[1].error[0]
    assert low[0] == pytest.approx(max(0, few[0][0] - reach))
    assert high[0] >= few[0][0] + reach


def test_values_that_are_all_the_same_have_the_sign_tests_p():
    mean, spread = judged([0.25] * 14)
    assert p_above(mean, spread)[0] == 1 / 2**14
    assert p_above(-mean, judged([-0.25] * 14)[1])[0] == 1
    assert [end[0] for end in ends(mean, spread)] == [0.25, 0.25]
    nothing, still = judged([0.0] * 30)
    assert [end[0] for end in ends(nothing, still)] == [0, 0]
    assert np.isnan(p_either(nothing, still)[0])


def test_one_input_says_nothing_of_its_spread():
    assert np.isnan(ends(*judged([0.3]))).all()
    assert np.isnan(ends(*judged([0.3, 0.0, 0.0]))).all()
    assert np.isnan(mean_interval(np.ones((1, 3)))[0]).all()


def test_an_interval_of_weights_does_not_reach_below_0():
    low, high = mean_interval(np.array([[0.0], [0.01], [0.0], [0.4]]))
    assert low[0] == 0
    assert high[0] > 0.4


@pytest.mark.parametrize("inputs", [5, 8, 12, 20, 50, 200])
@pytest.mark.parametrize("law", ["normal", "skewed to the right", "skewed to the left", "sparse, skewed to the left"])
def test_null_studies_claim_at_most_19_times_in_200_and_intervals_hold_the_truth(law, inputs):
    """2,400 means of each; docs/results/few-inputs.md has more heads and laws."""
    outcome = simulate(law, inputs, studies=200, heads=12, seed=1)
    assert max(outcome.claims, outcome.claims_either) <= 19
    assert outcome.held >= 0.93
    assert outcome.shown == (0 if inputs < FEWEST else 1) or law.startswith("sparse")


def test_an_effect_is_found_where_there_is_one():
    rng = np.random.default_rng(0)
    found = [p_above(*judged(rng.normal(1.0, 0.5, 20)))[0] < 0.01 for _ in range(50)]
    assert np.mean(found) > 0.95


def test_each_cell_of_a_mean_has_the_interval_of_its_own_column():
    values = np.random.default_rng(3).normal([0.0, 5.0, -2.0], 1.0, size=(9, 3)).astype(np.float32)
    low, high = mean_interval(values)
    for cell in range(3):
        alone_low, alone_high = mean_interval(values[:, [cell]])
        assert (low[cell], high[cell]) == pytest.approx((alone_low[0], alone_high[0]))
        assert low[cell] < values[:, cell].mean() < high[cell]


def test_rounding_of_equal_values_far_from_0_is_no_spread():
    values = np.full(12, 1e6) + np.array([0.0, 1e-9] * 6)
    assert judged(values)[1].error[0] == 0
    assert judged(values - 1e6 + 1e-3)[1].error[0] >= 0
    assert judged([1e-3, 2e-3] * 6)[1].error[0] == pytest.approx(stats.sem([1e-3, 2e-3] * 6))


def test_halls_t_bends_by_each_of_its_terms():
    """Against Hall (1992), eq. 3, at values where every term counts; and its inverse takes it back."""
    t, lean = (values.ravel() for values in np.meshgrid([-3.0, -0.5, 0.0, 2.0, 6.0], [-0.8, -0.1, 0.3, 1.2]))
    bent = few_inputs._bent(t, lean)
    by_hand = [x + a * x * x / 3 + a * a * x * x * x / 27 + a / 6 for x, a in zip(t, lean, strict=True)]
    np.testing.assert_allclose(bent, by_hand)
    np.testing.assert_allclose(few_inputs._unbent(bent, lean), t, atol=1e-9)
    assert few_inputs._unbent(np.array([1.7]), np.array([0.0])).tolist() == [1.7]


def test_the_sign_is_that_of_all_values_and_a_mean_of_0_has_p_1():
    for values, sign in (([0.1, 0.2, 0.0], 1), ([-0.1, -0.2, 0.0], -1), ([0.1, -0.2, 0.3], 0), ([0.0, 0.0], 0)):
        assert judged(values)[1].sign[0] == sign
    mean, spread = judged([0.25] * 14)
    assert p_above(0 * mean, spread)[0] == 1


def test_two_inputs_have_no_skewness_and_so_students_interval():
    low, high = mean_interval(np.array([[0.2], [0.5]]))
    assert (low[0], high[0]) == pytest.approx((0.0, stats.t.interval(0.95, 1, 0.35, 0.15)[1]))
    low, high = mean_interval(np.array([[-0.2], [0.5]]))
    assert (low[0], high[0]) == pytest.approx(stats.t.interval(0.95, 1, 0.15, 0.35))
