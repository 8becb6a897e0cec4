"""Repeated patterns as rows: figures made by hand, with random weights beside them and without."""

import numpy as np
import pytest

from core.scoring.intervals import Means
from core.studies.attention.partials import InputOffset, PatternSums
from core.studies.attention.records import RepeatedHead, RepeatedShare
from core.studies.attention.redundancy import repeated


def pattern_sums(*nearer):
    """Two layers of one head, twenty pairs of inputs; of each set of weights how much nearer the other head is."""
    sums = np.zeros((len(nearer), 2, 2, 2, 2))
    for own, mean in zip(sums, nearer, strict=True):
        sign = np.tile([0.9, 1.1], 5)
        own[:, 0, 0, 1], own[:, 0, 1, 0] = 10 * mean, -10 * mean
        own[:, 1, 0, 1] = own[:, 1, 1, 0] = ((mean * sign) ** 2).sum()
    return PatternSums(
        InputOffset("x", "mrpc", 0), 2, 1, False, Means(2, 1, 0), np.zeros((2, 2)), 0, np.zeros((2, 1, 4, 4)), 0,
        sums, np.array([10, 10]),
    )  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("random", [0, 2])
def test_each_head_has_its_nearest_and_each_set_of_weights_its_share(random):
    found = repeated(pattern_sums(0.3, *[-0.2] * random))
    heads, shares = ([one for one in found if isinstance(one, kind)] for kind in (RepeatedHead, RepeatedShare))
    assert [(one.name, one.other, one.n) for one in heads] == [("L1H1", "L2H1", 20), ("L2H1", "L1H1", 20)]
    assert [one.value for one in heads] == pytest.approx([0.3, -0.3])
    assert heads[0].low > 0 > heads[1].high
    assert [(one.kind, one.draw, one.share) for one in shares] == [
        ("repeats", None, 0.5),
        *[("repeats at random", number, 0.5) for number in range(1, random + 1)],
    ]


def test_nothing_is_said_where_it_was_not_asked_for_or_pairs_are_few():
    assert repeated(pattern_sums()) == []
    few = pattern_sums(0.3)
    few.pairs[:] = 1
    assert repeated(few) == []
