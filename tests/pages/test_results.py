"""Results as cards: what ships fills every page, one's own come first, and each can be opened, kept, rerun, deleted."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from core.jobs import api
from core.store import jobs, runs
from core.store.runs import Provenance, known_runs, record_run, store_rows
from pages.parts.frame import resources, shell
from pages.parts.reports import headlines, result_card

WORK = {"label", "adjudication"}  # what is done there is the user's own; it begins with what to do
OWN_LISTS = {"projects", "dashboard", "findings", "jobs"}  # a word on one's own, then what ships
PARTS = {"relations", "statistics"}  # further down, of what needs a treebank, or groups of heads
OF_COMPONENTS = {"atlas", "head", "values", "maps", "generation"}  # drawn in the browser
VIEWS = {
    "disable": ["One sentence", "A task's rows"],
    "perturb": ["Two inputs", "A task's rows"],
    "probes": ["One sentence", "Syntax in attention", "Layers", "Representation", "Transfer"],
}
OPENINGS = [(page.name, view) for page in shell.PAGES if page.name not in WORK for view in VIEWS.get(page.name, [""])]
NOTHING = re.compile(r"\b(nothing|no \w+)\b.*\byet\b|\byet\b.*\b(nothing|nobody)\b", re.IGNORECASE)


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    yield resources.database()
    resources.database.clear()


def opened(name, **query):
    app = AppTest.from_file(shell.__file__, default_timeout=120).run()
    for key, value in query.items():
        app.query_params[key] = value
    return app.switch_page(f"../../{name}.py").run()


def said(app):
    return "\n".join(one.value for kind in (app.markdown, app.caption, app.info) for one in kind).replace("\\", "")


def sweep(db, change, title):
    rows = [
        {"kind": "baseline", "name": "untouched", "what": "layers", "operator": "zero", "task": "sst2", "n": 40,
         "accuracy": 0.8},
        {"kind": "variant", "name": "L1", "layer": None, "head": None, "heads": "L1H1", "accuracy": 0.8 + change,
         "accuracy_change": change, "accuracy_low": change - 0.1, "accuracy_high": change + 0.1, "flipped": 4,
         "mcnemar": 0.1, "p": 0.01, "n": 40},
    ]  # fmt: skip
    about = Provenance(checkpoint="atlas-encoder", task="sst2", split="dev", dtype="float32")
    run = record_run(
        db, "disable", {"checkpoint": "atlas-encoder", "task": "sst2", "what": "layers"}, about, title=title
    )
    store_rows(db, run, rows)
    return run


@pytest.mark.shipped
@pytest.mark.parametrize(("name", "view"), OPENINGS)
def test_every_page_opens_with_results(db, name, view):
    app = AppTest.from_file(shell.__file__, default_timeout=120).switch_page(f"../../{name}.py")
    if view:
        app.query_params["view"] = view
    app.run()
    assert not app.exception
    assert not [error.value for error in app.error]
    drawn = app.get("vega_lite_chart") or app.dataframe or app.table
    cards = [button for button in app.button if (button.key or "").startswith(("again_", "ready_"))]
    assert drawn or cards or (name in OF_COMPONENTS and app.get("bidi_component")), "nothing is shown"
    first = next((info.value for info in app.info if NOTHING.search(info.value)), "")
    assert not first or name in OWN_LISTS | PARTS, first


@pytest.mark.shipped
def test_what_ships_says_so_and_ones_own_come_first(db):
    shipped = list(known_runs(db, "disable")["run"])
    assert "ships with Attention Atlas" in said(opened("disable", view="A task's rows"))
    own = sweep(db, -0.25, "My sweep")
    app = opened("disable", view="A task's rows")
    assert "Without L1 accuracy changes most, by -25.0 points" in said(app)
    assert "n = 40 rows · 95 % interval -35.0 to -15.0 · beside: untouched 80.0" in said(app)
    assert "your own" in said(app)
    app.button(key=f"open_run_{shipped[0]}").click().run()
    assert app.query_params["run"] == shipped[0]
    assert not [one for one in app.button if one.key == "delete_run"]  # what ships is not deleted
    assert own in set(known_runs(db, "disable")["run"])


def test_a_result_is_deleted_and_a_new_one_opens_by_itself(db):
    first, second = sweep(db, -0.25, "First"), sweep(db, -0.5, "Second")
    app = opened("disable", view="A task's rows", run=first)
    assert "by -25.0 points" in said(app)
    third = sweep(db, -0.75, "Third")
    assert "**Without L1 accuracy changes most, by -75.0 points" in said(app.run())
    app.button(key="delete_run").click().run()
    assert set(runs.runs(db)["run"]) == {first, second}
    assert third not in said(app)


def test_what_cannot_run_again_is_refused_before_it_starts(db):
    sweep(db, -0.25, "Of a checkpoint without a classifier")
    app = opened("disable", view="A task's rows")
    app.button(key="again_run").click().run()
    assert "needs a checkpoint with a classifier" in app.error[0].value
    assert jobs.jobs(db).empty


def test_a_stopped_job_is_dismissed(db):
    job = jobs.add_job(db, "disable", "A sweep", {"checkpoint": "atlas-encoder"})
    jobs.set_state(db, job, "failed", error="no such rows")
    app = opened("disable", view="A task's rows")
    app.button(key=f"dismiss_{job}").click().run()
    assert jobs.jobs(db).empty
    assert api.running_count(db) == 0


def test_the_picture_of_a_result_is_of_its_first_statistic():
    rows = [
        {"statistic": name, "feature": None, "layer": 0, "head": k, "value": k / 4, "checkpoint": "a", "task": "sst2"}
        for name in ("entropy", "reach")
        for k in range(3)
    ]
    assert {score.statistic for score in headlines.heads_of([{"note": "none"}, *rows])} == {"entropy"}
    assert headlines.heads_of([{"note": "none"}]) == []
    assert result_card.picture(rows).to_dict()["title"] == ["a · sst2"]


@pytest.mark.shipped
def test_from_disabling_to_what_heads_attend_to(db):
    app = opened("disable")
    app.switch_page("../../features.py").run()
    assert not app.error, app.error[0].value  # both pages once kept different things under one name
