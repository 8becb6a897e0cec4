"""A share beside a constant's: the interval is Wilson's formula, and the sentence says no more than it."""

import math

import numpy as np
import pytest
from scipy.stats import pearsonr

from core.scoring.intervals import fisher_interval, not_above_constant, not_above_zero, wilson_interval


@pytest.mark.parametrize(("right", "rows"), [(46, 100), (160, 300), (300, 300), (0, 7)])
def test_the_interval_is_wilsons(right, rows):
    share, z = right / rows, 1.959963984540054
    centre = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows))
    assert wilson_interval(np.array(right), rows) == pytest.approx((centre - half, centre + half), abs=1e-9)


def test_what_is_not_above_the_constant_is_said_and_what_is_says_nothing():
    """53.3 beside 48.3 on 300 rows: the interval holds the constant."""
    assert not_above_constant(0.533, 0.483, 300) == (
        "an accuracy of 53.3 (95 % CI 47.7 to 58.9, n = 300 examples) is not significantly above the accuracy of a "
        "constant prediction (48.3)"
    )
    assert not_above_constant(0.84, 0.517, 300) == ""
    assert not_above_constant(0.463, 0.543, 300)


@pytest.mark.parametrize(("slope", "rows"), [(0.0, 40), (0.3, 300), (-0.5, 9)])
def test_the_interval_of_a_correlation_is_scipys(slope, rows):
    rng = np.random.default_rng(rows)
    golds = rng.normal(size=rows)
    found = pearsonr(golds, slope * golds + rng.normal(size=rows))
    ends = found.confidence_interval(0.95)
    r = float(found.statistic)
    assert fisher_interval(r, rows) == pytest.approx((ends.low, ends.high), abs=1e-9)
    assert (not_above_zero(r, rows) == "") == (ends.low > 0)


def test_a_correlation_that_could_be_luck_is_said():
    assert not_above_zero(0.3, 300) == ""
    assert not_above_zero(0.074, 300) == (
        "a correlation of 7.4 (Pearson's r × 100, 95 % CI -4.0 to 18.6, n = 300 examples) is not significantly above "
        "the chance level of 0"
    )
