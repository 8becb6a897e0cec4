"""The Disable page's race: started from its widgets, its verdicts and pictures read; bad margins are a sentence."""

import pytest
import torch

from core.jobs import api
from core.store import jobs
from pages.parts.widgets import pickers
from tests.pages.test_disabling import db, fine, opened, said, stored  # noqa: F401
from tests.studies.planted import CARRIER, save_planted, write_rows


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("planted")
    data = write_rows(folder / "data", rows=150)
    return {"checkpoint": str(save_planted(folder / "checkpoint")), "task": "sst2", "data": str(data)}


def test_without_a_race_the_page_says_what_to_do(db):  # noqa: F811
    page = fine(opened("interventions/sequential"))
    assert "No sequential test is stored yet" in said(page)


@pytest.mark.thorough
def test_verdicts_rows_and_the_gradient_are_shown(db, options):  # noqa: F811
    stored(db, "race", options)
    page = fine(opened("interventions/sequential"))
    assert f"Ablation changes the loss by more than the margin for 1 of 12 heads ({CARRIER}). For 11 heads" in said(
        page
    ).replace("\\", "")
    assert "have the wrong sign for" in said(page)
    table = page.dataframe[-1].value
    assert table.iloc[0]["name"] == str(CARRIER)
    assert table.iloc[0]["verdict"] == "matters"
    assert table.iloc[0]["accuracy_change"] < -0.3
    specs = " ".join(one.proto.spec for one in page.get("vega_lite_chart"))
    titles = specs.replace('", "', " ")  # lines of a wrapped title
    for words in (
        "dashed: margin",
        "Number of examples on which each head was tested",
        "Change in loss at the first interim analysis: estimated by the gradient, and measured",
    ):
        assert words in titles


def test_the_button_starts_a_job_with_what_was_chosen(db, options, monkeypatch):  # noqa: F811
    begun = []
    monkeypatch.setattr(api, "start", lambda db, study, given, title="": begun.append((study, given)) or "job")
    names = pickers.checkpoint_names()
    monkeypatch.setattr(pickers, "checkpoint_names", lambda: [*names, options["checkpoint"]])  # AppTest cannot type one
    page = fine(opened("interventions/sequential"))
    page.selectbox(key="checkpoint").set_value(options["checkpoint"])
    page.number_input(key="race_margin").set_value(0.05).run()
    next(one for one in page.button if one.label == "Test").click().run()
    assert [study for study, _ in begun] == ["sequential-test"]
    assert begun[0][1]["margin"] == 0.05
    assert begun[0][1]["what"] == "heads"
    assert jobs.jobs(db).empty


def test_intervals_are_drawn_between_lines_at_the_margin():
    from core.studies.ablation.records import SequentialTestVerdict
    from core.studies.outcomes import Metrics
    from pages.parts.views.sequential_test import intervals

    verdict = SequentialTestVerdict(
        name="L1H1",
        verdict="open",
        rows=64,
        margin=0.1,
        effect=0.5,
        effect_low=0.0,
        effect_high=1.0,
        exact_first=None,
        gradient_first=None,
        task="rte",
        what="heads",
        operator="zero",
        n=64,
        metrics=Metrics(()),
    )
    drawn = intervals([verdict], 0.1).to_dict()
    values = next(one for one in drawn["datasets"].values() if "low" in one[0])
    assert (values[0]["low"], values[0]["high"]) == (0.0, 1.0)
    (margin,) = [layer for layer in drawn["layer"] if "strokeDash" in layer["mark"]]
    assert margin["mark"]["color"] == "gray"  # seen on both grounds
