"""Pruning and subnetworks as a job makes them, on a tiny checkpoint."""

import numpy as np
import pytest
import torch

from core.errors import InputError
from core.studies.probing.subnetworks import Order, subnetworks
from tests.capture.conftest import tiny
from tests.studies.planted import write_rows
from tests.studies.through_json import rows_of

SETTINGS = {"epochs": 1, "train_limit": 48, "dev_limit": 30}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("tiny")
    checkpoint = tiny("bert")
    checkpoint.model.save_pretrained(folder / "checkpoint")
    checkpoint.tokenizer.save_pretrained(folder / "checkpoint")
    write_rows(folder / "data", rows=60)
    return folder


@pytest.fixture
def options(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    return {"checkpoint": str(folder / "checkpoint"), "data": str(folder / "data"), "settings": SETTINGS}


def test_curves_before_and_after_meet_at_nothing_and_end_at_a_constant(options):
    rows = rows_of("subnetworks", options | {"shares": [0, 0.5, 1], "structured": False})
    (baseline,) = [row for row in rows if row["kind"] == "baseline"]
    curves = {(row["moment"], row["share"]): row for row in rows if row["kind"] == "curve"}
    assert len(curves) == 6
    assert curves["before", 0.0]["value"] == curves["after", 0.0]["value"]  # the same fine-tuning
    for moment in ("before", "after"):
        assert curves[moment, 0.0]["change"] == 0
        whole = curves[moment, 1.0]["value"]
        assert whole == pytest.approx(baseline["value"]) or whole == pytest.approx(1 - baseline["value"])
    assert all(row["low"] <= row["value"] <= row["high"] for row in curves.values())


@pytest.mark.slow  # 12 CPU seconds
def test_good_bad_and_random_subnetworks_are_retrained_in_a_second_round(options):
    few = SETTINGS | {"train_limit": 16, "dev_limit": 10}  # it fine-tunes ten times, and prunes in steps
    rows = rows_of("subnetworks", options | {"moments": [], "seeds": 2, "settings": few})
    networks = {row["name"]: row for row in rows if row["kind"] == "subnetwork"}
    assert set(networks) == {"full", "good", "bad", "random"}
    assert networks["good"]["share"] == networks["bad"]["share"] == networks["random"]["share"]
    assert all(row["seeds"] == 2 for row in networks.values())
    differences = {row["name"]: row for row in rows if row["kind"] == "difference"}
    more = networks["good"]["value"] - networks["bad"]["value"]
    assert differences["good less bad"]["value"] == pytest.approx(more)
    components = [row for row in rows if row["kind"] == "component"]
    assert len(components) == 15
    assert sorted(row["n"] for row in components) == [2] * 15
    classes = [row for row in rows if row["kind"] == "survivor class"]
    assert {row["name"] for row in classes} >= {"vertical", "diagonal"}
    assert sum(row["value"] for row in classes) == pytest.approx(0, abs=1e-6)


def test_bad_ones_come_from_those_that_went_and_are_topped_up():
    heads = [f"L1H{k}" for k in range(1, 7)]
    blocks = ["L1-feedforward", "L2-feedforward"]
    order = Order(0, (heads[0], blocks[0], *heads[1:], blocks[1]), (*heads[2:], blocks[1]), (), np.zeros((0, 0, 0)))
    found = subnetworks(order)
    assert found["good"] == tuple(sorted((*heads[2:], blocks[1])))
    assert found["bad"] == tuple(sorted((*heads[:4], blocks[0])))  # two went; the two least important survivors join
    assert len(found["random"]) == 5
    assert found == subnetworks(order)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"scopes": ["neuron"]}, "'neuron' is none of them"),
        ({"moments": ["during"]}, "'during' is none of them"),
        ({"shares": [1.5]}, "1.5 does not"),
        ({"moments": [], "structured": False}, "Nothing is left to prune"),
    ],
)
def test_what_cannot_be_pruned_is_said(options, given, said):
    with pytest.raises(InputError, match=said):
        rows_of("subnetworks", options | given)
