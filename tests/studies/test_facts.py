"""What studies' scores say of one head in a sentence, by hand: of frames, of relations, of a head that was disabled."""

import numpy as np
import pandas as pd
import pytest

from core.atlas.head import facts
from core.attention import Head
from core.studies.ablation.disable import STUDY as DISABLE
from core.studies.ablation.sinks import REMOVED, REPLACED, SHARE, VERDICTS, WHOLE
from core.studies.ablation.sinks import STUDY as SINKS
from core.studies.attention.features import STUDY as FEATURES
from core.studies.attention.relations import STUDY as RELATIONS
from core.studies.frames.frame_heads import STUDY as FRAMES
from core.studies.headline import HeadScores
from core.studies.tuning.change import STUDY as CHANGE

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
            "The mean weight of this head on frame-semantic links is 0.25. The difference from at least one of four "
            "baselines is not significant.",
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


def test_what_a_head_writes_and_where_its_budget_goes_are_told_from_stored_scores():
    """From the keys under which scores are stored: study, statistic and what they are about."""
    rows = [
        ("budget/budget/itself", 0.2, 0.1, 0.3, 0.1, np.nan),
        ("budget/budget/same word", 0.2, 0.1, 0.3, 0.1, np.nan),
        ("budget/budget/start", 0.35, 0.3, 0.4, 0.1, np.nan),
        ("budget/budget/rest", 0.25, 0.2, 0.3, 0.1, np.nan),
        ("budget/distance of a part of speech/nouns", 0.30, np.nan, np.nan, 0.1, 0.01),
        ("budget/distance of a part of speech/verbs", 0.40, np.nan, np.nan, 0.12, 0.01),
        ("budget/distance of a part of speech/adverbs", 0.90, np.nan, np.nan, 0.1, 0.2),
        ("budget/distance of a part of speech/pronouns", 0.80, np.nan, np.nan, 0.79, 0.01),
        ("writes/copying", 0.8, 0.75, 0.85, 0.5, 0.01),
        ("writes/relation/plural", 0.25, np.nan, np.nan, 0.1, 0.05),
        ("writes/relation/capital", 0.25, np.nan, np.nan, 0.1, 0.06),
        ("writes/relation/opposite", 0.05, np.nan, np.nan, 0.1, 0.01),
    ]
    scores = pd.DataFrame(rows, columns=COLUMNS).assign(layer=1, head=2, n=40, source="run 1")
    others = scores.assign(head=0, value=0.99)
    told = [(fact.about, fact.text) for fact in facts(pd.concat([scores, others], ignore_index=True), Head(1, 2))]
    assert sorted(told) == [
        (
            "budget",
            "Queries that are verbs differ most from other queries in how this head divides its attention among kinds "
            "of tokens. The Jensen-Shannon distance between the two distributions is 0.40 (0.12 with uniform "
            "attention).",
        ),
        ("budget", "This head attends most to the query's own word (40%) and the start token (35%)."),
        ("writes", "For 25% of 40 word pairs, this head promotes the plural of the attended word."),
        (
            "writes",
            "This head promotes the token that it attends to. Its copying score is 0.80 (95 % CI 0.75 to 0.85, n = 40 "
            "tokens).",
        ),
    ]
    assert facts(scores.iloc[[7, 10]], Head(1, 2)) == []


@pytest.mark.parametrize(
    ("removed", "replaced", "verdict"),
    [
        ((0.001, 0.005), (0.2, 0.4), "nop"),
        ((0.02, 0.06), (0.001, 0.005), "constant"),
        ((0.02, 0.06), (0.02, 0.05), "broadcast"),
        ((0.005, 0.02), (0.02, 0.05), "undecided"),
    ],
)
def test_a_sink_head_says_what_its_sink_does(removed, replaced, verdict):
    rows = [
        (f"{SHARE}/separators", 0.81, 0.8, 0.82, 0.1, np.nan),
        (f"{WHOLE}/separators", 0.3, 0.2, 0.4, 0.01, np.nan),
        (f"{REMOVED}/separators", 0.04, *removed, 0.01, np.nan),
        (f"{REPLACED}/separators", 0.03, *replaced, 0.01, np.nan),
    ]
    own = pd.DataFrame(rows, columns=COLUMNS).assign(source=[f"run {k}" for k in range(4)], n=50)
    (fact,) = SINKS.facts(HeadScores(own, own))
    assert fact.text == (
        f"This head is a sink head: 81% of its attention goes to the separators. The sink is {VERDICTS[verdict]}. "
        f"Removing the sink changes the output by 0.04 (95 % CI {removed[0]:.3g} to {removed[1]:.3g}, n = 50). "
        "Changes below 0.01 are negligible."
    )
    assert fact.source == "run 2"
    assert SINKS.facts(HeadScores(own[:1], own)) == []


def test_a_head_is_told_its_two_token_types_and_its_change_by_fine_tuning():
    rows = [
        ("max/noun", 0.3, 0.2, 0.4, 0.2, 0.01),
        ("max/comma", 0.8, 0.7, 0.9, 0.1, 0.01),
        ("sum/verb", 0.9, 0.8, 1.0, 0.1, 0.01),
        ("max/start", 0.9, 0.8, 1.0, 0.1, 0.5),
        ("cosine", 0.75, 0.7, 0.8, np.nan, np.nan),
        ("divergence", 0.1, 0.0, 0.2, np.nan, np.nan),
    ]
    ((about, text, source),) = said(FEATURES, *rows)
    assert (about, source) == ("looks at", "run 1")
    assert "comma (0.80 [0.70, 0.90], baseline 0.10) and noun (0.30 [0.20, 0.40], baseline 0.20)" in text
    assert "verb" not in text
    assert said(FEATURES, *rows[2:]) == []
    ((about, text, source),) = said(CHANGE, *rows)
    assert (about, source) == ("change", "run 4")
    assert "0.75 [0.70, 0.80]" in text
