"""The circuit of a classifier whose answer one head carries: its edges, what they keep, and what is refused."""

import json
import random
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from core.errors import AtlasError, InputError, InterventionError
from core.notebook import circuit_edges, circuit_graph
from core.report.headlines import headline
from core.studies.circuits import circuit
from tests.studies.planted import CARRIER, save_planted, write_rows
from tests.studies.through_json import rows_of

SMALL = {"pairs": 40, "judging": 10, "control": 6, "first": 20, "margin": 0.15, "limit": None}


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    torch.set_num_threads(1)
    return {
        "checkpoint": str(save_planted(folder / "checkpoint")),
        "data": str(write_rows(folder / "data", 160)),
    } | SMALL


@pytest.fixture(scope="module")
def rows(options):
    return rows_of("circuit", options, random.Random(3))  # noqa: S311 - an order of units


def of_kind(rows, kind):
    return [row for row in rows if row["kind"] == kind]


@pytest.mark.thorough
def test_what_is_under_way_has_no_rows_yet(options):
    """Pages ask for the rows of the units that are there."""
    study, given = circuit.STUDY, circuit.STUDY.read(options)
    first = study.run(given, study.units(given)[0]).partial
    assert study.summarize(given, [first]) == []
    for unit in study.more(given, [first])[:1]:
        assert study.summarize(given, [first, study.run(given, unit).partial]) == []


@pytest.mark.thorough
def test_the_edges_of_the_head_that_carries_the_answer_matter(rows):
    edges, (whole,) = of_kind(rows, "edge"), of_kind(rows, "circuit")
    assert len(edges) == whole["edges"] == whole["raced"]
    assert whole["matter"] + whole["does_not_matter"] + whole["open"] == len(edges)
    ranked = sorted(edges, key=lambda row: row["rank"])
    through = {row["name"] for row in ranked[:4]}
    assert f"{CARRIER} to output" in through
    assert f"embeddings to {CARRIER} k" in through
    decided = [row for row in edges if row["verdict"] == "matters"]
    assert f"{CARRIER} to output" in {row["name"] for row in decided}
    assert all(abs(row["low"]) > whole["margin"] or abs(row["high"]) > whole["margin"] for row in decided)
    means = {(row["name"], row["pairs"]): row for row in of_kind(rows, "edge mean")}
    for row in decided:  # those that matter were completed, and measured on pairs of the same answer
        assert means[row["name"], "different answers"]["n"] == whole["n"]
        assert (row["estimator"], row["n"] <= whole["n"]) == (
            f"mean; a pair counts up to {whole['clip']:.3g} logits",
            True,
        )
        assert ((row["name"], "same answer") in means) == (whole["control"] > 1)
    assert all(row["selection"] == 0 for row in edges if row["verdict"] == "does not matter")
    assert {row["name"] for row in edges if row["stable"]} >= {row["name"] for row in decided}
    assert {row["input"] for row in edges} == {"q", "k", "v", ""}
    assert headline("circuit", rows).sentence.startswith(f"{whole['matter']} of {len(edges)} edges change")


@pytest.mark.slow
def test_no_verdict_contradicts_all_edges_on_all_pairs(options, rows):
    """Every edge exactly on every pair that decides: the clipped mean lies where the verdict says."""
    every = rows_of("circuit", options | {"first": 40})
    first, (whole,) = {row["name"]: row for row in of_kind(rows, "edge")}, of_kind(rows, "circuit")
    assert whole["evaluations"] < whole["of_evaluations"]
    for row in of_kind(every, "edge"):
        verdict, margin = first[row["name"]]["verdict"], whole["margin"]
        middle = (row["low"] + row["high"]) / 2
        assert row["n"] == whole["n"]
        assert verdict == "open" or (abs(middle) > margin) == (verdict == "matters")


@pytest.mark.thorough
def test_a_notebook_gets_the_circuit_as_a_graph_and_a_frame(rows, tmp_path):
    file = tmp_path / "circuit.json"
    file.write_text(json.dumps({"rows": rows}))
    frame = circuit_edges(str(file))
    assert list(frame["rank"]) == list(range(1, len(frame) + 1))
    frame.to_parquet(tmp_path / "edges.parquet")
    graph = circuit_graph(rows, verdict="matters")
    assert graph.number_of_edges() == of_kind(rows, "circuit")[0]["matter"]
    assert "" in graph[str(CARRIER)]["output"]
    assert circuit_graph(rows, most=5).number_of_edges() == 5
    with pytest.raises(InputError, match="rows without an edge"):
        circuit_edges([])
    with pytest.raises(InputError, match=r"output of `study circuit --json`; .*none\.json could not be read"):
        circuit_graph(tmp_path / "none.json")


def test_a_circuit_keeps_more_than_random_edges_and_all_edges_keep_all(rows):
    curve = of_kind(rows, "faithfulness")
    by = {(row["order"], row["size"]): row["value"] for row in curve}
    sizes = sorted(size for order, size in by if order == "effect")
    assert np.isclose(by["effect", sizes[-1]], 1.0, atol=1e-4)
    half = sizes[-3]
    assert by["effect", half] > 0.8 > by["random", half]
    assert len([row for row in curve if row["order"].startswith("without")]) == 3
    (whole,) = of_kind(rows, "circuit")
    assert whole["cpr"] > whole["random_cpr"]
    assert {row["use"] for row in of_kind(rows, "pair")} == {"decides", "judges", "control"}
    uses = {use: {row["first"] for row in of_kind(rows, "pair") if row["use"] == use} for use in ("decides", "judges")}
    assert not uses["decides"] & uses["judges"]


@pytest.mark.slow
def test_pairs_of_a_perturbation_and_of_a_file(options, tmp_path, monkeypatch):
    monkeypatch.setattr(circuit, "FLOOR", 1e-7)  # few rows lose the word that the answer hangs on
    some = {"pairs": 12, "judging": 4, "control": 0, "first": 8, "margin": 0.5}
    rows = rows_of("circuit", options | some | {"kind": "drop", "answers": "any", "strongest": 20, "sample": 5})
    (whole,) = of_kind(rows, "circuit")
    assert whole["raced"] == 25
    assert whole["missed_low"] <= whole["missed"] <= whole["missed_high"]
    assert sum(row["verdict"] == "not raced" for row in of_kind(rows, "edge")) == whole["edges"] - 25
    file = tmp_path / "pairs.tsv"
    lines = [f"the {word} dog ; is small\tthe {word} dog is small" for word in ("big", "small", "heavy")] * 8
    file.write_text("\n".join(lines))
    rows = rows_of("circuit", options | some | {"pairs_file": str(file), "strongest": 20, "sample": 5})
    assert of_kind(rows, "circuit")[0]["pairs_by"] == "file"
    file.write_text("one sentence alone")
    with pytest.raises(InputError, match="line 1 has not"):
        circuit.STUDY.units(circuit.STUDY.read(options | {"pairs_file": str(file)}))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"margin": 0}, "between 0 and 1"),
        ({"clip": 1}, "above 1"),
        ({"kind": "typed"}, 'got "typed"'),
        ({"answers": "other"}, 'got "other"'),
        ({"pairs": 5}, "at least 12 pairs"),
        ({"judging": 2}, "at least 4"),
        ({"pairs_file": "/nowhere/pairs.tsv"}, "cannot be opened"),
    ],
)
def test_what_cannot_be_is_refused_at_once(options, wrong, said):
    with pytest.raises(InputError, match=said):
        circuit.STUDY.units(circuit.STUDY.read(options | wrong))


@pytest.mark.thorough
def test_too_few_pairs_and_another_pooling_are_refused_in_a_sentence(options):
    with pytest.raises(InputError, match="at least 18 usable pairs of inputs with same answers"):
        rows_of("circuit", options | {"limit": 30, "answers": "same"})
    other = Path(options["checkpoint"]).with_name("mean")
    shutil.copytree(options["checkpoint"], other)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"hidden_act": "silu"}))
    with pytest.raises(InterventionError, match=r"[Cc]hoose a"):
        rows_of("circuit", options | {"checkpoint": str(other)})


@pytest.mark.slow  # the whole study once more
def test_units_that_come_in_another_order_give_the_same_verdicts(options, rows):
    """As when a run is interrupted and goes on elsewhere."""
    assert rows_of("circuit", options, random.Random(11)) == rows  # noqa: S311 - an order of units


def test_more_edges_than_memory_are_refused_before_anything_is_measured(options, monkeypatch):
    full = SimpleNamespace(virtual_memory=lambda: SimpleNamespace(available=1000))
    monkeypatch.setattr(circuit, "psutil", full)  # not for the opening of the checkpoint
    study, given = circuit.STUDY, circuit.STUDY.read(options)
    with pytest.raises(InputError, match=r"edges on .* pairs must fit into memory; .* Use fewer examples"):
        study.run(given, study.units(given)[0])


def test_a_checkpoint_that_predicts_nothing_is_refused(options):
    with pytest.raises(AtlasError, match=r"fine-tune|no classifier"):
        rows_of("circuit", options | {"checkpoint": "atlas-encoder"})
