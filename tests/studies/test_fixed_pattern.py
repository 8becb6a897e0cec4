"""Training under an operator: the patterns hold while learning, in layers and heads that were named."""

import numpy as np
import pytest
import torch

from core.attention import Head
from core.capture.interventions import Intervention
from core.capture.running import predict
from core.errors import CheckpointError, InputError
from core.models import opening
from core.models.opening import open_checkpoint
from core.studies.ablation import fixed_pattern
from core.studies.ablation.fixed_pattern import STUDY, FixedPatternOptions
from core.studies.tuning.finetune import TunedRun, TunedRuns
from core.studies.tuning.records import TunedRunScore
from core.tasks.glue import read_rows
from core.tuning.training import Fit
from tests.studies.planted import save_planted, write_rows
from tests.studies.through_json import rows_of


def test_patterns_leave_the_last_head_of_each_layer_free():
    found = {one.operator: one.heads for one in fixed_pattern.patterns(2, 6, causal=False)}
    assert found["current"] == {Head(layer, head) for layer in range(2) for head in (0, 4)}
    assert found["next"] == {Head(0, 2), Head(1, 2)}
    assert Head(0, 5) not in frozenset().union(*found.values())
    assert "next" not in {one.operator for one in fixed_pattern.patterns(2, 6, causal=True)}


@pytest.mark.thorough
def test_a_held_run_measures_the_model_under_its_patterns_and_a_free_one_without(tmp_path, monkeypatch):
    torch.set_num_threads(1)
    options = {
        "checkpoint": str(save_planted(tmp_path / "base")),
        "data": str(write_rows(tmp_path / "data", rows=24)),
        "out": str(tmp_path / "runs"),
        "settings": {"epochs": 1, "learning_rate": 0.001},
    }
    summary = rows_of("fixed-pattern", options)
    free, fixed = rows = [row for row in summary if row["kind"] == "run"]
    assert (free["held_heads"], fixed["held_heads"]) == (0, 9)
    dev = read_rows("sst2", "dev", folder=options["data"])
    with pytest.raises(CheckpointError, match="with fixed attention patterns"):
        open_checkpoint(fixed["folder"], head="classifier")
    monkeypatch.setattr(opening, "refuse_fixed_patterns", lambda folder, name: None)  # to look at its weights
    accuracies = []
    for row, interventions in ((free, []), (fixed, fixed_pattern.patterns(3, 4, causal=False))):
        found = open_checkpoint(row["folder"], head="classifier")
        some = [found.encode(one.text) for one in dev]
        right = predict(found, some, interventions=interventions).argmax(1) == torch.tensor([one.label for one in dev])
        accuracies.append(float(right.float().mean()))
    assert accuracies == [pytest.approx(free["accuracy"]), pytest.approx(fixed["accuracy"])]
    weights = [open_checkpoint(row["folder"]).model.encoder.layer[0].attention.self.query.weight for row in rows]
    base = open_checkpoint(options["checkpoint"]).model.encoder.layer[0].attention.self.query.weight
    assert not torch.equal(weights[0][:24], base[:24])
    moved = (weights[1] - base).abs()
    assert moved[24:].max() > 0  # the free head learned its query
    cost = summary[-1]
    assert cost["score"] == pytest.approx(fixed["accuracy"] - free["accuracy"])
    assert cost["low"] <= cost["score"] <= cost["high"]
    assert (cost["n"], cost["seeds"], cost["held_heads"]) == (24, 1, 9)
    means = {row["initialisation"]: row["accuracy"] for row in summary if row["kind"] == "mean"}
    assert means == {"free": free["accuracy"], "held": fixed["accuracy"]}
    assert next(row for row in summary if row["kind"] == "baseline")["accuracy"] == 0.5
    assert not any("predicted" in row for row in summary)


@pytest.mark.thorough
def test_a_held_run_that_was_killed_is_taken_up(tmp_path, monkeypatch):
    """It ends as an undisturbed one does, and learns only the epochs that were left."""
    torch.set_num_threads(1)
    options = {
        "checkpoint": str(save_planted(tmp_path / "base")),
        "data": str(write_rows(tmp_path / "data", rows=24)),
        "out": str(tmp_path / "runs"),
        "settings": {"epochs": 2, "learning_rate": 0.001},
    }
    full = STUDY.read(options)
    unit = next(unit for unit in STUDY.units(full) if unit.arguments.kind == "held")
    (whole,) = STUDY.run(full, unit).partial.runs
    saved, save = [], Fit._save

    def die(self):
        save(self)
        saved.append(self.log.step)
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(Fit, "_save", die)
        with pytest.raises(KeyboardInterrupt):
            STUDY.run(full, unit)
    again = []
    monkeypatch.setattr(Fit, "_save", lambda self: (save(self), again.append(self.log.step)))
    (resumed,) = STUDY.run(full, unit).partial.runs
    assert min(again) > saved[0]
    assert resumed.score.accuracy == whole.score.accuracy
    assert resumed.score.last_loss == whole.score.last_loss
    assert not list((tmp_path / "runs").glob("*.state"))


def test_chosen_heads_are_checked():
    with pytest.raises(InputError, match="such as L7H6"):
        STUDY.units(FixedPatternOptions(heads="first"))
    chosen = FixedPatternOptions(heads="L1H2", operator="zero")

    class Known:
        layers, heads, causal = 3, 4, False

    assert fixed_pattern.held_heads(chosen, Known()) == [Intervention("zero", frozenset({Head(0, 1)}))]


def test_runs_of_other_heads_have_folders_of_their_own(tmp_path):
    data = str(write_rows(tmp_path / "data", rows=8))
    keys = [
        {unit.key for unit in STUDY.units(FixedPatternOptions(data=data, **chosen))}
        for chosen in ({}, {"heads": "L1H2"}, {"heads": "L1H2", "operator": "zero"}, {"heads": "L1H3"})
    ]
    free = set.intersection(*keys)
    assert len(free) == 1
    assert len(set().union(*keys)) == 5


def test_what_holding_costs_is_the_mean_over_seeds():
    gold, runs = [0, 1] * 10, []
    for seed, right in ((0, 20), (1, 16)):
        for kind, fewer in (("free", 0), ("held", 5)):
            predicted = [label if k < right - fewer else 1 - label for k, label in enumerate(gold)]
            score = TunedRunScore(
                task="sst2", initialisation=kind, seed=seed, metric="accuracy", accuracy=(right - fewer) / 20,
                majority="negative", baseline={"accuracy": 0.5}, held_heads=3,
            )  # fmt: skip
            runs.append(TunedRun(score, np.array(gold), np.array(predicted)))
    cost = STUDY.rows(FixedPatternOptions(), TunedRuns(tuple(runs)))[-1]
    assert cost["score"] == pytest.approx(-0.25)
    assert cost["low"] < -0.25 < cost["high"] < 0
    assert cost["seeds"] == 2
    assert STUDY.rows(FixedPatternOptions(), TunedRuns(tuple(runs[:1])))[-1]["kind"] != "change"


def test_a_block_cannot_be_held_at_a_pattern():
    with pytest.raises(InputError, match="L2-attention is a sublayer or a layer"):
        STUDY.units(STUDY.read({"checkpoint": "any", "heads": "L1H1,L2-attention"}))
