"""Two heads beside each other: what both have, second less first, and which differences are sure."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from core.atlas.head import COLUMNS, scores_beside
from core.attention import Head


def scores(*rows):
    columns = ["score", "layer", "head", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns).astype({"value": float, "low": float, "high": float})


def test_scores_that_both_heads_have_stand_beside_each_other_the_clearest_first():
    first = scores(
        ("statistics/entropy", 1, 2, 1.0, 0.5, 1.5),
        ("statistics/next", 1, 2, 0.9, 0.88, 0.92),
        ("roles/next", 1, 2, 0.5, None, None),
        ("statistics/first", 1, 2, 0.1, 0.0, 0.2),
        ("statistics/next", 0, 0, 0.0, 0.0, 0.0),
    )
    second = scores(
        ("statistics/next", 3, 4, 0.6, 0.55, 0.65),
        ("statistics/entropy", 3, 4, 1.6, 0.9, 2.3),
        ("roles/next", 3, 4, 0.7, 0.6, 0.8),
        ("statistics/next", 1, 2, 0.9, 0.88, 0.92),
    )
    found = scores_beside(first, Head(1, 2), second, Head(3, 4))
    assert list(found.columns) == list(COLUMNS)
    assert found["score"].tolist() == ["statistics/next", "statistics/entropy", "roles/next"]
    assert found["difference"].tolist() == pytest.approx([-0.3, 0.6, 0.2])
    assert found["sure"].tolist() == [True, False, None]
    assert found.loc[0, ["first_low", "second_high"]].tolist() == [0.88, 0.65]


def test_heads_without_a_score_in_common_have_no_row_and_a_head_beside_itself_no_difference():
    first = scores(("statistics/next", 0, 0, 0.9, 0.8, 1.0), ("statistics/first", 0, 0, 0.0, 0.0, 0.0))
    assert scores_beside(first, Head(0, 0), first, Head(0, 1)).empty
    same = scores_beside(first, Head(0, 0), first, Head(0, 0))
    assert (same["difference"].tolist(), same["sure"].tolist()) == ([0.0, 0.0], [False, False])


@pytest.mark.thorough
def test_two_heads_that_are_alike_differ_surely_in_at_most_one_draw_of_twenty():
    """100 scores of 60 inputs each, both heads alike: a sure difference anywhere is a false one."""
    rng, wrong, draws = np.random.default_rng(0), 0, 200
    names = [f"statistics/{k}" for k in range(100)]

    def head(of):
        sample = rng.normal(0.3, 0.1, (60, 100))
        reach = stats.t.ppf(0.975, 59) * sample.std(0, ddof=1) / np.sqrt(60)
        means = sample.mean(0)
        return pd.DataFrame(
            {"score": names, "layer": 0, "head": of, "value": means, "low": means - reach, "high": means + reach}
        )

    for _ in range(draws):
        wrong += bool(scores_beside(head(0), Head(0, 0), head(1), Head(0, 1))["sure"].eq(True).any())
    assert wrong <= stats.binom.ppf(0.99, draws, 0.05)
