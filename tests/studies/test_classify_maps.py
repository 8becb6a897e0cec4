"""Class shares of two checkpoints on the same rows: the change is paired by input."""

import pytest

from core.studies.classify_maps import summarize

OPTIONS = {"task": "rte", "name": "c", "class_set": "bert", "seed": 0, "confusions": []}
CLASSES = ["vertical", "diagonal", "block"]


def rows(checkpoint, maps):
    """maps: class numbers of one layer of heads, by input."""
    return [
        {"checkpoint": checkpoint, "row_id": str(k), "classes": CLASSES, "found": [found], "cut": 0, "cropped": False}
        for k, found in enumerate(maps)
    ]


def moved(some):
    return {row["class"]: row for row in summarize(OPTIONS, some) if row["part"] == "moved"}


def test_the_change_of_a_share_is_that_of_the_counts_by_input():
    before = [[k % 2, k % 2, 1, 0] for k in range(40)]
    after = [[k % 2, k % 2, 0, 0] for k in range(40)]  # one head of four turns vertical, on every input
    found = moved(rows("a", before) + rows("b", after)[::-1])  # units come in any order
    assert found["vertical"]["share"] == pytest.approx(0.25)
    assert (found["vertical"]["low"], found["vertical"]["high_all"]) == pytest.approx((0.25, 0.25))
    assert found["diagonal"]["share"] == pytest.approx(-0.25)
    assert (found["block"]["share"], found["block"]["inputs"]) == (0, 40)
    assert (found["block"]["before"], found["block"]["checkpoint"]) == ("a", "b")


def test_nothing_moves_without_two_checkpoints_on_the_same_rows():
    assert moved(rows("a", [[0, 1]])) == {}
    assert moved(rows("a", [[0, 1]]) + rows("b", [[0, 1], [0, 0]])) == {}
