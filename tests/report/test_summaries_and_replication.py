"""Sentences of summaries, of a later blog and of the replication: each holds, fails and stays open where it must."""

import pytest

from core.report.claims import changes, heads_and_layers, maps, scores
from core.report.claims.outcomes import FAILS, HOLDS, KNOWN_ERROR, UNDECIDED, UNTESTED
from tests.report.evidence_made import CHECKPOINT, evidence, found, head_rows, sweep_rows


def only(outcomes):
    (one,) = outcomes
    return one.outcome


def tuning(untuned, random, spread=None, seeds=1, task="qnli"):
    about = {"metric": "accuracy", "task": task, "note": "", "constant": 0}
    scores = {"pretrained": 0.9, "untrained": untuned, "random": random}
    means = [
        about | {"kind": "mean", "initialisation": name, "accuracy": value, "n": seeds, "accuracy_sd": spread}
        for name, value in scores.items()
    ]
    return evidence(found("tuning", [about | {"kind": "run", "dev_rows": 2000}, *means], task))


@pytest.mark.parametrize(("untuned", "random", "word"), [(0.6, 0.5, HOLDS), (0.5, 0.6, FAILS), (0.5, 0.51, UNDECIDED)])
def test_random_weights_tuned_against_pretrained_ones_that_were_not(untuned, random, word):
    (one,) = scores.tuned_random_below_untuned(tuning(untuned, random))
    assert (one.outcome, one.seeds, one.margin) == (word, 1, 0.0)
    assert only(scores.tuned_random_below_untuned(tuning(untuned, random, task="rte"))) == UNTESTED  # of two tasks


def test_seeds_that_part_widen_the_interval():
    (close,) = scores.tuned_random_below_untuned(tuning(0.6, 0.5, 0.001, 3))
    (wide,) = scores.tuned_random_below_untuned(tuning(0.6, 0.5, 0.05, 3))
    assert (close.outcome, wide.outcome, wide.seeds) == (HOLDS, UNDECIDED, 3)
    assert wide.statistic.low < 0 < close.statistic.low


def test_the_printed_mean_gain_adds_up_and_is_a_known_error():
    (one,) = scores.mean_gain(tuning(0.5, 0.5))
    assert one.outcome == KNOWN_ERROR
    assert one.said.startswith("The mean gain over 7 tasks is 35.90 points")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ((0.0, 0.0, 0.2, 0.0, 0.0, 0.0), HOLDS),
        ((0.2, 0.0, 0.0, 0.0, 0.0, 0.0), FAILS),
        ((0.0, 0.0, -0.2, 0.0, 0.0, 0.0), FAILS),
        ((0.2, 0.0, 0.2, 0.0, 0.0, 0.0), UNDECIDED),  # both
        ((0.0, 0.0, 0.01, 0.0, 0.0, 0.0), UNDECIDED),
    ],
)
def test_layer_five_or_the_first(changes, word):
    rows = sweep_rows({f"L{k + 1}": change for k, change in enumerate(changes)})
    rows = [rows[0], *(row | {"layer": k} for k, row in enumerate(rows[1:]))]
    (one,) = heads_and_layers.fifth_layer_helps(evidence(found("layers", rows, "rte"), found("layers", rows, "sst2")))
    assert one.outcome == word
    assert "layer 3 of 6 " in one.said
    assert "layer 1 " in one.said


@pytest.mark.parametrize(
    ("cosines", "word"), [((0.95, 0.95, 0.5), HOLDS), ((0.95, 0.5, 0.5), FAILS), ((0.95, 0.9, 0.5), UNDECIDED)]
)
def test_most_weights_change_little_by_heads(cosines, word):
    rows = head_rows([cosines], kind="head", statistic="cosine")
    assert only(changes.most_change_little(evidence(found("change", rows, "rte")))) == word


def striped(table):
    """Features' rows of these effects [layer, head], by feature."""
    return [
        row | {"effect": row["value"], "effect_low": row["low"], "effect_high": row["high"]}
        for name, effects in table.items()
        for row in head_rows(effects, statistic="max", feature=name, checkpoint="tuned")
    ]


@pytest.mark.parametrize(
    ("separator", "noun", "word"),
    [
        ([0.4, 0.3], [0.0, 0.0], HOLDS),
        ([0.2, 0.2], [0.4, 0.4], FAILS),  # more than in the first layers, and most of it elsewhere
        ([0.4, 0.0], [0.0, 0.4], UNDECIDED),  # half of them
        ([0.4, 0.399], [0.0, 0.4], UNDECIDED),
        ([0.05, 0.0], [0.0, 0.05], UNTESTED),  # no stripe
    ],
)
def test_stripes_of_the_last_layers_are_at_separators_and_punctuation(separator, noun, word):
    """Of heads of the last third alone, whatever the first layers do."""
    early = [[0.5, 0.5], [0.5, 0.5]]
    rows = striped({"separator": [*early, separator], "noun": [*early, noun], "punctuation": [[0.0, 0.0]] * 3})
    assert only(maps.late_stripes(evidence(found("features", rows, "sst2")))) == word
    assert only(maps.late_stripes(evidence(found("features", rows, "rte")))) == UNTESTED  # the source's task alone
    assert only(maps.late_stripes(evidence(found("features", rows, "sst2"), causal=True))) == UNTESTED
    untuned = [row | {"checkpoint": CHECKPOINT} for row in rows]
    assert only(maps.late_stripes(evidence(found("features", untuned, "sst2")))) == UNTESTED
