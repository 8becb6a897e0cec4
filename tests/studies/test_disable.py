"""A planted head is the one that sweep, importance and pruning put first; units may come in any order."""

import json
import random

import numpy as np
import pytest
import torch

from core.attention import Head
from core.capture import sweeping
from core.capture.interventions import Intervention
from core.capture.pruning import pruned_heads, save_pruned
from core.capture.running import predict
from core.errors import CheckpointError, InputError, InterventionError
from core.models.opening import open_checkpoint
from core.studies.ablation import setup
from core.studies.ablation.disable import STUDY, Ablations, DisableOptions
from core.studies.ablation.importance import STUDY as IMPORTANCE
from core.studies.ablation.prune import STUDY as PRUNE
from core.studies.ablation.records import shared_effects
from tests.studies.planted import CARRIER, TWIN, save_planted, write_rows
from tests.studies.through_json import rows_of


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    torch.set_num_threads(1)
    checkpoint = save_planted(folder / "checkpoint")
    return {"checkpoint": str(checkpoint), "task": "sst2", "data": str(write_rows(folder / "data")), "limit": None}


@pytest.fixture(autouse=True)
def small_units(monkeypatch):
    monkeypatch.setattr(setup, "ROWS_A_UNIT", 25)


def test_the_planted_head_is_the_one_the_sweep_claims(options):
    rows = rows_of("disable", options)
    baseline, variants, mean, half = rows[0], rows[1:-2], rows[-2], rows[-1]
    assert baseline["accuracy"] == 1.0
    assert len(variants) == 12
    worst = min(variants, key=lambda row: row["accuracy_change"])
    assert worst["name"] == str(CARRIER)
    assert worst["accuracy"] == pytest.approx(0.5, abs=0.1)
    assert [row["name"] for row in variants if row["p"] < 0.05] == [str(CARRIER)]
    assert worst["flipped"] == round(60 * (1 - worst["accuracy"]))
    assert worst["mcnemar"] < 0.001
    assert worst["accuracy_low"] <= worst["accuracy_change"] <= worst["accuracy_high"] < 0
    assert worst["value"] == worst["accuracy_change"]
    assert (mean["kind"], mean["heads"], mean["n"]) == ("mean over heads", 12, baseline["n"])
    assert mean["value"] == pytest.approx(sum(row["accuracy_change"] for row in variants) / 12)
    ends = [sum(row[f"accuracy_{end}"] for row in variants) / 12 for end in ("low", "high")]
    assert ends[0] < mean["low"] < mean["value"] < mean["high"] < ends[1]  # narrower than the ends, averaged
    assert half["kind"] == "split half"
    assert half["held_out"] <= 0.05


@pytest.mark.thorough
def test_units_in_any_order_give_the_same_table(options):
    shuffled = random.Random(1)  # noqa: S311 - the order of units
    assert rows_of("disable", options) == rows_of("disable", options, order=shuffled)
    assert rows_of("importance", options) == rows_of("importance", options, order=shuffled)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("what", "heads", "expected"),
    [("layers", "", 3), ("all-but-one", "", 12), ("groups", "L1H1,L2H3; L3H4", 2)],
)
def test_other_kinds_of_variants(options, what, heads, expected):
    rows = rows_of("disable", options | {"what": what, "heads": heads})
    variants = [row for row in rows if row["kind"] == "variant"]
    assert len(variants) == expected
    broken = [row["name"] for row in variants if row["accuracy"] < 0.8]
    touching = [row["name"] for row in variants if str(CARRIER) in row["heads"].split(",")]
    assert broken == touching


@pytest.mark.thorough
def test_near_duplicates_stand_in_for_each_other_until_they_go_together(options, tmp_path):
    checkpoint = save_planted(tmp_path / "twins", twin=True)
    rows = rows_of("disable", options | {"checkpoint": str(checkpoint), "what": "duplicates"})
    groups = {row["heads"]: row for row in rows if row["kind"] == "variant"}
    twins = groups[f"{CARRIER},{TWIN}"]
    assert twins["name"] == f"2 like {CARRIER}"
    assert twins["distance"] == pytest.approx(0, abs=1e-6)
    assert twins["accuracy"] == pytest.approx(0.5, abs=0.1)
    assert twins["accuracy_apart"] == 0  # either alone is enough
    assert twins["accuracy_beyond_apart_high"] < -0.3
    assert twins["accuracy_beyond_control_high"] < 0
    assert [row["heads"] for row in groups.values() if row["p"] < 0.05] == [f"{CARRIER},{TWIN}"]
    (others,) = [row for row in groups.values() if row is not twins]  # all but uniform, and too many for a control
    assert others["accuracy_apart"] == pytest.approx(0, abs=0.05)
    assert others["accuracy_control"] is None
    assert others["accuracy_beyond_control_low"] is None
    with pytest.raises(InputError, match="must be above 0 and below 1"):
        planned(STUDY, options | {"what": "duplicates", "within": 2.0})


@pytest.mark.thorough
def test_two_sweeps_of_one_checkpoint_share_their_heads(options):
    one, other = rows_of("disable", options), rows_of("disable", options | {"operator": "zero"})
    pairs, agreement = shared_effects(one, other)
    assert [pair.name for pair in pairs] == [row["name"] for row in one if row["kind"] == "variant"]
    assert min(pairs, key=lambda pair: pair.this).name == str(CARRIER)
    assert agreement.n == 12
    assert shared_effects(one, one)[1].spearman == pytest.approx(1)
    assert shared_effects(one, rows_of("disable", options | {"what": "layers"}))[1].n == 0


@pytest.mark.thorough
def test_importance_puts_the_planted_head_first_and_agrees_with_the_sweep(options):
    for reading in ("example", "token"):
        rows = rows_of("importance", options | {"reading": reading, "normalize": False})
        heads = [row for row in rows if row["kind"] == "head"]
        assert heads[0]["name"] == str(CARRIER)
        assert heads[0]["rank"] == 1
        assert [row["value"] for row in heads] == sorted((row["value"] for row in heads), reverse=True)
    moved = next(row for row in rows if row["kind"] == "correlation" and "logits" in row["name"])
    assert moved["n"] == 12
    assert moved["spearman"] > 0


def test_importance_says_what_its_sweep_was_computed_in(options, monkeypatch):
    monkeypatch.setattr(sweeping, "arithmetic", lambda device, dtype: dtype)
    given = IMPORTANCE.read(options | {"dtype": "bfloat16", "limit": 2, "sweep": "disable"})
    done = IMPORTANCE.run(given, IMPORTANCE.units(given)[0])
    assert done.provenance.dtype == "float32, sweep in bfloat16"


@pytest.mark.thorough
def test_pruning_keeps_the_planted_head_to_the_last(options):
    rows = rows_of("prune", options | {"orders": ["importance", "recomputed", "sweep", "random"], "random_orders": 2})
    for order in ("sweep", "importance", "recomputed"):
        mine = [row for row in rows if row["order"] == order]
        assert [row["removed"] for row in mine] == [0, 1, 2, 4, 5, 6, 7, 8, 10, 11, 12]
        assert mine[0]["score"] == 1.0
        assert mine[-1]["score"] == pytest.approx(0.5, abs=0.05)
    swept = [row for row in rows if row["order"] == "sweep"]
    assert swept[-1]["heads"].split(",")[-1] == str(CARRIER)
    assert swept[-2]["score"] > 0.9  # eleven of twelve heads gone, and the answer still there
    early = [row for row in rows if row["order"].startswith("random") and row["removed"] == 10]
    assert min(row["score"] for row in early) < 0.7


def test_a_pruned_checkpoint_reopens_without_its_heads(options, tmp_path):
    whole = open_checkpoint(options["checkpoint"], head="classifier")
    gone = [Head(0, 1), CARRIER]
    folder = save_pruned(whole, gone, tmp_path / "pruned")
    found = open_checkpoint(str(folder), head="classifier")
    some = [found.encode("the old engine ; ran"), found.encode("a dog can stop")]
    wanted = predict(whole, some, interventions=[Intervention("zero", frozenset(gone))])
    assert torch.allclose(predict(found, some), wanted, atol=1e-6)
    assert not torch.allclose(predict(whole, some), wanted, atol=1e-3)
    assert pruned_heads(found) == gone
    assert pruned_heads(whole) == []
    assert json.loads((folder / "pruned.json").read_text())["heads"] == ["L1H2", "L2H3"]
    further = save_pruned(found, [Head(2, 0)], tmp_path / "further")
    assert pruned_heads(open_checkpoint(str(further), head="classifier")) == [*gone, Head(2, 0)]
    assert pruned_heads(found) == gone
    with pytest.raises(InputError, match="new or empty"):
        save_pruned(whole, gone, folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is a file"):
        save_pruned(whole, gone, tmp_path / "file")
    with pytest.raises(InputError, match="at least one head"):
        save_pruned(whole, [], tmp_path / "nothing")


@pytest.mark.parametrize("family", ["gpt2", "llama", "distilbert", "gpt_neox", "albert"])
def test_pruning_in_other_families(family, tmp_path):
    from tests.capture.test_interventions import classifier

    checkpoint, gone = classifier(family), [Head(0, 3), Head(2, 1)]
    if family == "albert":
        with pytest.raises(InterventionError, match="separate output projection"):
            save_pruned(checkpoint, gone, tmp_path / family)
        return
    some = [checkpoint.encode("the old engine")]
    wanted = predict(checkpoint, some, interventions=[Intervention("zero", frozenset(gone))])
    found = open_checkpoint(str(save_pruned(checkpoint, gone, tmp_path / family)), head="classifier")
    assert torch.allclose(predict(found, some), wanted, atol=1e-5)


def planned(study, options):
    return study.units(study.read(options))


def test_wrong_options_are_said_before_anything_runs(options):
    with pytest.raises(InputError, match="heads, layers, all-but-one, groups"):
        planned(STUDY, options | {"what": "neurons"})
    with pytest.raises(InputError, match="must be written like"):
        planned(STUDY, options | {"what": "groups", "heads": ""})
    with pytest.raises(InputError, match="Remove the named heads, or set the option “what” to groups"):
        planned(STUDY, options | {"what": "layers", "heads": "L1H1"})
    with pytest.raises(InterventionError, match="An ablation method must be one of"):
        planned(STUDY, options | {"operator": "median"})
    with pytest.raises(InputError, match="at least 2"):
        planned(STUDY, options | {"limit": 1})
    with pytest.raises(InputError, match="The option limit of the study disable cannot be 'many'"):
        planned(STUDY, options | {"limit": "many"})
    with pytest.raises(InputError, match="must be one of example, token"):
        planned(IMPORTANCE, options | {"reading": "head"})
    with pytest.raises(InputError, match="pruning order must be one of"):
        planned(PRUNE, options | {"orders": ["luck"]})
    full = STUDY.read(options | {"task": "mnli", "data": None, "limit": 4})
    with pytest.raises(CheckpointError, match="for MNLI must have 3 labels; this head has 2"):
        STUDY.run(full, STUDY.units(full)[0])


def test_scores_are_judged_by_squared_error_and_correlation():
    from core.tasks.glue import TASKS

    gold, plain = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), np.array([0.1, 1.2, 1.9, 3.1, 3.9, 4.8])
    full = DisableOptions("any", task="stsb", what="groups", heads="L1H1; L1H2")
    mixed = [3, 1, 2, 0, 5, 4]
    swept = Ablations(
        np.array(mixed), 1, 2, gold[mixed], plain[mixed], np.stack([plain[mixed], np.full(6, 2.5)]), (), ()
    )
    baseline, same, constant, half = STUDY.summarize(full, [swept])
    assert baseline["pearson"] == pytest.approx(np.corrcoef(gold, plain)[0, 1])
    assert same["pearson_change"] == 0
    assert same["p"] == 1.0
    assert constant["pearson"] is None
    assert constant["flipped"] is None
    assert TASKS["stsb"].is_score
    assert half["held_out"] <= 0
