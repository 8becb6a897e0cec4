"""A share beside a constant's: the interval is Wilson's formula, and the sentence says no more than it."""

import math

import pytest

from core.scoring.chance import above_constant


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
        "accuracy 53.3 (95 % 47.7 to 58.9, 300 rows) is not shown to be above chance: the better constant has 48.3"
    )
    assert above_constant(0.84, 0.517, 300).sentence == ""
    assert not above_constant(0.463, 0.543, 300).is_shown
