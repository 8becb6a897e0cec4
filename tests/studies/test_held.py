"""Training under an operator: the patterns hold while learning, in layers and heads that were named."""

import pytest
import torch

from core.attention import Head
from core.capture.interventions import Intervention
from core.capture.running import predict
from core.errors import InputError
from core.models.opening import open_checkpoint
from core.studies import held
from core.tasks.glue import read_rows
from tests.studies.planted import save_planted, write_rows


def test_patterns_leave_the_last_head_of_each_layer_free():
    found = {one.operator: one.heads for one in held.patterns(2, 6, causal=False)}
    assert found["current"] == {Head(layer, head) for layer in range(2) for head in (0, 4)}
    assert found["next"] == {Head(0, 2), Head(1, 2)}
    assert Head(0, 5) not in frozenset().union(*found.values())
    assert "next" not in {one.operator for one in held.patterns(2, 6, causal=True)}


def test_a_held_run_measures_the_model_under_its_patterns_and_a_free_one_without(tmp_path):
    torch.set_num_threads(1)
    options = held.DEFAULTS | {
        "checkpoint": str(save_planted(tmp_path / "base")), "data": str(write_rows(tmp_path / "data", rows=24)),
        "folder": str(tmp_path / "runs"), "settings": {"epochs": 1, "learning_rate": 0.001},
    }  # fmt: skip
    rows = [row for unit in held.units(options) for row in held.run(options, unit) if "kind" in row]
    free, fixed = rows
    assert (free["held_heads"], fixed["held_heads"]) == (0, 9)
    dev = read_rows("sst2", "dev", folder=options["data"])
    accuracies = []
    for row, interventions in ((free, []), (fixed, held.patterns(3, 4, causal=False))):
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
    summary = held.summarize(options, rows)
    cost = summary[-1]
    assert cost["score"] == pytest.approx(fixed["accuracy"] - free["accuracy"])
    assert cost["low"] <= cost["score"] <= cost["high"]
    assert (cost["n"], cost["seeds"], cost["held_heads"]) == (24, 1, 9)
    means = {row["initialisation"]: row["accuracy"] for row in summary if row["kind"] == "mean"}
    assert means == {"free": free["accuracy"], "held": fixed["accuracy"]}
    assert next(row for row in summary if row["kind"] == "baseline")["accuracy"] == 0.5
    assert not any("predicted" in row for row in summary)


def test_chosen_heads_are_checked():
    with pytest.raises(InputError, match="named like L7H6"):
        held.units(held.DEFAULTS | {"heads": "first"})
    chosen = held.DEFAULTS | {"heads": "L1H2", "operator": "zero"}

    class Known:
        layers, heads, causal = 3, 4, False

    assert held.held_heads(chosen, Known()) == [Intervention("zero", frozenset({Head(0, 1)}))]


def test_runs_of_other_heads_have_folders_of_their_own(tmp_path):
    options = held.DEFAULTS | {"data": str(write_rows(tmp_path / "data", rows=8))}
    keys = [
        {unit.key for unit in held.units(options | chosen)}
        for chosen in ({}, {"heads": "L1H2"}, {"heads": "L1H2", "operator": "zero"}, {"heads": "L1H3"})
    ]
    free = set.intersection(*keys)
    assert len(free) == 1
    assert len(set().union(*keys)) == 5


def test_what_holding_costs_is_the_mean_over_seeds():
    gold, rows = [0, 1] * 10, []
    for seed, right in ((0, 20), (1, 16)):
        for kind, fewer in (("free", 0), ("held", 5)):
            found = [label if k < right - fewer else 1 - label for k, label in enumerate(gold)]
            rows.append(
                {"kind": "run", "task": "sst2", "seed": seed, "initialisation": kind, "metric": "accuracy",
                 "gold": gold, "predicted": found, "accuracy": (right - fewer) / 20, "constant": False,
                 "held_heads": 3, "majority": "negative", "baseline": {"accuracy": 0.5}}
            )  # fmt: skip
    cost = held.summarize(held.DEFAULTS, rows)[-1]
    assert cost["score"] == pytest.approx(-0.25)
    assert cost["low"] < -0.25 < cost["high"] < 0
    assert cost["seeds"] == 2
    assert held.summarize(held.DEFAULTS, rows[:1])[-1]["kind"] != "change"
