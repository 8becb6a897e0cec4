"""Corrections by their own definitions and beside statsmodels; Wilson's interval by the test that it inverts."""

import numpy as np
import pytest
from scipy.stats import norm
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from core.scoring.corrections import holm_adjusted, q_values, significant_at_fdr, widened
from core.scoring.intervals import wilson_interval
from core.scoring.link_tests import corrected


def by_definition(p: list[float]) -> list[float]:
    """q_k: the least m p_j / rank_j over all p_j at least as large as p_k, at most 1."""
    order = sorted(p)
    each = {value: len(p) * value / max(k for k, other in enumerate(order, start=1) if other == value) for value in p}
    return [min(1.0, *(q for value, q in each.items() if value >= own)) for own in p]


def test_q_values_are_those_of_the_definition_and_heads_without_p_count_for_nothing():
    p = np.array([[0.001, 0.2, np.nan], [0.03, 0.04, 0.9], [0.2, 0.012, np.nan]])
    known = p[~np.isnan(p)].tolist()
    q = q_values(p)
    np.testing.assert_allclose(q[~np.isnan(p)], by_definition(known))
    assert np.isnan(q[np.isnan(p)]).all()
    assert np.isnan(q_values(np.full((2, 2), np.nan))).all()
    np.testing.assert_allclose(corrected(np.array(known)), by_definition(known))


def test_holm_and_both_rates_of_false_discoveries_are_those_of_statsmodels():
    rng = np.random.default_rng(0)
    for n in (1, 2, 9, 40):
        p = np.append(rng.random(n) ** 4, 1.0)
        p[-2] = p[0]  # a tie
        np.testing.assert_allclose(holm_adjusted(p), multipletests(p, method="holm")[1])
        np.testing.assert_allclose(corrected(p), multipletests(p, method="fdr_bh")[1])
        assert significant_at_fdr(p.tolist(), 0.1) == multipletests(p, alpha=0.1, method="fdr_by")[0].tolist()


def test_wilsons_ends_are_the_shares_that_a_score_test_just_rejects():
    counts, rows = np.array([0, 1, 7, 50]), 50
    low, high = wilson_interval(counts, rows)
    np.testing.assert_allclose((low, high), proportion_confint(counts, rows, method="wilson"), atol=1e-12)
    for observed, end in ((counts[1:], low[1:]), (counts[:-1], high[:-1])):
        z = (observed / rows - end) / np.sqrt(end * (1 - end) / rows)
        assert np.abs(z) == pytest.approx(1.959964)


@pytest.mark.parametrize("several", [1, 2, 36, 144])
def test_an_interval_is_widened_to_hold_for_several_at_once(several):
    """As far as the normal quantile of a share of 5 % for each."""
    low, high = norm.interval(1 - 0.05 / several)
    assert np.array([-1, 1]) * 1.959963984540054 * widened(several) == pytest.approx((low, high))
