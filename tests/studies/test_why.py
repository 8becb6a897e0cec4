"""The study of why heads look where they look, through JSON as jobs run it."""

import json
import random
import re

import numpy as np
import pandas as pd
import pytest

from core.errors import InputError
from core.studies.explanation import why
from core.studies.explanation.why import RemovalAgreement, ScoreShare, SortScore
from core.studies.headline import Fact, HeadScores
from tests.studies.through_json import rows_of

TEXTS = ["The old dog never stopped.", "Did the dog hear it?", ["She saw the man.", "He did not see her."]]


@pytest.fixture(scope="module")
def rows():
    return rows_of("why", {"checkpoint": "atlas-encoder", "texts": TEXTS}, random.Random(0))  # noqa: S311 - no secret


@pytest.mark.thorough
def test_shares_of_every_head_add_up_to_one_by_sort(rows):
    sums = np.zeros((2, 6, 6))
    for share in ScoreShare.among(rows):
        if share.level == "sort":
            sums[["even", "attention"].index(share.weighting), share.layer, share.head] += share.share
    assert sums == pytest.approx(1, abs=1e-6)


def test_the_bundled_next_token_head_is_of_positions(rows):
    best = max(
        (
            share
            for share in ScoreShare.among(rows)
            if (share.layer, share.head) == (1, 1) and share.level == "pair" and share.weighting == "even"
        ),
        key=lambda share: share.share,
    )
    assert (best.query_part, best.key_part) == ("position", "position")
    assert best.low < best.share < best.high
    assert best.share > 0.85 > 0.5 > best.null
    assert best.n == 3


def test_single_earlier_heads_are_named_on_either_side(rows):
    named = {(share.level, share.layer) for share in ScoreShare.among(rows) if share.level.endswith(" head")}
    assert {("key head", 1), ("query head", 1)} & named
    assert all(layer > 0 for _, layer in named)


def test_removal_agrees_by_rank_and_says_the_median(rows):
    medians = [record for record in RemovalAgreement.among(rows) if record.kind == "removal, median"]
    assert [record.scale for record in medians] == ["held", "recomputed", "held to recomputed"]
    for record in medians:
        heads = [
            one.agreement for one in RemovalAgreement.among(rows) if one.kind == "removal" and one.scale == record.scale
        ]
        assert record.agreement == pytest.approx(np.median(heads))
        assert -1 <= record.low <= record.agreement <= record.high <= 1


@pytest.mark.thorough
def test_rows_are_json_and_units_merge():
    study, options = why.STUDY, why.WhyOptions(removal=0, single_heads=False, limit=4)
    partials = [study.run(options, unit).partial for unit in study.units(options)]
    whole = study.merge(options, [*partials, *partials])
    assert {part.moments.n for part in whole.pieces[0].layers} == {8}
    assert json.dumps(study.rows(options, whole))


def test_a_least_share_beyond_one_is_refused():
    with pytest.raises(InputError, match="from 0 to 1; got 2"):
        why.STUDY.units(why.WhyOptions(least=2, texts=("The dog.",), tasks=()))


def test_the_atlas_takes_four_sorts_and_the_headline_names_the_largest(rows):
    scores = [score for score in SortScore.among(rows) if score.statistic == "score share"]
    assert {score.feature for score in scores} == set(why.ATLAS_SORTS)
    assert {score.statistic for score in scores} <= {score.name for score in why.STUDY.head_scores}
    shares = {
        (share.layer, share.head, share.query_part): share.share
        for share in ScoreShare.among(rows)
        if share.level == "sort" and share.weighting == "even"
    }
    assert all(shares[score.layer, score.head, score.feature] == score.value for score in scores)
    sentence = why.STUDY.headline(rows).sentence
    assert sum(int(count) for count in re.findall(r"for (\d+) head", sentence)) == 36
    assert "position in head L2H2" in sentence
    (median,) = (one for one in RemovalAgreement.among(rows) if one.kind == "removal, median" and one.scale == "held")
    said = f"over heads of {median.agreement:.2f} (95 % CI {median.low:.2f} to {median.high:.2f}) with the predicted"
    assert said in sentence
    assert ("may carry the same information" in sentence) == (median.agreement < 0.8)


def test_the_earlier_head_that_a_head_reads_most_is_a_score_with_its_interval(rows):
    shares = [share for share in ScoreShare.among(rows) if share.level == "key head" and share.weighting == "even"]
    read = {
        (one.layer, one.head): one
        for one in SortScore.among(rows)
        if one.statistic == "composition" and one.feature.endswith(" in the key")
    }
    assert read
    for place, one in read.items():
        mine = [share for share in shares if (share.layer, share.head) == place]
        most = max(mine, key=lambda share: share.share)
        assert (one.feature, one.value, one.low, one.high) == (
            f"{most.key_part} in the key",
            most.share,
            most.low,
            most.high,
        )


def test_a_head_is_said_to_look_because_of_its_largest_sort_and_to_read_earlier_heads():
    rows = [
        ("score share/token", 0.2, 0.1, 0.3, 0.1),
        ("score share/position", 0.61, 0.5, 0.7, 0.25),
        ("composition/L1H3 in the key", 0.3, 0.2, 0.4, np.nan),
        ("composition/L1H2 in the query", 0.3, -0.1, 0.7, np.nan),  # not surely
        ("composition/L1H1 in the query", 0.01, 0.005, 0.02, np.nan),  # too little to be worth a word
    ]
    own = pd.DataFrame(rows, columns=["score", "value", "low", "high", "baseline"]).assign(source="a run")
    assert why.STUDY.facts(HeadScores(own, own)) == [
        Fact(
            "why",
            "The main source of variance in the attention scores of this head is position, with a share of 0.61 [0.50, "
            "0.70] (random weights: 0.25).",
            "a run",
        ),
        Fact(
            "why",
            "On the key side, the output of L1H3 explains 0.30 [0.20, 0.40] of the variance in the "
            "attention scores of this head.",
            "a run",
        ),
    ]
    alone = own[:1].assign(baseline=np.nan)
    (fact,) = why.STUDY.facts(HeadScores(alone, alone))
    assert fact.text == (
        "The main source of variance in the attention scores of this head is token, with a share of 0.20 [0.10, 0.30]."
    )
