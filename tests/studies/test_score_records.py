"""The records of head scores: complete, of their papers, in the range that they state, and found by their key."""

import re

import pytest

from core.errors import InputError
from core.studies.ablation.records import OPERATORS
from core.studies.attention.roles import ROLE_SCORES
from core.studies.lookup import find_score, find_study, in_order, label_of, meaning_of, study_modules

SCORES = {f"{study}/{score.name}": score for study in study_modules() for score in find_study(study).head_scores}
NEEDS = {"weights", "values", "tokens", "tags", "links", "labels", "gradients", "classifier", "tuned"}
ABOUT = {"", "category", "feature", "relation", "task", "class", "token type", "contribution"}
SIGNED = {"disable", "operators", "sequential-test", "patch", "why"}  # effects and score shares, which have no bound


@pytest.mark.thorough
@pytest.mark.parametrize("key", SCORES)
def test_a_record_says_all_that_a_page_shows(key):
    score = SCORES[key]
    assert score.label
    assert len(score.formula) > 10
    assert isinstance(score.needs, tuple)
    assert score.needs
    assert set(score.needs) <= NEEDS
    assert re.fullmatch(r"[A-Z]\w+( et al\.| and \w+) \d{4}", score.source)
    assert score.about in ABOUT
    assert isinstance(score.causal, bool)
    assert label_of(key) == score.label
    if key.partition("/")[0] in SIGNED:
        assert (score.low, score.high) == (None, None)
    elif key != "effective/effective":
        assert score.low in (0.0, -1.0) or (key == "redundancy/group" and score.low == 1.0)
        assert score.high is None or score.high > score.low


def test_no_two_scores_are_called_alike():
    assert len({score.label for score in SCORES.values()}) == len(SCORES) > 90


def of_study(study):
    return find_study(study).head_scores


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


def test_a_score_is_found_by_its_key_alone():
    assert find_score("features/max/noun") is SCORES["features/max"]
    assert meaning_of("mine/new") == "new (mine)"
    assert meaning_of("why/composition").endswith("of the query or of the key (Elhage et al. 2021)")
    for key in ("mine/new", "statistics/nothing", "statistics", ""):
        with pytest.raises(InputError, match="must be one that a study computes"):
            find_score(key)


def test_scores_are_listed_study_by_study_as_each_names_its_own():
    keys = ["mine/new", "norms/previous", "disable/zero heads", "features/sum/noun", "features/max/verb",
            "features/max/noun", "statistics/previous", "statistics/entropy", "roles/previous"]  # fmt: skip
    assert in_order(keys) == [
        "statistics/entropy", "statistics/previous", "roles/previous", "features/max/noun", "features/max/verb",
        "features/sum/noun", "disable/zero heads", "norms/previous", "mine/new",
    ]  # fmt: skip
