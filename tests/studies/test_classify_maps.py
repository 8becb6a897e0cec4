"""Class shares of two checkpoints on the same rows: the change is paired by input."""

import numpy as np
import pytest

from core.studies.patterns.classify_maps import STUDY, ClassifiedChunk, ClassifyMapsOptions, Counts

OPTIONS = ClassifyMapsOptions(task="rte", name="c", class_set="bert")
CLASSES = ("vertical", "diagonal", "block")


def units(checkpoint, maps):
    """maps: class numbers of one layer of heads, by input; a unit each."""
    nothing = np.zeros(1)
    return [
        Counts((ClassifiedChunk(checkpoint, (str(k),), CLASSES, np.array([[numbers]]), *[nothing] * 4),))
        for k, numbers in enumerate(maps)
    ]


def moved(partials):
    return {row["class"]: row for row in STUDY.summarize(OPTIONS, partials) if row["part"] == "moved"}


def test_the_change_of_a_share_is_that_of_the_counts_by_input():
    before = [[k % 2, k % 2, 1, 0] for k in range(40)]
    after = [[k % 2, k % 2, 0, 0] for k in range(40)]  # one head of four turns vertical, on every input
    rows = moved(units("a", before) + units("b", after)[::-1])  # units come in any order
    assert rows["vertical"]["share"] == pytest.approx(0.25)
    assert (rows["vertical"]["low"], rows["vertical"]["high_all"]) == pytest.approx((0.25, 0.25))
    assert rows["diagonal"]["share"] == pytest.approx(-0.25)
    assert (rows["block"]["share"], rows["block"]["inputs"]) == (0, 40)
    assert (rows["block"]["before"], rows["block"]["checkpoint"]) == ("a", "b")


def test_nothing_moves_without_two_checkpoints_on_the_same_rows():
    assert moved(units("a", [[0, 1]])) == {}
    assert moved(units("a", [[0, 1]]) + units("b", [[0, 1], [0, 0]])) == {}
