"""Operators, knockout, perturbed inputs, patching and separators on a classifier with a planted head."""

import pytest
import torch

from core.errors import InputError, InterventionError
from core.studies.ablation import patch as patches
from core.studies.ablation import setup
from core.studies.ablation.disable import STUDY as DISABLE
from core.studies.ablation.knockout import STUDY as KNOCKOUT
from core.studies.ablation.operators import STUDY as OPERATORS
from core.studies.ablation.patch import STUDY as PATCH
from core.studies.ablation.perturb import STUDY as PERTURB
from tests.studies.planted import CARRIER, save_planted, write_rows
from tests.studies.through_json import rows_of


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    torch.set_num_threads(1)
    checkpoint = save_planted(folder / "checkpoint")
    return {"checkpoint": str(checkpoint), "task": "sst2", "data": str(write_rows(folder / "data", 40)), "limit": None}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(setup, "ROWS_A_UNIT", 25)
    monkeypatch.setattr(setup, "FIT_STEPS", 4)
    monkeypatch.setattr(setup, "FITTED_ROWS", 16)


@pytest.mark.thorough
def test_the_planted_head_leads_under_every_operator(options):
    rows = rows_of("operators", options | {"draws": 2})
    effects = [row for row in rows if row["kind"] == "effect"]
    for operator in ("disable", "zero", "mean", "resample", "constant"):
        own = [row for row in effects if row["operator"] == operator]
        assert len(own) == 12
        worst = max(own, key=lambda row: row["value"])
        assert worst["name"] == str(CARRIER), operator
        assert worst["low"] > 0
        assert worst["p"] < 0.05
        assert worst["low"] <= worst["value"] <= worst["high"]
    for row in effects:
        if row["operator"] == "constant":
            assert row["fit_constant"] <= min(row["fit_mean"], row["fit_zero"]) + 1e-9
    pairs = [row for row in rows if row["kind"] == "agreement"]
    assert len(pairs) == 10
    assert all(-1 <= row["kendall"] <= 1 and row["low"] <= row["high"] for row in pairs)
    assert {"itself", "same_rows"} <= set(pairs[0])


@pytest.mark.thorough
@pytest.mark.parametrize("operator", ["mean", "resample", "constant"])
def test_sweeps_take_operators_from_train_rows(options, operator):
    rows = rows_of("disable", options | {"operator": operator})
    variants = [row for row in rows if row["kind"] == "variant"]
    worst = min(variants, key=lambda row: row["accuracy_change"])
    assert worst["name"] == str(CARRIER)
    assert worst["accuracy_change"] < -0.2
    assert worst["operator"] == operator
    assert worst["statistic"] == f"{operator} heads"


@pytest.mark.thorough
def test_a_mean_may_be_over_other_positions(options):
    wanted, changes = options | {"operators": ["zero", "mean"], "limit": 20}, []
    for by in ("class", "all"):
        rows = rows_of("operators", wanted | {"mean_by": by})
        changes.append({row["operator"]: row["value"] for row in rows if row.get("name") == str(CARRIER)})
    assert changes[0]["zero"] == changes[1]["zero"]
    assert changes[0]["mean"] != changes[1]["mean"]
    with pytest.raises(InputError, match='got "word"'):
        DISABLE.units(DISABLE.read(options | {"operator": "mean", "mean_by": "word"}))


@pytest.mark.thorough
def test_blocks_and_layers_are_taken_out_whole(options):
    for what, name in (("blocks", "L2-attention"), ("layers-whole", "L2-layer")):
        rows = rows_of("disable", options | {"what": what})
        variants = [row for row in rows if row["kind"] == "variant"]
        assert [row["layer"] for row in variants] == [0, 1, 2]
        assert min(variants, key=lambda row: row["accuracy_change"])["name"] == name
        assert {row["operator"] for row in variants} == {"zero"}
    rows = rows_of("disable", options | {"heads": "L1H1,L2-attention; L3H1"})
    assert [row["name"] for row in rows if row["kind"] == "variant"] == ["L1H1,L2-attention", "L3H1"]


def test_what_operators_and_parts_cannot_be_is_refused(options):
    with pytest.raises(InterventionError, match='got "median"'):
        DISABLE.units(DISABLE.read(options | {"operator": "median"}))
    with pytest.raises(InputError, match='must be "zero"; got "mean"'):
        DISABLE.units(DISABLE.read(options | {"what": "blocks", "operator": "mean"}))
    with pytest.raises(InputError, match="two reference examples; got 0"):
        DISABLE.units(DISABLE.read(options | {"operator": "mean", "reference": 0}))
    with pytest.raises(InputError, match="at least one example for each input; got 0"):
        DISABLE.units(DISABLE.read(options | {"operator": "resample", "draws": 0}))
    with pytest.raises(InputError, match="two different ablation methods"):
        OPERATORS.units(OPERATORS.read(options | {"operators": ["mean"]}))


@pytest.mark.thorough
def test_knockout_layer_by_layer(options):
    rows = rows_of("knockout", options | {"edges": ["separators", "across"]})
    cuts = [row for row in rows if row["kind"] == "cut"]
    assert [row["name"] for row in cuts[:4]] == [f"separators in {one}" for one in ("L1", "L2", "L3", "all layers")]
    assert all(row["with_edges"] == 40 for row in cuts[:4])
    assert all(row["with_edges"] == 0 and row["flipped"] == 0 for row in cuts[4:])  # one sentence: nothing across
    assert all(row["p"] == 1.0 for row in cuts[4:])
    kept = rows_of("knockout", options | {"edges": ["separators"], "renormalise": False})
    assert "weights set to 0" in kept[1]["operator"]
    with pytest.raises(InputError, match='got "middle"'):
        KNOCKOUT.units(KNOCKOUT.read(options | {"edges": ["middle"]}))


@pytest.mark.thorough
def test_perturbed_inputs(options):
    rows = rows_of("perturb", options | {"kinds": ["same", "scramble", "drop", "second-only"]})
    found = {row["name"]: row for row in rows}
    assert found["same"]["changed_rate"] == 0.0
    assert found["same"]["probability_change"] == 0.0
    assert found["same"]["accuracy_change"] == 0.0
    assert found["scramble"]["changed_low"] <= found["scramble"]["changed_rate"] <= found["scramble"]["changed_high"]
    assert found["scramble"]["changed_rate"] < 0.2  # the planted head looks for a semicolon wherever it is
    assert found["second-only"]["n"] == 0
    assert found["untouched"]["constant"] == 0.5
    with pytest.raises(InputError, match='got "upper"'):
        PERTURB.units(PERTURB.read(options | {"kinds": ["upper"]}))


@pytest.mark.thorough
def test_the_planted_head_alone_brings_the_prediction_back(options, monkeypatch):
    def without_semicolon(kind, row, seed, mask):
        return (row.text.replace(";", "a"), None) if ";" in row.text else None

    monkeypatch.setattr(patches, "made_of", without_semicolon)
    rows = rows_of("patch", options)
    best = max(rows, key=lambda row: row["recovered"])
    assert best["name"] == str(CARRIER)
    assert best["recovered"] == pytest.approx(1, abs=0.15)
    assert best["low"] > 0.8
    assert best["p"] < 0.05
    assert all(abs(row["recovered"]) < 0.1 for row in rows if row is not best)
    assert (best["n"], best["not_made"]) == (20, 20)
    blocks = rows_of("patch", options | {"what": "blocks"})
    assert max(blocks, key=lambda row: row["recovered"])["name"] == "L2-attention"


@pytest.mark.thorough
def test_pairs_that_cannot_be_made_or_do_not_differ_are_said(options):
    with pytest.raises(InputError, match="it changes none of the 40"):
        rows_of("patch", options | {"kind": "second-only"})
    with pytest.raises(InputError, match="at least 50; they differ by less in all"):
        rows_of("patch", options | {"floor": 50})
    with pytest.raises(InputError, match="What is patched must be one of"):
        PATCH.units(PATCH.read(options | {"what": "weights"}))


@pytest.mark.thorough
def test_separators_by_layer(options):
    rows = rows_of("separators", options)
    layers = [row for row in rows if row["kind"] == "layer"]
    assert [row["name"] for row in layers] == ["L1", "L2", "L3", "all layers"]
    for row in layers[:3]:
        assert row["ratio"] == pytest.approx(row["gradient_separator"] / row["gradient_other"])
        assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"]
        assert 0 < row["weight_on_separators"] < 1
        assert row["with_separators"] == 40
        for name in ("weight_on_separators", "norm_on_separators"):
            assert 0 < row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] < 1
        assert 0 < row["separators_of_pieces"] < 0.2


def test_edges_of_pairs_that_change_no_answer_are_refused(options):
    with pytest.raises(InputError, match="must have different logit differences; in all 40 pairs"):
        rows_of("edge-effects", options | {"edges": ["L1H1>L2H3.v"], "kind": "scramble"})
