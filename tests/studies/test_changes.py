"""Rows of changed predictions and of operators' reference sets, against counts made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from core.studies.ablation import setup
from core.studies.ablation.operators import OperatorsOptions
from core.studies.ablation.records import effect_scores
from core.studies.ablation.setup import Opened, expected_logits, fitted_constants
from core.studies.outcomes import Metric, metrics_before, prediction_changes, share_interval
from core.tasks.glue import task_of

GOLD, PLAIN = np.array([0, 1, 1, 0, 1, 0, 1, 1]), np.array([0, 1, 1, 0, 0, 0, 1, 1])
CHANGED = np.array([[0, 1, 1, 0, 0, 0, 1, 1], [1, 0, 1, 0, 1, 1, 0, 1]])


def test_changes_flips_and_correction():
    task = task_of("sst2")
    same, other = prediction_changes(task, GOLD, PLAIN, CHANGED, seed=0)
    assert (same["metrics"].first.change.value, same["flipped"], same["p"], same["mcnemar"]) == (0, 0, 1, 1)
    accuracy = other["metrics"].first
    assert accuracy.value == pytest.approx(np.mean(CHANGED[1] == GOLD))
    assert accuracy.change.value == pytest.approx(np.mean(CHANGED[1] == GOLD) - np.mean(PLAIN == GOLD))
    assert other["flipped"] == sum(a != b for a, b in zip(CHANGED[1], PLAIN, strict=True))
    assert accuracy.change.low <= accuracy.change.value <= accuracy.change.high
    assert other["n"] == 8
    assert (other["changed_rate"], other["changed_low"], other["changed_high"]) == share_interval(CHANGED[1] != PLAIN)
    assert same["changed_rate"] == same["changed_low"] == 0
    assert same["changed_high"] > 0.3  # none of 8 says little
    assert metrics_before(task, GOLD, PLAIN).first == Metric("accuracy", pytest.approx(7 / 8))


def test_scores_have_no_flips():
    task = task_of("stsb")
    gold, plain = np.array([0.0, 1.0, 2.5, 4.0]), np.array([0.5, 1.0, 2.0, 4.5])
    (change,) = prediction_changes(task, gold, plain, np.array([[0.4, 1.1, 2.6, 3.0]]), seed=0)
    assert change["flipped"] is None
    assert change["mcnemar"] is None
    assert "changed_rate" not in change
    assert change["metrics"].first.value == pytest.approx(np.corrcoef(gold, [0.4, 1.1, 2.6, 3.0])[0, 1])


def test_a_share_has_wilsons_interval():
    value, low, high = share_interval(np.array([True] * 2 + [False] * 8))
    z, n = 1.959964, 10
    middle = (0.2 + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(0.2 * 0.8 / n + z**2 / (4 * n**2))
    assert (value, low, high) == pytest.approx((0.2, middle - half, middle + half), abs=1e-5)
    assert all(np.isnan(share_interval(np.array([], dtype=bool))))


def test_draws_are_averaged_as_probabilities_or_scores():
    one, two = torch.tensor([[4.0, 0.0]]), torch.tensor([[0.0, 4.0]])
    assert torch.softmax(expected_logits([one, two], is_score=False), -1)[0].tolist() == pytest.approx([0.5, 0.5])
    assert torch.equal(expected_logits([one], is_score=False), one)
    assert expected_logits([torch.tensor([[1.0]]), torch.tensor([[3.0]])], is_score=True).tolist() == [[2.0]]


def test_constants_are_fitted_once_for_the_same_weights_and_reference_rows(monkeypatch):
    made = []
    monkeypatch.setattr(setup, "reference_rows", lambda opened, options, most: [most, options.reference])
    monkeypatch.setattr(
        setup, "fit_constants", lambda opened, rows: made.append(rows) or (opened.checkpoint.name, *rows)
    )

    def fitted(name="x", weights="h", **options):
        opened = Opened(SimpleNamespace(name=name, weights_hash=weights), task_of("sst2"), (0, 1))
        return fitted_constants(opened, OperatorsOptions(checkpoint=name, **options))

    monkeypatch.setattr(setup, "_FITTED", {})
    assert fitted() == fitted() == ("x", 64, 200)
    assert len(made) == 1
    assert fitted(name="y") == ("y", 64, 200)
    assert fitted(name="y", reference=50) == ("y", 64, 50)
    for number, changed in enumerate(({"weights": "g"}, {"seed": 1}, {"data": "rows.csv"}), start=4):
        fitted(name="y", reference=50, **changed)
        assert len(made) == number


def test_every_ablation_method_has_its_scores_and_zeroing_is_michels():
    scores = effect_scores(("{} a", "label {}", "formula {}"), ("{} b", "other {}", "by {}"))
    assert [score.name for score in scores[:4]] == ["disable a", "disable b", "zero a", "zero b"]
    assert [(score.label, score.formula) for score in scores[2:4]] == [
        ("label zero", "formula zero"),
        ("other zero", "by zero"),
    ]
    assert {score.name for score in scores if score.source == "Michel et al. 2019"} == {"zero a", "zero b"}
    assert len(scores) == 18
    assert {(score.needs, score.low, score.high, score.about) for score in scores} == {
        (("classifier", "labels"), None, None, "task")
    }
