"""Analyse this model: the plan on the page, a selection, the job, and what a visitor may not do."""

import pytest

from core.report.analysis import AnalysisPlan, PlannedStudy
from core.store.people import Person
from pages.parts.atlas import analysing
from pages.parts.shell import people
from pages.parts.widgets import job_progress
from tests.pages.opening import opened

STUDIES = ("statistics", "budget", "norms")
PLAN = AnalysisPlan(
    "atlas-encoder",
    "sst2",
    tuple(
        PlannedStudy(name, {"checkpoint": "atlas-encoder"}, "something", took, 600_000_000)
        for name, took in zip(STUDIES, (60.0, 30.0, 6000.0), strict=True)
    ),
    1,
)


@pytest.fixture
def started(monkeypatch):
    jobs = []
    monkeypatch.setattr("core.report.analysis.plan_analysis", lambda db, checkpoint, task, data: PLAN)
    monkeypatch.setattr(job_progress, "begin", lambda study, options, title: jobs.append((study, options, title)))
    return jobs


def said(app):
    return "\n".join(one.value for one in app.markdown)


def pressed(app, label):
    (found,) = [one for one in app.button if one.label == label]
    return found.click().run()


@pytest.mark.thorough
@pytest.mark.parametrize("view", ["start", "heads/overview"])
def test_one_button_plans_the_studies_and_a_second_runs_the_quick_plan(db, started, view):
    app = pressed(opened(view), analysing.LABEL)
    table = app.dataframe[0].value
    assert table["study"].tolist() == list(STUDIES)
    assert table["run"].tolist() == [True, True, False]
    assert table["time"].tolist() == ["60 s", "30 s", "1 h 40 min"]
    assert "**2 studies: about 2 min**, and up to 0.6 GB of memory" in said(app).replace("90 s", "2 min")
    app = pressed(app, "Run the analysis")
    ((study, options, title),) = started
    assert (study, [asked.study for asked in options.studies]) == ("measure-heads", ["statistics", "budget"])
    assert title == "Analysis of atlas-encoder on SST-2: 2 studies"
    assert not [one for one in app.button if one.label == "Run the analysis"]


def test_a_selection_is_run_as_it_is_chosen(db, started):
    app = pressed(opened("start"), analysing.LABEL)
    app.segmented_control(key="analysis_which").set_value(analysing.SOME).run()
    app.multiselect(key="analysis_studies_sst2").set_value(["norms"]).run()
    pressed(app, "Run the analysis")
    assert [asked.study for asked in started[0][1].studies] == ["norms"]


def test_visitors_who_may_start_nothing_see_no_button(db, monkeypatch):
    monkeypatch.setattr(people, "person", lambda: Person("", "viewer"))
    assert analysing.LABEL not in [one.label for one in opened("start").button]


@pytest.mark.thorough
def test_an_analysis_that_was_stopped_is_shown_where_it_can_be_resumed(db):
    from core.store import jobs as store

    job = store.add_job(db, "measure-heads", "Analysis of atlas-encoder", {"checkpoint": "atlas-encoder"})
    store.set_state(db, job, "cancelled")
    for view in ("start", "heads/overview", "heads/one"):
        assert [one.label for one in opened(view).button].count("Resume") == 1, f"{view} shows it in one place"
    assert "Resume" not in [one.label for one in opened("start", checkpoint="atlas-decoder").button]
