"""Gates, pairs and Shapley values on classifiers whose answer one head carries, or two that stand in for each other."""

import json
import random

import numpy as np
import pytest
import torch

from core.errors import InputError
from core.report.headlines import headline
from core.studies.ablation import setup
from core.studies.circuits import gates, pairs, shapley
from core.studies.contract import ExampleUnit, Unit
from tests.studies.planted import CARRIER, TWIN, save_planted, write_rows
from tests.studies.through_json import rows_of

GATES = {"fit_rows": 12, "samples": 3, "starts": 1, "steps": 14, "limit": 24}


@pytest.fixture(scope="module", params=[False, True], ids=["carrier", "twin"])
def options(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    torch.set_num_threads(1)
    checkpoint = save_planted(folder / "checkpoint", twin=request.param)
    return {"checkpoint": str(checkpoint), "data": str(write_rows(folder / "data", 24)), "limit": None}, request.param


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(setup, "ROWS_A_UNIT", 13)
    monkeypatch.setattr(gates, "FITS_A_UNIT", 2)
    monkeypatch.setattr(shapley, "ROWS_A_UNIT", 5)


def of_kind(rows, kind):
    return [row for row in rows if row["kind"] == kind]


@pytest.mark.thorough
def test_the_head_that_carries_the_answer_is_facilitating(options):
    given, twin = options
    if twin:
        pytest.skip("two heads that stand in for each other: a fit keeps either")
    rows = rows_of("gates", given | GATES)
    small = given | GATES | {"fit_rows": 8, "steps": 3, "limit": 14}
    drawn = random.Random(1)  # noqa: S311 - an order of units
    assert rows_of("gates", small, drawn) == rows_of("gates", small)  # in whatever order the units come back
    heads = {row["name"]: row for row in of_kind(rows, "head")}
    carrier = heads[str(CARRIER)]
    assert carrier["gate_class"] == "facilitating"
    assert carrier["up"] > 0.5
    assert carrier["down"] > 0.5
    assert carrier["effect"] == max(row["effect"] for row in heads.values())
    assert carrier["low"] > 0
    assert [row["gate_class"] for row in heads.values()].count("facilitating") == 1
    together = {row["name"]: row for row in of_kind(rows, "together")}
    irrelevant = {name for name, row in heads.items() if row["gate_class"] == "irrelevant"}
    assert set(together["irrelevant"]["heads"].split(",")) - {""} == irrelevant
    assert len(irrelevant) > 5
    assert together["irrelevant"]["verdict"] == "within the margin"
    assert abs(together["irrelevant"]["effect"]) < together["irrelevant"]["margin"]
    assert together["irrelevant"]["random_high"] > together["irrelevant"]["effect"]  # a draw with the carrier in it
    assert sum(row["chosen"] for row in of_kind(rows, "price")) == 1
    assert all(-1 <= row["value"] <= 1 for row in of_kind(rows, "agreement"))
    assert headline("gates", rows).sentence.startswith("The task needs 1 of 12 heads (L2H3).")
    with pytest.raises(InputError, match="above 0"):
        gates.STUDY.units(gates.STUDY.read(given | {"margin": 0}))


def test_fits_say_which_they_are_and_at_what_price_gates_were_pushed(options):
    given, study = gates.STUDY.read(options[0] | GATES | {"fit_rows": 8, "steps": 2}), gates.STUDY
    found = [
        study.run(given, Unit("fits-0", ExampleUnit((), "fits", numbers, price=0.05))).partial
        for numbers in ((2, 0), (0, 2))
    ]
    assert [(one.price, one.fits.tolist(), one.up.shape) for one in found] == [
        (0.05, [2, 0], (2, 12)),
        (0.05, [0, 2], (2, 12)),
    ]
    np.testing.assert_allclose(found[0].up, found[1].up[::-1], atol=1e-5)  # each by its own number, whatever is beside
    assert (found[0].up > found[0].down).all()


@pytest.mark.thorough
def test_twins_are_redundant_and_a_lone_carrier_is_not(options):
    given, twin = options
    rows = rows_of("pairs", given)
    found = of_kind(rows, "pair")
    assert len(found) == 12 * 11 // 2
    both = next(row for row in found if {row["first_head"], row["second_head"]} == {str(CARRIER), str(TWIN)})
    assert np.isclose(both["interaction"], both["both"] - both["first"] - both["second"])
    assert all(row["p"] >= 0.001 / 1.001 for row in found)
    if twin:
        assert found[0] == both
        assert both["verdict"] == "redundant"
        assert both["low"] > 0
        assert both["loss_interaction"] > 0
    else:
        assert abs(both["interaction"]) < 0.2
    assert " of 66 pairs of heads is redundant" in headline("pairs", rows).sentence


@pytest.mark.slow
def test_of_many_heads_the_strongest_pairs_and_a_sample_are_taken(options, monkeypatch):
    given, twin = options
    if not twin:
        pytest.skip("once")
    monkeypatch.setattr(pairs, "ALL_PAIRS", 4)
    rows = rows_of("pairs", given | {"strongest": 3, "sample": 5, "operator": "mean", "reference": 12})
    found = of_kind(rows, "pair")
    assert len(found) == 8
    assert sum(row["sampled"] for row in found) == 5
    (missed,) = of_kind(rows, "sampled pairs")
    assert missed["sampled"] == 5
    assert missed["of_pairs"] == 63
    assert missed["low"] <= missed["interacting"] / 5 <= missed["high"]
    with pytest.raises(InputError, match="zero or mean"):
        pairs.STUDY.units(pairs.STUDY.read(given | {"operator": "disable"}))


@pytest.mark.thorough
def test_shapley_values_add_up_and_credit_twins_alike(options):
    given, twin = options
    given = given | {"limit": 12, "orders": 4, "judge_rows": 8}
    rows = rows_of("shapley", given, random.Random(2))  # noqa: S311 - an order of units
    if twin:
        assert json.dumps(rows) == json.dumps(rows_of("shapley", given))
    heads = {row["name"]: row for row in of_kind(rows, "head")}
    (total,) = of_kind(rows, "sum")
    assert np.isclose(total["values"], total["with_all"] - total["with_none"], atol=1e-5)
    assert np.isclose(total["values"], sum(row["value"] for row in heads.values()))
    ranked = sorted(heads.values(), key=lambda row: row["rank"])
    if twin:
        assert {row["name"] for row in ranked[:2]} == {str(CARRIER), str(TWIN)}
        share = heads[str(CARRIER)]["value"] / (heads[str(CARRIER)]["value"] + heads[str(TWIN)]["value"])
        assert 0.2 < share < 0.8
        assert heads[str(CARRIER)]["effect"] < heads[str(CARRIER)]["value"]  # alone neither is missed
    else:
        assert ranked[0]["name"] == str(CARRIER)
    steps = of_kind(rows, "order")
    assert len(steps) == 2 * 13
    assert len(of_kind(rows, "order contrast")) == 1
    assert {row["name"] for row in of_kind(rows, "agreement")} == {
        "gradient and Shapley value",
        "gradient and effect",
        "effect and Shapley value",
    }
    assert headline("shapley", rows).sentence.startswith(
        "Head L2H3 contributes most to the logit difference in favour of the correct label"
    )
    with pytest.raises(InputError, match="even"):
        shapley.STUDY.units(shapley.STUDY.read(given | {"orders": 3}))
