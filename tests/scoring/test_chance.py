"""A share beside a constant's: the interval is Wilson's formula, and the sentence says no more than it."""

import math

import numpy as np
import pytest
from scipy.stats import pearsonr

from core.scoring.chance import above_constant, above_zero


@pytest.mark.parametrize(("right", "rows"), [(46, 100), (160, 300), (300, 300), (0, 7)])
def test_the_interval_is_wilsons(right, rows):
    share, z = right / rows, 1.959963984540054
    centre = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows))
    judged = above_constant(share, 0.5, rows)
    assert (judged.low, judged.high) == pytest.approx((centre - half, centre + half), abs=1e-9)


def test_what_is_not_above_the_constant_is_said_and_what_is_says_nothing():
    """53.3 beside 48.3 on 300 rows: the interval holds the constant."""
    judged = above_constant(0.533, 0.483, 300)
    assert not judged.is_shown
    assert judged.sentence == (
        "an accuracy of 53.3 (95 % CI 47.7 to 58.9, n = 300 examples) is not significantly above the accuracy of a "
        "constant prediction (48.3)"
    )
    assert above_constant(0.84, 0.517, 300).sentence == ""
    assert not above_constant(0.463, 0.543, 300).is_shown


@pytest.mark.parametrize(("slope", "rows"), [(0.0, 40), (0.3, 300), (-0.5, 9)])
def test_the_interval_of_a_correlation_is_scipys(slope, rows):
    rng = np.random.default_rng(rows)
    golds = rng.normal(size=rows)
    found = pearsonr(golds, slope * golds + rng.normal(size=rows))
    ends = found.confidence_interval(0.95)
    judged = above_zero(float(found.statistic), rows)
    assert (judged.low, judged.high) == pytest.approx((ends.low, ends.high), abs=1e-9)
    assert judged.is_shown == (ends.low > 0)


def test_a_correlation_that_could_be_luck_is_said():
    assert above_zero(0.3, 300).sentence == ""
    assert above_zero(0.074, 300).sentence == (
        "a correlation of 7.4 (Pearson's r × 100, 95 % CI -4.0 to 18.6, n = 300 examples) is not significantly above "
        "the chance level of 0"
    )
