"""What a table of statistics says of a head and of a feature."""

import math

import pytest

from core.scoring.definitions import drift, kind_of


@pytest.mark.parametrize(
    ("means", "depth"),
    [([1, 0, 0], 0), ([0, 0, 3], 1), ([1, 1], 1 / 2), ([2, 2, 4], (2 * 0.5 + 4) / 8), ([0, 1, 0, 1], 2 / 3)],
)
def test_drift_is_the_mean_depth_weighted_by_the_layers_means(means, depth):
    assert drift([float(mean) for mean in means]) == pytest.approx(depth)


@pytest.mark.parametrize("means", [[], [1.0], [0.0, 0.0]])
def test_drift_of_nothing_is_undefined(means):
    assert math.isnan(drift(means))


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"previous": 0.51}, "previous"),
        ({"next": 0.51}, "next"),
        ({"next": 0.5}, "other"),
        ({"first": 0.61}, "first"),
        ({"separator": 0.6}, "other"),
        ({"separator": 0.61, "first": 0.7}, "separator"),
        ({"normalised entropy": 0.86}, "broad"),
        ({"normalised entropy": 0.86, "previous": None}, "broad"),
        ({"normalised entropy": 0.85}, "other"),
    ],
)
def test_the_kind_of_a_head_by_clark_and_others_rules(row, kind):
    assert kind_of(row) == kind
