"""What studies' scores say of one head in a sentence, by hand: of frames, of relations, of a head that was disabled."""

import numpy as np
import pandas as pd
import pytest

from core.studies.ablation.disable import STUDY as DISABLE
from core.studies.attention.relations import STUDY as RELATIONS
from core.studies.frames.frame_heads import STUDY as FRAMES
from core.studies.headline import HeadScores

COLUMNS = ("score", "value", "low", "high", "baseline", "q")


def said(study, *rows):
    own = pd.DataFrame(rows, columns=COLUMNS).assign(source=[f"run {k}" for k in range(len(rows))])
    return [(fact.about, fact.text, fact.source) for fact in study.facts(HeadScores(own, own))]


def test_a_frame_score_says_whether_it_survives():
    first, second = ("frames/element_to_target", 0.3, 0.2, 0.4, 0.1, 0.01), ("frames/x", 0.25, None, None, 0.1, 0.2)
    assert said(FRAMES, first, second, ("frames/untested", 0.9, 0.8, 1.0, 0.1, np.nan)) == [
        (
            "frames",
            "The mean weight of this head on frame-semantic links is 0.30 [0.20, 0.40], significantly above all four "
            "baselines.",
            "run 0",
        ),
        (
            "frames",
            "The mean weight of this head on frame-semantic links is 0.25, not significantly above all four baselines.",
            "run 1",
        ),
    ]


def test_the_two_relations_that_are_furthest_above_other_words_are_named():
    rows = [
        ("forward/subject", 0.3, 0.2, 0.4, 0.2, 0.01),
        ("backward/object", 0.5, 0.4, 0.6, 0.1, 0.01),
        ("forward/object", 0.9, 0.8, 1.0, 0.1, 0.2),  # not significant
        ("forward/determiner", 0.52, 0.5, 0.6, 0.5, 0.01),  # hardly more than other words
        ("backward/modifier", 0.26, 0.2, 0.3, 0.2, 0.01),
    ]
    text = (
        "This head attends more along the relation object, backward (0.50 [0.40, 0.60], baseline 0.10) and the "
        "relation subject, forward (0.30 [0.20, 0.40], baseline 0.20) than to other words at the same distance."
    )
    assert said(RELATIONS, *rows) == [("relations", text, "run 1")]
    assert said(RELATIONS, rows[2]) == []


@pytest.mark.parametrize(
    ("low", "high", "q", "verdict"),
    [
        (-0.04, -0.01, 0.01, "significant"),
        (-0.04, -0.01, 0.2, "not significant"),
        (-0.04, -0.01, np.nan, "significant without correction"),
        (-0.04, 0.01, np.nan, "not significant"),
    ],
)
def test_an_effect_is_in_points_and_says_whether_it_is_significant(low, high, q, verdict):
    row = ("zero heads/change of accuracy", -0.025, low, high, np.nan, q)
    text = f"Ablating this head (zero) changes accuracy by -2.5 [-4.0, {100 * high:.1f}] points, which is {verdict}."
    assert said(DISABLE, row, ("zero layers/accuracy", 0.1, 0.0, 0.2, np.nan, q)) == [("effect", text, "run 0")]
