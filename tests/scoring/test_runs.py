"""Scores of several runs: means, intervals that cover, differences paired by row."""

import numpy as np
import pytest

from core.scoring import runs


def test_a_mean_over_runs_and_its_difference():
    gold = np.array([0, 1] * 30)
    right, half = np.tile(gold, (2, 1)), np.stack([gold, np.zeros(60, dtype=int)])
    assert runs.score("accuracy", gold, right) == runs.Score(1.0, 1.0, 1.0)
    some = runs.score("accuracy", gold, half)
    assert some.value == pytest.approx(0.75)
    assert some.low < 0.6
    assert some.high > 0.9  # two runs that differ: the interval says so
    more = runs.difference("accuracy", gold, right, half)
    assert more.value == pytest.approx(0.25)
    same = runs.difference("accuracy", gold, half, half)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    assert runs.score("pearson", gold, np.zeros((1, 60))) == runs.Score(None, None, None)
    assert some.fields("gain") == {"gain": some.value, "gain_low": some.low, "gain_high": some.high}


def test_intervals_cover_the_share_that_was_planted():
    rng, covered = np.random.default_rng(0), 0
    for draw in range(60):
        gold = np.ones(150, dtype=int)
        found = runs.score("accuracy", gold, (rng.random((1, 150)) < 0.7).astype(int), seed=draw)
        covered += found.low <= 0.7 <= found.high
    assert covered >= 52


def test_a_score_is_known_where_half_of_its_draws_are():
    drawn = np.array([0.1, np.nan, 0.3, np.nan])
    half = runs._score(0.2, drawn)
    assert (half.value, half.low, half.high) == (0.2, *np.quantile([0.1, 0.3], [0.025, 0.975]))
    assert runs._score(0.2, np.array([0.1, np.nan, np.nan])).low is None
    assert runs._score(np.nan, np.array([0.1, 0.2])).value is None
    assert half.fields("f1") == {"f1": 0.2, "f1_low": half.low, "f1_high": half.high}
    assert set(half.fields()) == {"value", "low", "high"}
