"""Suggestions of several classes where no class is likely."""

import numpy as np
import pytest

from core.patterns.suggestions import suggestion


@pytest.mark.parametrize(
    ("row", "among"),
    [
        ([0.1, 0.6, 0.2, 0.1], ()),
        ([0.5, 0.5, 0.0, 0.0], ()),
        ([0.45, 0.05, 0.1, 0.4], ("a", "d")),
        ([0.25, 0.25, 0.25, 0.25], ("a", "b", "c", "d")),
        ([0.1, 0.3, 0.45, 0.15], ("c", "b", "d")),
    ],
)
def test_the_most_probable_classes_are_suggested_if_none_passes(row, among):
    found = suggestion("abcd", np.array(row))
    assert (found.name, found.among) == ("abcd"[int(np.argmax(row))], among)
    assert found.probability == pytest.approx(max(row))
    assert found.margin == pytest.approx(max(row) - sorted(row)[-2])
