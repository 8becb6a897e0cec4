"""Gates and pairs, and Circuit: stored results read, an edge's pair opened with both maps, a form that starts a job."""

import pytest
import torch

from core.jobs import api
from pages.parts.views.circuit import circuit_picture, place_of
from pages.parts.widgets import pickers
from tests.pages.opening import opened
from tests.pages.test_disabling import db, fine, said, stored  # noqa: F401
from tests.studies.planted import CARRIER, save_planted, write_rows
from tests.studies.test_circuit import SMALL
from tests.studies.test_heads_together import GATES

CIRCUIT, TOGETHER = "interventions/circuit", "interventions/together"


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("planted")
    data = write_rows(folder / "data", rows=120)
    return {"checkpoint": str(save_planted(folder / "checkpoint")), "task": "sst2", "data": str(data)}


@pytest.mark.thorough
def test_a_circuit_is_drawn_with_its_curve_and_an_edge_opens_its_pairs(db, options):  # noqa: F811
    stored(db, "circuit", options | SMALL | {"pairs": 20, "judging": 6, "first": 20})
    page = fine(opened(CIRCUIT))
    edges = next(table.value for table in page.dataframe if "attribution" in table.value)
    assert f"{CARRIER} to output" in set(edges["name"].head(4))
    charts = [one.proto.spec for one in page.get("vega_lite_chart")]
    assert any("Faithfulness of the circuit on held-out" in chart for chart in charts)
    assert "pairs for verdicts" in said(page)
    telling = edges[edges["verdict"] != "does not matter"]
    matter = int((telling["verdict"] == "matters").sum())
    assert any(f"The {matter} edge" in chart and f"the {len(telling) - matter} undecided" in chart for chart in charts)
    page.toggle(key="circuit_all").set_value(True).run()
    page.slider(key="circuit_size").set_value(3).run()
    assert any("The 3 strongest edges" in one.proto.spec for one in fine(page).get("vega_lite_chart"))
    page = fine(opened(CIRCUIT, circuit_edge=f"embeddings to {CARRIER} k", circuit_pair="1"))
    maps = [one.proto.spec for one in page.get("vega_lite_chart")]
    assert any(f"{CARRIER} on A" in chart for chart in maps)
    assert any(f"{CARRIER} on B" in chart for chart in maps)


def test_the_form_starts_a_study_of_a_circuit(db, options, monkeypatch):  # noqa: F811
    begun = []
    monkeypatch.setattr(api, "start", lambda db, study, given, title="": begun.append((study, given)) or "job")
    names = pickers.checkpoint_names()
    monkeypatch.setattr(pickers, "checkpoint_names", lambda: [*names, options["checkpoint"]])
    page = fine(opened(CIRCUIT))
    assert "No circuit is stored yet" in said(page)
    page.selectbox(key="checkpoint").set_value(options["checkpoint"])
    page.selectbox(key="circuit_kind").set_value("drop")
    page.number_input(key="circuit_margin").set_value(0.1).run()
    next(one for one in page.button if one.label == "Find the circuit").click().run()
    assert [study for study, _ in begun] == ["circuit"]
    assert (begun[0][1]["kind"], begun[0][1]["margin"]) == ("drop", 0.1)


@pytest.mark.slow
def test_gates_pairs_and_shapley_values_are_read(db, options):  # noqa: F811
    stored(db, "gates", options | GATES)
    stored(db, "pairs", options | {"limit": 24})
    stored(db, "shapley", options | {"limit": 6, "orders": 2, "judge_rows": 6})
    page = fine(opened(TOGETHER))
    assert "heads together changes the loss by" in said(page)
    table = page.dataframe[-1].value
    assert table.set_index("name").loc[str(CARRIER), "gate_class"] == "facilitating"
    page = fine(opened(TOGETHER, mode="Pairs of heads"))
    assert "pairs of heads are redundant and" in said(page)
    page = fine(opened(TOGETHER, mode="Shapley values"))
    assert page.dataframe[-1].value.iloc[0]["name"] == str(CARRIER)
    assert "The Shapley values add up to" in said(page)


def test_components_stand_in_the_order_in_which_they_run():
    rows = [
        place_of(name, 2, 4)[1] for name in ("embeddings", "L1H2", "L1-feedforward", "L2H4", "L2-feedforward", "output")
    ]
    assert rows == sorted(rows)
    assert len(set(rows)) == 6
    assert place_of("L2H4", 2, 4)[0] == 3
    assert circuit_picture([], 2, 4, title="none").to_dict()
