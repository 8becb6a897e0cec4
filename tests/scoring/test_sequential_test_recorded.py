"""Intervals and verdicts of races over effects as they are: sparse, skewed, and alike among heads.

Rows are drawn with replacement from effects recorded on two checkpoints (tests/benchmarks/recorded), so the truth is
the recorded mean. Small effects have heavy tails, for which no t-interval of 64 rows holds.
"""

import numpy as np
import pytest

from core.scoring.sequential_test import log_capital, log_growth
from tests.benchmarks.race import CLIP, MARGIN, judged, null_sweeps, recorded, rules_for

RUNS = 60


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["encoder", "minilm"])
def test_intervals_of_all_heads_hold_at_all_numbers_of_rows_at_once(name):
    """An interval holds the truth where neither bet against it has won."""
    recording, held = recorded(name), 0
    rows = recording.exact.shape[1]
    truth, rules = recording.exact.mean(1), rules_for(recording, MARGIN)
    for seed in range(RUNS):
        drawn = recording.exact[:, np.random.default_rng([19, seed]).integers(0, rows, rows)]
        won, inside, start = [0.0, 0.0], True, 0
        for n in range(rules.first, rows, 64):
            some, start = drawn[:, start:n], n
            won = [before + log_growth(sign * some, CLIP, sign * truth)
                   for before, sign in zip(won, (1, -1), strict=True)]  # fmt: skip
            inside &= bool((log_capital(np.stack(won)) < rules.wanted).all())
        held += inside
    assert held >= 0.95 * RUNS - 5  # 57 are meant; 52 is what chance may take from them


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["encoder", "minilm"])
def test_heads_at_the_margin_seldom_get_a_verdict_where_either_is_false(name):
    assert null_sweeps(recorded(name), MARGIN, 50) <= 7  # 2.5 are meant; 7 is three standard deviations more


@pytest.mark.parametrize("name", ["encoder", "minilm"])
def test_verdicts_are_those_of_the_full_sweep_at_a_third_of_its_work(name):
    found = judged(recorded(name), MARGIN, seeds=5)
    assert found["contradictions"] == 0
    assert found["open"] <= 0.1
    assert found["forward_ratio"] >= 3  # what is asked for
