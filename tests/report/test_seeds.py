"""What the luck of seeds adds to an interval, against scipy's t-tests, and how many seeds would decide."""

import numpy as np
import pytest
from scipy import stats

from core.interval import Estimate
from core.report.claims import claim, heads_and_layers
from core.report.claims.outcomes import FAILS, HOLDS, UNDECIDED, gains
from core.report.claims.seeds import Luck, decided_with, luck_of, welch, with_luck
from core.report.rendering.words import needed_of, numbers_of
from core.report.report import outcomes
from tests.report.evidence_made import evidence, found

FIRST, OTHER = (0.80, 0.83, 0.79), (0.42, 0.65, 0.43)


def exact(value):
    """A number whose rows say it without noise."""
    return Estimate(value, value, value)


def test_several_seeds_have_students_interval_and_two_sorts_have_welchs():
    low, high = stats.t.interval(0.95, 2, np.mean(FIRST), stats.sem(FIRST))
    found = with_luck(exact(float(np.mean(FIRST))), luck_of(FIRST))
    assert (found.low, found.high) == pytest.approx((low, high))
    oracle = stats.ttest_ind(FIRST, OTHER, equal_var=False).confidence_interval()
    both = with_luck(exact(float(np.mean(FIRST) - np.mean(OTHER))), welch(luck_of(FIRST), luck_of(OTHER)))
    assert (both.low, both.high) == pytest.approx((oracle.low, oracle.high))
    assert luck_of([0.5]) == Luck()
    assert welch(Luck(), Luck()).half == 0
    assert welch(luck_of(FIRST), Luck()).half == pytest.approx(luck_of(FIRST).half)


def tuned(first, other, name="untrained", n=10**9):
    about = {"metric": "accuracy", "task": "rte", "note": "", "constant": 0}
    rows = []
    for initialisation, values in (("pretrained", first), (name, other)):
        own = about | {"initialisation": initialisation}
        rows += [own | {"kind": "run", "dev_rows": n, "accuracy": value, "seed": k} for k, value in enumerate(values)]
        spread = {"accuracy_sd": float(np.std(values, ddof=1))} if len(values) > 1 else {}
        rows.append(own | {"kind": "mean", "accuracy": float(np.mean(values)), "n": len(values)} | spread)
    return evidence(found("tuning", rows, "rte"))


def test_a_run_and_the_untrained_head_it_began_with_are_a_pair():
    (one,) = heads_and_layers.tuning_beats_untuned(tuned(FIRST, OTHER))
    low, high = stats.ttest_rel(FIRST, OTHER).confidence_interval()
    assert (one.statistic.low, one.statistic.high) == pytest.approx((low, high), abs=1e-3)
    assert one.outcome == HOLDS
    (apart,) = heads_and_layers.tuning_beats_untuned(tuned(FIRST, (0.42, 0.65)))  # another number of seeds: no pairs
    assert apart.statistic.low < one.statistic.low


@pytest.mark.parametrize(
    ("noise", "luck", "rows", "seeds"),
    [
        (0.04, Luck(), True, False),  # one seed: rows, as ever
        (0.04, Luck(0.001, 3, 2), True, False),
        (0.001, Luck(0.02, 3, 2), False, True),  # more rows would not
        (0.04, Luck(0.02, 3, 2), True, True),
    ],
)
def test_an_undecided_one_says_whether_rows_or_seeds_would_decide_it(noise, luck, rows, seeds):
    value = 0.02
    decision = decided_with(Estimate(value, value - noise, value + noise), luck)
    assert (decision.word, decision.times is not None, decision.seeds is not None) == (UNDECIDED, rows, seeds)
    noise /= (decision.times or 1) ** 0.5
    more = Luck(luck.spread, decision.seeds or luck.seeds, (decision.seeds or luck.seeds) - 1 or 1)
    assert decided_with(Estimate(value, value - 0.99 * noise, value + noise), more).word == HOLDS
    assert decided_with(Estimate(value, value - 0.001, value + 0.001), Luck(0.0, 3, 2)).word == HOLDS


def test_several_seeds_without_their_spread_decide_nothing():
    about = {"metric": "accuracy", "task": "rte", "note": "", "constant": 0}
    rows = [about | {"kind": "run", "dev_rows": 500}]
    rows += [
        about | {"kind": "mean", "initialisation": name, "n": 3, "accuracy": value}
        for name, value in (("pretrained", 0.9), ("untrained", 0.5))
    ]
    (one,) = heads_and_layers.tuning_beats_untuned(evidence(found("tuning", rows, "rte")))
    assert (one.outcome, one.needed, one.needed_seeds) == (UNDECIDED, None, None)


def test_heads_cannot_become_more():
    one = decided_with(Estimate(0.52, 0.4, 0.6), Luck(0.01, 3, 2), 0.5, more_rows=False)
    assert (one.word, one.times, one.seeds) == (UNDECIDED, None, None)


def test_a_report_says_the_seeds():
    (one,) = outcomes(claim("tuned-beats-untuned"), tuned((0.5, 0.6, 0.55), (0.5, 0.45, 0.6)))
    assert (one.outcome, one.needed, one.seeds) == (UNDECIDED, None, 3)
    assert one.needed_seeds > 3
    assert f"To decide the claim, {one.needed_seeds} seeds of fine-tuning would be needed." in numbers_of(one)
    assert needed_of(one) == f"{one.needed_seeds} seeds of fine-tuning"


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.001, 0.2, HOLDS), (-0.2, 0.009, FAILS), (-0.2, -0.1, FAILS), (-0.01, 0.02, UNDECIDED)]
)
def test_a_gain_that_is_surely_smaller_than_a_point_is_none(low, high, word):
    decision = gains(Estimate((low + high) / 2, low, high))
    assert decision.word == word
    if word == UNDECIDED:
        assert decision.times == pytest.approx(9)  # half of 1.5 points against the half point up to one point


def test_a_named_layer_that_lowers_the_score_needs_no_correction():
    rows = [{"kind": "baseline", "name": "untouched", "accuracy": 0.7, "n": 100}]
    for k, change in enumerate((0.0, 0.0, -0.054, 0.0, 0.0, 0.0)):
        ends = {"accuracy_change": change, "accuracy_low": change - 0.044, "accuracy_high": change + 0.044}
        rows.append({"kind": "variant", "name": f"L{k + 1}", "layer": k, "p": 0.5, "n": 100, "flipped": k} | ends)
    (one,) = heads_and_layers.fifth_layer_helps(evidence(found("layers", rows, "rte")))
    assert (one.outcome, one.statistic.high) == (FAILS, pytest.approx(-0.01))
