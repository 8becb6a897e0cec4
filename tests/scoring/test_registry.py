"""The records of head scores: complete, of their papers, and in the range that they state."""

import re

import numpy as np
import pytest

from core.scoring.heads import MapBatch, SpecialPositions
from core.scoring.registry import MAP_SCORES, OPERATORS, ROLE_SCORES, SCORES, label_of

NEEDS = {"weights", "values", "tokens", "tags", "links", "labels", "gradients", "classifier", "tuned"}
ABOUT = {"", "feature", "relation", "task", "class", "token type", "contribution"}
SIGNED = {"disable", "operators", "race", "patch", "why"}  # effects and score shares, which have no bound


@pytest.mark.parametrize("key", SCORES)
def test_a_record_says_all_that_a_page_shows(key):
    score = SCORES[key]
    assert key == f"{score.study}/{score.name}"
    assert score.label
    assert len(score.formula) > 10
    assert isinstance(score.needs, tuple)
    assert score.needs
    assert set(score.needs) <= NEEDS
    assert re.fullmatch(r"[A-Z]\w+( et al\.| and \w+) \d{4}", score.source)
    assert score.about in ABOUT
    assert isinstance(score.causal, bool)
    assert label_of(key) == score.label
    if score.study in SIGNED:
        assert (score.low, score.high) == (None, None)
    elif key != "effective/effective":
        assert score.low in (0.0, -1.0) or (key == "redundancy/group" and score.low == 1.0)
        assert score.high is None or score.high > score.low


@pytest.mark.parametrize("causal", [False, True])
def test_scores_of_random_maps_lie_in_their_range(causal):
    rng = np.random.default_rng(0)
    for sharpness in (0.1, 3.0, 30.0):
        maps = np.exp(sharpness * rng.normal(size=(3, 4, 9, 9))) * (np.tri(9) if causal else 1)
        maps /= maps.sum(-1, keepdims=True)
        batch = MapBatch(maps, [SpecialPositions(0, (4, 8), 0)] * 3, causal)
        for score in MAP_SCORES:
            if score.of is None or (causal and not score.causal):
                continue
            values = np.asarray(score.of(batch))
            assert values.shape[-1] == 4, score.key
            assert (values >= score.low - 1e-9).all(), score.key
            assert score.high is None or (values <= score.high + 1e-9).all(), score.key


def of_study(study):
    return [score for score in SCORES.values() if score.study == study]


def test_what_scores_of_a_kind_are_about_and_need():
    for study, need, about in (
        ("relations", "links", "relation"),
        ("frame-heads", "links", "relation"),
        ("change", "tuned", "task"),
        ("disable", "labels", "task"),
        ("importance", "gradients", "task"),
    ):
        scores = of_study(study)
        assert scores
        assert all(need in score.needs and score.about == about for score in scores), study
    assert {score.source for score in of_study("change")} == {"Kovaleva et al. 2019"}
    named = {score.name: score for score in of_study("disable")}
    assert set(named) == {f"{operator} {what}" for operator in OPERATORS for what in ("heads", "all-but-one")}
    assert named["zero heads"].source == named["zero all-but-one"].source == "Michel et al. 2019"
    assert named["disable heads"].source == "Kovaleva et al. 2019"


def test_a_role_without_the_sink_is_the_same_role():
    roles = {score.name: score for score in ROLE_SCORES}
    for name, score in roles.items():
        if name.endswith(" without sink"):
            own = roles[name.removesuffix(" without sink")]
            assert score.label == f"{own.label}, no sink"
            assert score.formula.startswith(own.formula)
            assert (score.needs, score.low, score.high, score.source, score.causal) == (
                own.needs,
                own.low,
                own.high,
                own.source,
                own.causal,
            )
            assert (score.low, score.high) == (0.0, 1.0)


def test_a_feature_follows_the_label_and_an_unknown_score_says_its_study():
    assert label_of("statistics/previous/verbs").endswith(" · verbs")
    assert label_of("mine/new") == "new (mine)"
