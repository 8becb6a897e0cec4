"""Sentences on special tokens, stripes, roles and layers: each holds, fails and stays open where it must."""

from dataclasses import replace

import numpy as np
import pytest

from core.interval import Estimate
from core.report.claims import class_shares, heads_and_layers
from core.report.claims.outcomes import (
    FAILS,
    HOLDS,
    UNDECIDED,
    UNTESTED,
    Outcome,
    apart,
    decided,
    no_loss,
    within,
)
from core.report.measures.scores import BEST_KEPT, table_one
from tests.report.evidence_made import CHECKPOINT, evidence, found, head_rows, sweep_rows


def only(outcomes):
    (one,) = outcomes
    return one.outcome


def span(value, half):
    return Estimate(value, value - half, value + half)


# ---------------------------------------------------------------- how many rows would decide


def mean_of(sample, level=1.959964):
    return span(float(sample.mean()), float(level * sample.std(ddof=1) / len(sample) ** 0.5))


def test_so_many_rows_decide_a_mean_as_it_is_said():
    """By drawing: an effect that 100 rows leave open is decided by about as many rows as the decision says."""
    generator = np.random.default_rng(3)
    noise = generator.normal(size=100_000)

    def sample(n):
        return 0.1 + (noise[:n] - noise[:n].mean()) / noise[:n].std(ddof=1)  # the estimate and the spread stay

    decision = decided(mean_of(sample(100)))
    assert decision.word == UNDECIDED
    needed = Outcome(decision.word, "", n=100, times=decision.times).needed
    assert decided(mean_of(sample(needed + 1))).word == HOLDS
    assert decided(mean_of(sample(needed - 1))).word == UNDECIDED


def test_rows_to_decide_follow_the_square_of_what_is_missing():
    assert decided(span(0.1, 0.2)).times == pytest.approx(4)
    assert decided(span(-0.1, 0.2)).times == pytest.approx(4)  # it would fail
    assert decided(span(0.0, 0.2)).times is None  # on the line no number of rows helps
    assert decided(Estimate(0.1)).times is None
    assert decided(span(1e-5, 0.2)).times is None  # 400 million times the rows are no plan
    assert apart([span(0.5, 0.2)], [span(0.3, 0.2)]).times == pytest.approx(4)
    assert apart([span(0.5, 0.01)], [span(0.3, 0.01)]).word == HOLDS
    assert no_loss([span(0.0, 0.02)]).times == pytest.approx(4)  # the lower end must rise to -0.01
    assert no_loss([span(-0.02, 0.04)]).times == pytest.approx(16)  # the upper end must fall to -0.01, the margin
    assert no_loss([span(0.0, 0.02), span(0.0, 0.04)]).times == pytest.approx(16)  # the slowest decides


@pytest.mark.parametrize(
    ("value", "half", "word", "times"),
    [
        (0.0, 0.05, HOLDS, None),
        (0.04, 0.02, UNDECIDED, 4),
        (-0.04, 0.02, UNDECIDED, 4),
        (0.06, 0.02, UNDECIDED, 4),
        (-0.06, 0.02, UNDECIDED, 4),
        (0.08, 0.02, FAILS, None),
        (-0.08, 0.02, FAILS, None),
        (0.02, 0.09, UNDECIDED, 9),
    ],
)
def test_within_a_margin(value, half, word, times):
    decision = within([span(value, half)], 0.05)
    assert decision.word == word
    assert decision.times == (None if times is None else pytest.approx(times))


def test_an_open_claim_of_many_heads_needs_the_quickest_that_suffice():
    weights = [span(0.9, 0.01), span(0.6, 0.2), span(0.7, 0.4), span(0.1, 0.01), span(0.1, 0.01), span(0.1, 0.01)]
    assert heads_and_layers.enough_heads(weights, 0.5, 1 / 3).times == pytest.approx(4)  # two of six; 1 sure
    assert heads_and_layers.enough_heads(weights, 0.5, 1 / 2).times == pytest.approx(4)  # both open ones, 4 each
    assert heads_and_layers.enough_heads(weights, 0.5, 2 / 3).word == FAILS
    assert heads_and_layers.enough_heads(weights, 0.5, 1 / 6).word == HOLDS
    falling = [span(0.4, 0.2), span(0.1, 0.01), span(0.2, 0.01)]
    assert heads_and_layers.enough_heads(falling, 0.5, 1 / 3).times == pytest.approx(4)


# ---------------------------------------------------------------- what heads attend to


@pytest.mark.parametrize(
    ("first", "separator", "outcome"),
    [
        ([[0.4, 0.4], [0.1, 0.1]], [[0.4, 0.4], [0.1, 0.1]], HOLDS),
        ([[0.4, 0.1], [0.1, 0.1]], [[0.4, 0.1], [0.1, 0.1]], FAILS),  # one of four
        ([[0.4, 0.26], [0.1, 0.1]], [[0.4, 0.25], [0.1, 0.1]], UNDECIDED),
    ],
)
def test_a_third_of_the_heads_on_special_tokens(first, separator, outcome):
    rows = head_rows(first, statistic="first", task="rte") + head_rows(separator, statistic="separator", task="rte")
    assert only(heads_and_layers.special_tokens(evidence(found("statistics", rows)))) == outcome
    assert only(heads_and_layers.special_tokens(evidence(found("statistics", rows), causal=True))) == UNTESTED


def share(name, value, half=0.02, **more):
    ends = {"share": value, "low": value - half, "high": value + half}
    return (
        {"part": "share", "class": name, "checkpoint": CHECKPOINT, "inputs": 50, "maps": 9, "classifier": "c"}
        | ends
        | more
    )


def moved(name, change, half=0.01, wide=0.02):
    ends = {"low": change - half, "high": change + half, "low_all": change - wide, "high_all": change + wide}
    return {"part": "moved", "class": name, "checkpoint": "tuned", "share": change, "inputs": 50} | ends


def of_heads(*meaningful, n=50):
    """Rows of heads of the fine-tuned checkpoint: so many of a head's n maps are Heterogeneous or Block."""
    about = {"part": "head", "checkpoint": "tuned", "inputs": n, "layer": 0, "class": "vertical", "share": 0.5}
    return [
        about | {"head": k, "counts": {"heterogeneous": some - some // 2, "block": some // 2, "vertical": n - some}}
        for k, some in enumerate(meaningful)
    ]


@pytest.mark.parametrize(
    ("heads", "outcome"),
    [
        ((2, 2, 49), HOLDS),  # one head of three, though it has a third of all maps
        ((49, 49, 2), FAILS),
        ((2, 25, 49), UNDECIDED),
        ((22, 22, 22, 22), UNDECIDED),  # fewer than half of all maps, but which heads is open
    ],
)
def test_meaningful_maps_are_counted_by_heads(heads, outcome):
    (one,) = class_shares.few_meaningful(evidence(found("shares", of_heads(*heads), "rte")))
    assert one.outcome == outcome
    assert (one.n, one.task) == (50, "rte")
    assert only(class_shares.few_meaningful(evidence(found("shares", [share("diagonal", 1.0)], "rte")))) == UNTESTED
    old = [{name: value for name, value in row.items() if name != "counts"} for row in of_heads(*heads)]
    (without,) = class_shares.few_meaningful(evidence(found("shares", old, "rte")))
    assert (without.outcome, "Rerun this step" in without.said) == (UNTESTED, True)


@pytest.mark.parametrize(("half", "outcome"), [(0.02, HOLDS), (0.12, UNDECIDED)])
def test_a_change_of_shares_has_the_classifiers_errors_in_it(half, outcome):
    rows = [moved("vertical", 0.05), moved("block", 0.0)]
    corrected = [
        {"part": "corrected", "class": "vertical", "checkpoint": checkpoint, "share": value, "inputs": 50}
        | {"low": value - reach, "high": value + reach, "maps": 9}
        for checkpoint, value, reach in ((CHECKPOINT, 0.25, 0.01), ("tuned", 0.32, half))
    ]
    (one,) = class_shares.more_vertical(evidence(found("shares", [*rows, *corrected], "rte")))
    assert one.outcome == outcome
    assert "The interval includes the errors of the classifier." in one.said
    assert one.statistic.value == pytest.approx(0.07)
    (counted,) = class_shares.more_vertical(evidence(found("shares", rows, "rte")))
    assert "The interval does not include the errors" in counted.said


def test_shares_stay_by_the_paired_interval_of_all_classes_together():
    for changes, outcome in (
        ([moved("vertical", 0.01), moved("block", -0.01)], HOLDS),
        ([moved("vertical", 0.073, 0.005, 0.01), moved("block", -0.01)], HOLDS),  # the largest change in the source
        ([moved("vertical", 0.09), moved("block", -0.01)], UNDECIDED),  # 9 points, but it may be 11
        ([moved("vertical", 0.115), moved("block", -0.01)], UNDECIDED),  # alone it would be beyond 10 points
        ([moved("vertical", 0.13), moved("block", -0.01)], FAILS),
    ):
        assert only(class_shares.shares_stay(evidence(found("shares", changes, "rte")))) == outcome
    unpaired = [share("vertical", 0.5), share("vertical", 0.9, checkpoint="tuned")]
    (one,) = class_shares.shares_stay(evidence(found("shares", unpaired, "rte")))
    assert (one.outcome, "Rerun this step" in one.said) == (UNTESTED, True)


def test_more_vertical_after_fine_tuning():
    for change, outcome in ((0.05, HOLDS), (-0.05, FAILS), (0.005, UNDECIDED)):
        rows = [moved("vertical", change), moved("block", 0.0)]
        assert only(class_shares.more_vertical(evidence(found("shares", rows, "rte")))) == outcome
    assert only(class_shares.more_vertical(evidence(found("shares", [moved("overall", 0.1)], "rte")))) == UNTESTED


def stripes(effects, half=0.01):
    rows = head_rows([effects], statistic="max", feature="punctuation", checkpoint=CHECKPOINT)
    return [
        row | {"effect": row["value"], "effect_low": row["value"] - half, "effect_high": row["value"] + half}
        for row in rows
    ]


def test_stripes_at_sentence_borders():
    for effects, more, outcome in (
        ([0.01, 0.05], {}, HOLDS),
        ([0.01, 0.2], {}, FAILS),
        ([0.01, 0.2], {"half": 0.095}, UNDECIDED),  # above alone, but not corrected over two heads
        ([0.01, 0.09], {"half": 0.05}, UNDECIDED),
    ):
        one = evidence(found("features", stripes(effects, **more), "rte"), causal=True)
        assert only(heads_and_layers.no_stripes_at_borders(one)) == outcome


# ---------------------------------------------------------------- fine-tuning, roles, layers


def weights(layers, feature, change, half=0.01):
    rows = head_rows([[value] for value in layers], half, statistic="max", feature=feature, checkpoint=CHECKPOINT)
    table = [[-change] for _ in layers]  # the study's difference is before less after
    return rows + head_rows(table, half, statistic="max", feature=feature, checkpoint="difference")


def test_nouns_and_verbs_rise_with_depth_and_fall_after_fine_tuning():
    up, down = (0.1, 0.1, 0.3, 0.3), (0.3, 0.3, 0.1, 0.1)
    for layers, change, outcome in ((up, -0.05, HOLDS), (down, -0.05, FAILS), (up, 0.05, FAILS), (up, 0.0, UNDECIDED)):
        rows = weights(layers, "noun", change) + weights(up, "verb", -0.05)
        assert only(heads_and_layers.rise_and_fall(evidence(found("features", rows, "rte")))) == outcome


def test_negation_is_claimed_on_qnli_and_says_whose_rows_they_are():
    rows = weights((0.1, 0.1), "negation", 0.05)
    one = evidence(found("features", rows, "qnli"), found("features", rows, "rte"))
    (outcome,) = heads_and_layers.more_to_negation(one)
    assert (outcome.outcome, outcome.task, outcome.n) == (HOLDS, "qnli", 50)
    assert "made for this project" not in outcome.said
    (bundled,) = heads_and_layers.more_to_negation(replace(one, bundled=True))
    assert bundled.outcome == HOLDS
    assert "examples were made for this project" in bundled.said
    of_two = head_rows([[-0.05, 0.1]], statistic="max", feature="negation", checkpoint="difference")
    (some,) = heads_and_layers.more_to_negation(evidence(found("features", of_two, "qnli")))
    assert some.outcome == HOLDS  # one head gains, though their mean loses


@pytest.mark.parametrize(
    ("costs", "outcome"), [((-0.001, 0.0), HOLDS), ((-0.2, 0.0), FAILS), ((-0.002, 0.1), UNDECIDED)]
)
def test_no_layer_costs_more_than_a_fifth_of_a_point_on_qnli(costs, outcome):
    rows = sweep_rows({f"L{k + 1}": cost for k, cost in enumerate(costs)}, 0.0005)
    one = evidence(found("layers", rows, "qnli"), found("layers", rows, "rte"))
    assert only(heads_and_layers.no_layer_costs_more(one)) == outcome


def test_fine_tuned_beats_a_head_that_was_never_trained():
    about = {"metric": "accuracy", "task": "rte"}
    for tuned, untuned, outcome in ((0.9, 0.5, HOLDS), (0.5, 0.9, FAILS), (0.7, 0.69, UNDECIDED)):
        means = [
            about | {"kind": "mean", "n": 1, "note": "", "constant": 0, "initialisation": name, "accuracy": accuracy}
            for name, accuracy in (("pretrained", tuned), ("untrained", untuned))
        ]
        rows = [about | {"kind": "run", "dev_rows": 500}, *means]
        assert only(heads_and_layers.tuning_beats_untuned(evidence(found("tuning", rows, "rte")))) == outcome


def test_a_role_on_one_task_is_compared_with_that_over_all_rows():
    def rows(task, n, previous, kinds):
        heads = [row | {"n": n} for row in head_rows([previous], statistic="previous", task=task)]
        places = head_rows([[0.0] * len(kinds)], statistic="place", task=task)
        return heads + [row | {"kind": kind} for row, kind in zip(places, kinds, strict=True)]

    for big, outcome in (([0.9] * 20, FAILS), ([0.1] * 20, HOLDS), ([0.9] * 10 + [0.1] * 10, UNDECIDED)):
        small = rows("rte", 10, [0.9] * 20, ["previous"] * 20)
        kinds = ["previous" if value > 0.5 else "other" for value in big]
        every = small + rows("mrpc", 1000, big, kinds)
        (one,) = heads_and_layers.keeps_its_role(evidence(found("statistics", every)))
        assert one.outcome == outcome, one.said
    assert only(heads_and_layers.keeps_its_role(evidence(found("statistics", small)))) == UNTESTED


@pytest.mark.parametrize("keep", ["best", "last"])
def test_a_kept_best_epoch_is_said_beside_the_score(keep):
    about = {"metric": "accuracy", "task": "rte", "note": "", "constant": 0, "accuracy": 0.7}
    rows = [about | {"kind": "run", "dev_rows": 500}, about | {"kind": "mean", "n": 2, "initialisation": "pretrained"}]
    options = {"preset": "paper", "settings": {"keep": keep}}
    (value,) = table_one(evidence(found("tuning", rows, "rte", options=options)))
    assert value.note == "2 seeds" + (BEST_KEPT if keep == "best" else "")
