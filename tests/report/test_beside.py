"""Runs of other settings are found among what is stored and set beside the plan's own."""

import json

import pytest

from core.report.claims import claim, scores
from core.report.claims.outcomes import FAILS, HOLDS, UNDECIDED, UNTESTED
from core.report.ids import Part
from core.report.report import outcomes, stored_beside
from tests.report.evidence_made import CHECKPOINT, evidence, found

PLANNED = {"checkpoint": CHECKPOINT, "tasks": ["rte"], "preset": "small", "settings": {"train_limit": 100}}


def scored(accuracy, n=10**7, seeds=3, spread=0.001):
    about = {"metric": "accuracy", "task": "rte", "note": "", "constant": 0}
    mean = {"kind": "mean", "initialisation": "pretrained", "accuracy": accuracy, "n": seeds, "accuracy_sd": spread}
    baseline = {"kind": "baseline", "initialisation": "always", "accuracy": 0.5, "n": 1}
    return [about | {"kind": "run", "dev_rows": n}, about | mean, about | baseline]


def stored(name, settings, **changes):
    options = PLANNED | {"initialisations": ["pretrained"], "settings": {"train_limit": 100} | settings} | changes
    return {"run": name, "weights_hash": None, "options": json.dumps(options)}


def made(*runs, rows=None):
    """The plan's fine-tuning, and what is found beside it."""
    usual = found("tuning", scored(0.8), "rte", options=PLANNED)
    rows = rows or {}
    return [usual, *stored_beside([usual], runs, lambda run: rows.get(run, scored(0.8)))]


def test_the_newest_run_of_just_these_settings_is_found():
    others = (
        stored("another preset", {"pooling": "sep"}, preset="paper"),
        stored("more than that", {"pooling": "sep", "epochs": 1}),
        stored("another task", {"pooling": "sep"}, tasks=["mrpc"]),
        stored("other rows", {"pooling": "sep"}, data="elsewhere"),
        stored("random", {"pooling": "sep"}, initialisations=["random"]),
        stored("the plan's own", {}),
    )
    assert len(made(*others)) == 1
    _, one = made(*others, stored("newest", {"pooling": "sep"}), stored("older", {"pooling": "sep"}))
    assert (one.step.part, one.run, one.task) == (Part.BY_SEPARATOR, "newest", "rte")
    _, one = made(stored("fresh", {"reset_last": 2, "train_last": 2}))
    assert one.step.part == Part.FRESH_LAST


def test_one_of_other_weights_or_one_that_is_there_already_is_not():
    run = stored("newest", {"pooling": "sep"})
    usual = found("tuning", scored(0.8), "rte", options=PLANNED)
    object.__setattr__(usual.origin, "weights_hash", "a")
    assert stored_beside([usual], [run | {"weights_hash": "b"}], lambda _: scored(0.8)) == []
    assert stored_beside([usual, found("by-separator", scored(0.8), "rte")], [run], lambda _: scored(0.8)) == []


@pytest.mark.parametrize(
    ("accuracy", "n", "word"), [(0.799, 10**7, HOLDS), (0.77, 10**7, FAILS), (0.799, 500, UNDECIDED)]
)
def test_stored_rows_decide_whether_classifying_by_the_separator_is_as_good(accuracy, n, word):
    results = made(stored("s", {"pooling": "sep"}), rows={"s": scored(accuracy, n)})
    (one,) = outcomes(claim("classified-by-separator"), evidence(*results))
    assert (one.outcome, one.task, one.run, one.seeds, one.margin) == (word, "rte", "s", 3, -0.01)
    assert (one.needed is not None) == (word == UNDECIDED)
    assert "compared with 0.800 for full fine-tuning by [CLS]" in one.said
    (other,) = scores.fresh_last_layers(evidence(*results))
    assert (other.outcome, "--set reset_last=2 --set train_last=2" in other.said) == (UNTESTED, True)


def test_luck_of_seeds_asks_for_seeds():
    results = made(stored("s", {"reset_last": 2, "train_last": 2}), rows={"s": scored(0.8, spread=0.02)})
    (one,) = scores.fresh_last_layers(evidence(*results))
    assert (one.outcome, one.times) == (UNDECIDED, None)
    assert one.needed_seeds > 3


def test_where_nothing_can_be_lost_no_setting_loses():
    usual = found("tuning", scored(0.5, n=100), "rte", options=PLANNED)
    (one,) = scores.by_separator(evidence(usual, found("by-separator", scored(0.8, n=100), "rte")))
    assert (one.outcome, "Nothing can be lost" in one.said) == (UNTESTED, True)
