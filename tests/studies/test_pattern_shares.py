"""Class shares of two checkpoints on the same rows: the change is paired by input."""

import numpy as np
import pandas as pd
import pytest

from core.patterns.classifier_registry import bundled_weights
from core.studies.headline import Fact, HeadScores
from core.studies.patterns.pattern_shares import STUDY, ClassifiedChunk, Counts, PatternSharesOptions
from core.tasks.glue import read_rows

OPTIONS = PatternSharesOptions(task="rte", name="c", class_set="bert")
CLASSES = ("vertical", "diagonal", "block")
PARTS = ("share", "corrected")


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


def test_shares_are_corrected_by_what_the_classifier_mistakes():
    """Half of what is vertical it calls diagonal: a quarter of the maps that it calls vertical are half of them."""
    confusions = (((5.0, 5.0, 0.0), (0.0, 9.0, 0.0), (0.0, 0.0, 8.0)),) * 20  # of every input [true, predicted]
    options = PatternSharesOptions(task="rte", name="c", class_set="bert", confusions=confusions)
    rows = STUDY.summarize(options, units("a", [[0, 1, 1, 1]] * 40))
    shares = {part: {row["class"]: row["share"] for row in rows if row["part"] == part} for part in PARTS}
    assert shares["share"] == pytest.approx({"vertical": 0.25, "diagonal": 0.75, "block": 0})
    assert shares["corrected"] == pytest.approx({"vertical": 0.5, "diagonal": 0.5, "block": 0}, abs=0.01)


def test_a_head_is_said_to_have_the_class_of_most_of_its_maps():
    named = [(f"class share/{name}", value) for name, value in (("diagonal", 0.25), ("vertical", 0.7), ("block", None))]
    own = pd.DataFrame(
        [{"score": score, "value": value, "n": 40, "source": f"run of {score}"} for score, value in named]
        + [{"score": "entropy", "value": 3.0, "n": 40, "source": "another"}]
    )
    assert STUDY.facts(HeadScores(own, own)) == [
        Fact("class", "70% of 40 maps of this head are classified as vertical.", "run of class share/vertical")
    ]
    assert STUDY.facts(HeadScores(own[3:], own)) == []


def test_a_unit_classifies_every_map_of_its_rows_and_says_where_they_come_from(tmp_path):
    file = tmp_path / "classifier.safetensors"
    file.write_bytes(bundled_weights("bert"))
    options = PatternSharesOptions(limit=2, classifier=str(file))
    (unit,) = STUDY.units(options)
    done = STUDY.run(options, unit)
    (piece,) = done.partial.pieces
    rows = read_rows("mrpc", "dev", limit=2)
    assert piece.row_ids == done.provenance.row_ids == tuple(row.id for row in rows)
    assert piece.classes.shape[0] == 2
    assert set(np.unique(piece.classes)) <= set(range(len(piece.names)))
    assert (done.provenance.checkpoint, done.provenance.task, done.provenance.split) == ("atlas-encoder", "mrpc", "dev")
    assert done.provenance.weights_hash
