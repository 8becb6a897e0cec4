"""Perturb and the operators as a visitor uses them: two inputs, patching, cut edges, and results of studies."""

import pytest
import torch

from core.studies.ablation import setup
from pages.parts.widgets import pickers
from tests.pages.test_disabling import db, fine, opened, said, stored  # noqa: F401 - fixtures
from tests.studies.planted import CARRIER, save_planted, write_rows


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("planted")
    return {"checkpoint": str(save_planted(folder / "checkpoint")), "data": str(write_rows(folder / "data", rows=24))}


@pytest.fixture
def page(db, planted, monkeypatch):  # noqa: F811
    names = pickers.checkpoint_names()
    monkeypatch.setattr(pickers, "checkpoint_names", lambda: [*names, planted["checkpoint"]])  # AppTest cannot type one
    found = fine(opened("interventions/patching"))
    found.selectbox(key="checkpoint").set_value(planted["checkpoint"])
    found.selectbox(key="kind").set_value("typed")
    found.text_input(key="text").set_value("the old engine ; ran all night")
    found.run()  # the second input is asked for now
    found.text_input(key="text2").set_value("the old engine a ran all night")
    return found


@pytest.mark.thorough
def test_two_inputs_side_by_side(page):
    fine(page.run())
    assert "changes" in said(page)
    assert "are aligned" in said(page)
    assert "n = 1 pair, so no test is possible" in said(page)
    table = page.dataframe[0].value
    assert table["first"].sum() == pytest.approx(1)
    assert table["second"].sum() == pytest.approx(1)


def test_the_carrying_head_brings_the_first_answer_back(page):
    page.segmented_control(key="mode").set_value("Patching")
    fine(page.run())
    assert "The inputs are compared by the logit of" in said(page)
    assert "n = 1 pair, so there is no CI" in said(page)
    page.segmented_control(key="patched").set_value("parts")
    fine(page.run())
    assert "only words of the second input with an aligned word" in said(page)


@pytest.mark.thorough
def test_a_pair_that_does_not_differ_is_said_in_a_sentence(page):
    page.text_input(key="text2").set_value("the old engine ; ran all night")
    page.segmented_control(key="mode").set_value("Patching")
    page.run()
    assert not page.exception
    assert "Choose inputs with different predictions" in page.error[0].value.replace("\\", "")


def test_cut_edges(page):
    page.segmented_control(key="mode").set_value("Cut edges")
    fine(page.run())
    assert "edges (" in said(page).replace("\\", "")
    page.selectbox(key="edges").set_value("chosen words")
    page.run()
    assert "Choose at least one word under “From”" in page.error[0].value
    page.multiselect(key="queries").set_value(["1 [CLS]"])
    page.multiselect(key="keys").set_value(["5 ;"])
    fine(page.run())
    assert "The prediction changes" in said(page)  # nobody tells [CLS] of the semicolon any more


@pytest.mark.thorough
def test_results_of_the_studies(db, planted):  # noqa: F811
    shared = {"checkpoint": planted["checkpoint"], "data": planted["data"], "task": "sst2", "limit": None}
    stored(db, "perturb", shared | {"kinds": ["scramble", "drop"]})
    stored(db, "knockout", shared | {"edges": ["separators"]})
    stored(db, "separators", shared)
    stored(db, "sinks", shared | {"margin": 1e-4})
    stored(db, "patch", shared | {"kind": "drop", "floor": 0.0})
    found = fine(opened("interventions/patching", mode="A task's rows"))
    assert "constant prediction of the most frequent label: 0.500" in said(found).replace("\\", "")
    for study, words in (
        ("knockout", "Without"),
        ("separators", ""),
        ("patch", "Beyond luck"),
        ("sinks", "times the median magnitude"),
    ):
        found.selectbox(key="study").set_value(study)
        fine(found.run())
        assert words in said(found) or study not in ("patch", "sinks")
        assert found.dataframe


@pytest.mark.thorough
def test_one_head_under_every_operator(db, planted):  # noqa: F811
    shared = {"checkpoint": planted["checkpoint"], "data": planted["data"], "task": "sst2", "limit": None}
    stored(db, "operators", shared | {"operators": ["disable", "zero", "mean"], "reference": 20})
    found = fine(opened("interventions", mode="Operators"))
    assert found.selectbox(key="operators_head").value == str(CARRIER)
    text = said(found).replace("\\", "")
    assert f"Without {CARRIER} the loss rises significantly" in text
    assert "under disable, zero, mean" in text


@pytest.mark.thorough
def test_heads_and_blocks_are_taken_out_live(db, planted, monkeypatch):  # noqa: F811
    names = pickers.checkpoint_names()
    monkeypatch.setattr(pickers, "checkpoint_names", lambda: [*names, planted["checkpoint"]])
    found = fine(opened("interventions"))
    found.selectbox(key="checkpoint").set_value(planted["checkpoint"])
    found.text_input(key="text").set_value("the old engine ; ran all night")
    found.text_input(key="heads").set_value("L2-attention")
    fine(found.run())
    assert "If L2-attention is ablated, the prediction changes from" in said(found).replace("\\", "")
    found.text_input(key="heads").set_value(str(CARRIER))
    found.selectbox(key="operator").set_value("mean")
    fine(found.run())
    assert "If L2H3 is ablated, the prediction" in said(found)


@pytest.mark.thorough
def test_a_constant_is_fitted_live_on_rows_that_the_page_names(db, planted, monkeypatch):  # noqa: F811
    names = pickers.checkpoint_names()
    monkeypatch.setattr(pickers, "checkpoint_names", lambda: [*names, planted["checkpoint"]])
    monkeypatch.setattr(setup, "FIT_STEPS", 0)  # nothing is found, which the page says
    monkeypatch.setattr(setup, "FITTED_ROWS", 16)
    found = fine(opened("interventions"))
    found.selectbox(key="checkpoint").set_value(planted["checkpoint"])
    found.text_input(key="text").set_value("the old engine ; ran all night")
    found.text_input(key="heads").set_value(f"{CARRIER},L1H1")
    found.selectbox(key="operator").set_value("constant")
    found.run()  # the task is asked for now
    found.selectbox(key="fitted_on").set_value("sst2")
    fine(found.run())
    text = said(found).replace("\\", "")
    assert "fitted on 16 train examples of SST-2 (the bundled samples), for each head alone" in text
    assert f"{CARRIER}: mean " in text
    assert "the optimisation found nothing better" in text
    assert "ablation method: optimal constant" in text
    found.selectbox(key="checkpoint").set_value("atlas-encoder")
    found.run()
    assert "Choose a fine-tuned classifier, or the method" in found.error[0].value.replace("\\", "")


def test_a_race_offers_what_stands_in(db, planted):  # noqa: F811
    found = fine(opened("interventions/sequential"))
    offered = found.selectbox(key="race_operator").options
    assert {"mean output over 200 examples", "output on another example", "optimal constant (Li and Janson)"} <= set(
        offered
    )
