"""What is known of one head: a sentence whose numbers are those of the rows, and the heads most like it."""

import numpy as np
import pandas as pd
import pytest

from core.atlas.head import facts, nearest, sentence
from core.attention import Head
from core.scoring.registry import MAP_SCORES

ROW = {
    "checkpoint": "a",
    "task": "sst2",
    "layer": 0,
    "head": 1,
    "low": None,
    "high": None,
    "n": 300,
    "baseline": 0.1,
    "q": None,
    "source": "study, run 1",
}


def frame(*rows):
    return pd.DataFrame([ROW | row for row in rows]).astype(dict.fromkeys(("value", "low", "high", "q"), "float64"))


def test_every_part_of_the_sentence_is_a_row_with_its_source():
    scores = frame(
        {"score": "pattern-shares/class share/Diagonal", "value": 0.97},
        {"score": "pattern-shares/class share/Vertical", "value": 0.03},
        {"score": "roles/previous", "value": 0.99, "low": 0.98, "high": 0.995, "q": 0.001},
        {"score": "roles/rare", "value": 0.2, "q": 0.9},
        {
            "score": "disable/disable heads/sst2 accuracy",
            "value": -0.002,
            "low": -0.011,
            "high": 0.006,
            "source": "s, run 2",
        },
        {"score": "features/max/noun", "value": 0.3, "q": 0.01, "baseline": 0.12},
        {"score": "features/max/verb", "value": 0.1, "q": 0.01, "baseline": 0.2},
        {"score": "features/max/object", "value": 0.11, "q": 0.01, "baseline": 0.1},
        {"score": "relations/forward/verb-object", "value": 0.4, "q": 0.04, "baseline": 0.1},
        {"score": "importance/importance", "value": 0.5},
        {"score": "importance/importance", "value": 0.7, "head": 0},
        {"score": "change/cosine", "value": 0.93},
        {"score": "frame-heads/frames/later_to_earlier", "value": 0.4, "q": 0.2},
        {"score": "roles/next", "value": 1.0, "q": 0.0, "head": 2},
    )
    known = facts(scores, Head(0, 1))
    assert sentence(known) == (
        "97% of 300 maps of this head are classified as Diagonal. The role of this head is previous token: 0.99 [0.98, "
        "0.99] (baseline 0.10). This head attends significantly more to noun (0.30, baseline 0.12) than to random "
        "tokens at similar positions. This head attends more along the relation verb-object, forward (0.40, baseline "
        "0.10) than to other words at the same distance. The mean weight of this head on frame-semantic links is 0.40. "
        "The difference from at least one of four baselines is not significant. Ablating this head (disable) changes "
        "accuracy by -0.2 [-1.1, 0.6] points, which is not significant. The gradient importance of this head is 0.50 "
        "(rank 2 among 2 heads). The attention of this head before and after fine-tuning has a cosine similarity of "
        "0.93."
    )
    assert next(fact for fact in known if fact.about == "effect").source == "s, run 2"
    about = [fact.about for fact in known]
    assert about == ["class", "roles", "looks at", "relations", "frames", "effect", "importance", "change"]
    assert sentence(facts(scores, Head(3, 3))) == "No results about this head are stored yet."


def test_whether_an_effect_is_significant_is_told_by_the_correction_over_all_heads():
    row = {"score": "disable/zero heads/sst2 accuracy", "value": 0.02, "low": 0.01, "high": 0.03}
    for q, said in ((0.3, "not significant"), (0.01, "significant"), (None, "significant without correction")):
        assert sentence(facts(frame(row | {"q": q}), Head(0, 1))).endswith(f"points, which is {said}.")


def test_a_head_without_a_role_says_so():
    scores = frame({"score": "roles/previous", "value": 0.2, "q": 0.4}, {"score": "roles/rare", "value": 0.2, "q": 0.9})
    assert sentence(facts(scores, Head(0, 1))) == (
        "This head has no role: among its 2 role scores, none is significantly above the required "
        "multiple of the baseline (by default 3)."
    )


def test_nearest_heads_by_hand():
    chance = np.random.default_rng(0)
    table = chance.normal(size=(6, 3))
    rows = [
        {"score": f"statistics/{MAP_SCORES[column].name}", "value": table[head, column], "head": head}
        for head in range(6)
        for column in range(3)
    ]
    scaled = (table - table.mean(0)) / table.std(0, ddof=1)
    apart = {head: np.sqrt(((scaled[head] - scaled[2]) ** 2).mean()) for head in range(6) if head != 2}
    found = nearest(frame(*rows), Head(0, 2), most=3)
    assert [head.head for head, _ in found] == sorted(apart, key=apart.get)[:3]
    assert found[0][1] == pytest.approx(min(apart.values()))
    assert nearest(frame(*rows), Head(1, 2)) == []


def test_why_a_head_looks_there_names_the_largest_sort_and_the_earlier_heads_it_reads():
    scores = frame(
        {"score": "why/score share/token", "value": 0.2, "baseline": 0.4},
        {"score": "why/score share/earlier heads", "value": 0.5, "low": 0.45, "high": 0.55, "baseline": 0.1},
        {"score": "why/composition/L2H5 in the key", "value": 0.31, "low": 0.28, "high": 0.34},
        {"score": "why/composition/L1H1 in the query", "value": 0.06, "low": -0.02, "high": 0.14},
    )
    told = facts(scores, Head(0, 1))
    assert sentence(told) == (
        "The main source of variance in the attention scores of this head is earlier heads, with a share of 0.50 "
        "[0.45, 0.55] (random weights: 0.10). On the key side, the output of L2H5 explains 0.31 [0.28, "
        "0.34] of the variance in the attention scores of this head."
    )
    assert {fact.about for fact in told} == {"why"}
