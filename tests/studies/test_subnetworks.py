"""Pruning and subnetworks as a job makes them, on a tiny checkpoint."""

import numpy as np
import pytest
import torch

from core.errors import InputError
from core.studies.probing.records import Subnetwork
from core.studies.probing.subnetworks import Order, Pruned, Subnetworks, SubnetworksStudy, first_loss, subnetworks
from tests.capture.conftest import built, tiny
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


@pytest.mark.thorough
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
        ({"scopes": ["neuron"]}, 'got "neuron"'),
        ({"moments": ["during"]}, 'got "during"'),
        ({"shares": [1.5]}, "between 0 and 1; got 1.5"),
        ({"moments": [], "structured": False}, "must prune weights or compare subnetworks"),
    ],
)
def test_what_cannot_be_pruned_is_said(options, given, said):
    with pytest.raises(InputError, match=said):
        rows_of("subnetworks", options | given)


def test_what_structured_pruning_found_is_counted_over_seeds_and_inputs():
    """Two seeds and twenty rows by hand; the head that survives has the class diagonal in six inputs of eight."""
    gold = np.array([0, 1] * 10)

    def wrong(count):
        return np.where(np.arange(20) < count, 1 - gold, gold)

    tasks = (("full", (0, 2)), ("good", (2, 2)), ("bad", (8, 10)), ("random", (6, 6)))
    pruned = [
        Pruned(what, seed, "", "before", 0.5 * (what != "full"), wrong(count))
        for what, counts in tasks
        for seed, count in enumerate(counts)
    ]
    pruned += [Pruned("curve", 0, "global", "after", share, wrong(count)) for share, count in ((0.0, 1), (0.3, 5))]
    classes = np.zeros((8, 1, 2), dtype=int)
    classes[:6, 0, 1] = 1
    order = ("L1H1", "L1-feedforward", "L1H2")
    orders = [
        Order(0, order, ("L1H2",), ("vertical", "diagonal"), classes),
        Order(1, order[::-1], ("L1H2", "L1-feedforward"), ("vertical", "diagonal"), classes),
    ]
    study = SubnetworksStudy()
    merged = Subnetworks(gold, "negative", 0.5, 40, tuple(pruned), tuple(orders))
    rows = [row.as_row() for row in study.results(study.read({"checkpoint": "x", "task": "sst2"}), merged)]
    by_name = {row["name"]: row for row in rows}
    assert {name: by_name[name]["value"] for name in ("full", "good", "bad", "random")} == pytest.approx(
        {"full": 0.95, "good": 0.9, "bad": 0.55, "random": 0.7}
    )
    assert {by_name[name]["share"] for name in ("good", "bad", "random")} == {0.5}
    for better, other, value in (("good", "bad", 0.35), ("good", "random", 0.2), ("full", "good", 0.05)):
        row = by_name[f"{better} less {other}"]
        assert row["value"] == pytest.approx(value)
        assert row["low"] < value < row["high"]
        assert (row["n"], row["seeds"], row["metric"], row["constant"]) == (20, 2, "accuracy", 0.5)
    curve = by_name["30% by magnitude, global, after fine-tuning"]
    assert (curve["value"], curve["change"]) == pytest.approx((0.75, -0.2))
    assert by_name["always negative"]["value"] == 0.5
    assert [(by_name[name]["value"], by_name[name]["place"], by_name[name]["n"]) for name in order] == [
        (0, 2, 2),
        (0.5, 2, 2),
        (1, 2, 2),
    ]
    diagonal, vertical = by_name["diagonal"], by_name["vertical"]
    assert (diagonal["value"], diagonal["share"], diagonal["n"]) == (0.75, 0.75, 8)
    assert (vertical["value"], vertical["share"]) == (-0.75, 0.25)
    assert diagonal["low"] < 0.75 < diagonal["high"]
    said = study.headline(rows)
    assert said.sentence.startswith(
        "Pruning up to 30% of the weights after fine-tuning does not lower accuracy significantly. After"
    )
    assert "scores 35.0 points more" in said.sentence
    assert said.baseline == "The unpruned model scores 95.0. A constant prediction (always negative) scores 50.0."
    curve_alone = [row for row in rows if row["kind"] in ("baseline", "curve")]
    alone = study.headline(curve_alone)
    assert alone.sentence in said.sentence
    assert not alone.interval  # because no step is significant
    steps = [
        Subnetwork(kind="curve", name="", value=0.5, moment="after", share=k / 10, metric="accuracy", n=9,
                   change=-k / 100, change_low=-1.0, change_high=0.02 - k / 100)
        for k in range(5)
    ]  # fmt: skip
    assert first_loss(steps)[0] == (
        "Pruning up to 20% of the weights after fine-tuning does not lower accuracy significantly. "
        "Pruning 30% lowers accuracy by 3.0 points."
    )


@pytest.fixture(scope="module")
def small(folder):
    """One layer of two heads: pruned in two steps."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    checkpoint = built("bert", sizes | {"max_position_embeddings": 64}, encodes=True)
    checkpoint.model.save_pretrained(folder / "small")
    checkpoint.tokenizer.save_pretrained(folder / "small")
    return str(folder / "small")


@pytest.mark.thorough
def test_pruning_goes_on_to_the_end_and_retrains_as_much_of_what_stayed_and_went(options, small):
    few = SETTINGS | {"train_limit": 16, "dev_limit": 10}
    rows = rows_of("subnetworks", options | {"checkpoint": small, "moments": [], "seeds": 1, "settings": few})
    networks = {row["name"]: row for row in rows if row["kind"] == "subnetwork"}
    assert set(networks) == {"full", "good", "bad", "random"}
    assert networks["full"]["share"] == 0
    assert networks["good"]["share"] == networks["bad"]["share"] == networks["random"]["share"]
    components = {row["name"]: row for row in rows if row["kind"] == "component"}
    assert {name: row["of"] for name, row in components.items()} == dict.fromkeys(components, 3)
    assert sorted(row["place"] for row in components.values()) == [1, 2, 3]
    stays = sum(row["value"] for row in components.values())
    assert networks["good"]["share"] == pytest.approx(1 - stays / 3)
