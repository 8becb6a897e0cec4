"""The pages of a team, run as Streamlit runs them: a project is made, worked in, weighed, decided on and watched."""

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

import pages.parts.shell.shell as shell
from core.labelling import assignment_service
from core.labelling.assignment import Rules
from core.labelling.projects import ProjectRecipe, make_project
from core.store import labels, projects
from core.store.projects import Heading
from pages.parts.shell import resources
from pages.parts.team import project_sheet
from tests.labelling.test_projects import Hand, fill
from tests.pages.opening import switched
from tests.store.labelling import event


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    database = resources.database()
    fill(database, 12)
    yield database
    resources.database.clear()


@pytest.fixture
def project(db):
    """Four maps that three people labelled, alike but for one map."""
    found = make_project(db, Heading("Who sees what", "bert", annotator="ada"), ProjectRecipe(count=4), Rules(k=3))
    odd = projects.project_maps(db, found)[0].map_id
    for who in ("ada", "bob", "cyd"):
        hand = Hand(db, found, who)
        for choice in hand.holds():
            hand.say(choice, "vertical" if who == "cyd" and choice.map_id == odd else "block")
    return found


def opened(name, **query):
    page = AppTest.from_file(shell.__file__, default_timeout=90)
    page.query_params.update({key: [value] for key, value in query.items()})
    page.run()
    switched(page, name).run()
    assert not page.exception
    assert not page.error, page.error[0].value
    return page


def text_of(page):
    return " ".join(one.value for one in [*page.caption, *page.info, *page.success, *page.error]).replace("\\", "")


@pytest.mark.thorough
def test_an_admin_makes_a_project_and_closes_it(db):
    page = opened("projects")
    page.text_input(key="annotator").input("ada")
    page.text_input(key="project_title").input("First")
    page.button(key="make_project").click().run()
    assert not page.exception
    assert not page.error, page.error[0].value
    (made,) = projects.projects(db)
    assert (made.title, made.made_by, made.rules["k"]) == ("First", "ada", 3)
    page.button(key=f"close_{made.project}").click().run()
    assert projects.one_project(db, made.project).state == "closed"
    assert "closed since" in text_of(page)
    assert "by ada" in text_of(page)
    assert page.text_input(key="project_title").value == "", "the next form begins empty"
    known = next(one for one in page.selectbox if one.label == "Gold labels from")
    assert known.options[0] == "adjudications", "names are chosen, not typed"


def test_what_cannot_be_made_is_a_sentence_on_the_page(db):
    page = opened("projects")
    page.button(key="make_project").click().run()
    assert not page.exception
    assert "The title of a project must have" in page.error[0].value


def test_the_label_page_works_inside_a_project_and_says_names_are_taken_on_trust(db, project):
    page = opened("annotate")
    page.selectbox(key="project").set_value(project).run()
    assert "Enter your name" in text_of(page)
    page.text_input(key="annotator").input("dan").run()
    assert not page.exception
    assert "12 of 12 labels" in text_of(page)
    assert "names of annotators are not verified" in text_of(page)


@pytest.mark.thorough
def test_a_paused_project_says_so_on_the_label_page(db, project):
    projects.change_project(db, project, "pause", annotator="ada")
    page = opened("annotate")
    page.text_input(key="annotator").input("dan").run()
    page.selectbox(key="project").set_value(project).run()
    assert "is paused" in page.error[0].value


@pytest.mark.thorough
def test_the_truth_page_weighs_labels_and_people(db, project):
    page = opened("projects/aggregated")
    page.selectbox(key="project").set_value(project).run()
    assert not page.exception
    assert not page.error, page.error[0].value
    assert any("Use the method “Most votes”" in one.value for one in page.markdown)
    maps, people = page.dataframe[0].value, page.dataframe[1].value
    assert len(maps) == 4
    assert set(people["person"]) == {"ada", "bob", "cyd"}
    assert "Krippendorff" in page.metric[0].label
    assert page.segmented_control(key="method").value == "majority", "the recommended method comes first"
    answer = " ".join(one.value.replace("\\", "") for one in page.markdown)
    assert re.search(r"\d of 4 maps have one class by most votes; \d are tied", answer)
    charts = [json.loads(one.proto.spec) for one in page.get("vega_lite_chart")]
    assert "Number of maps in each class" in json.dumps(charts[0]["title"]), "the figure draws the sentence"
    drawn = next(iter(charts[0]["datasets"].values())) if "datasets" in charts[0] else None
    assert drawn is None or sum(row["maps"] for row in drawn) == 4
    assert "Share of other annotators who gave the same label" in json.dumps(charts[1]["title"]).replace('", "', " ")
    assert {layer["mark"]["type"] for layer in charts[1]["layer"]} == {"bar", "text"}


@pytest.mark.thorough
def test_tied_maps_are_shown_with_what_annotators_said(db):
    names = sorted(labels.map_facts(db)["map_id"])[:3]
    for who, other in (("ada", "vertical"), ("bob", "block")):
        given = [
            event(number, name, other if number == 1 else "block", annotator=who, batch=who)
            for number, name in enumerate(names, start=1)
        ]
        labels.record_events(db, given)
    page = opened("projects/aggregated")
    (gallery,) = [html.proto.body for html in page.get("html") if "data:image/png" in html.proto.body]
    assert gallery.count("<img") == 1
    assert "vertical or block" in gallery or "block or vertical" in gallery
    answer = " ".join(one.value.replace("\\", "") for one in page.markdown)
    assert "2 of 3 maps have one class by most votes; 1 is tied" in answer


@pytest.mark.thorough
def test_the_same_labels_have_one_alpha_on_both_pages_and_disputes_lead_to_adjudication(db):
    """Labels outside projects: three people, alike but for one map."""
    names = sorted(labels.map_facts(db)["map_id"])[:4]
    for who in ("ada", "bob", "cyd"):
        given = [
            event(number, name, "vertical" if (who, number) == ("cyd", 1) else "block", annotator=who, batch=who)
            for number, name in enumerate(names, start=1)
        ]
        labels.record_events(db, given)
    texts = [one.value.replace("\\", "") for one in opened("projects/agreement").markdown]
    alpha = next(
        re.search(r"alpha over all annotators is (\d\.\d\d)", text)[1] for text in texts if "alpha over" in text
    )
    metric = next(one for one in opened("projects/aggregated").metric if one.label.startswith("Krippendorff's alpha"))
    assert f"{float(metric.value):.2f}" == alpha
    assert "3 annotators" in metric.delta
    there = opened("projects/agreement")
    assert any(link.proto.label == "Decide on them" for link in there.get("page_link"))
    assert "1 map has labels that differ" in text_of(there)


@pytest.mark.thorough
def test_doubted_labels_need_enough_labels(db, project):
    page = opened("projects/aggregated")
    next(one for one in page.button if one.label == "Find label errors").click().run()
    assert not page.exception
    assert "Training needs labels of at least two classes" in page.error[0].value


@pytest.mark.thorough
def test_maps_in_dispute_are_decided_and_leave_the_queue(db, project):
    page = opened("projects/adjudication")
    assert "Enter your name" in text_of(page)
    page.text_input(key="annotator").input("dan").run()
    assert not page.exception
    assert "When this page was opened, 1 map needed a decision" in text_of(page)
    (name,) = {row["map_id"] for row in labels.all_events(db) if row["class"] == "vertical"}
    decision = event(1, name, "block", annotator="dan", batch="tab-1", queue_order="adjudication") | {"pass": 100}
    box = {"database": db.id, "batch": "tab-1", "events": [decision]}
    assert project_sheet.take(resources.database(), {"boxes": [box], "secret": "s"})["acknowledged"] == {"tab-1": 1}
    page.session_state["queue"] = None
    page.run()
    assert "No map needs a decision" in text_of(page)
    assert assignment_service.board_of(db, project).complete


def test_the_dashboard_says_how_far_who_and_when(db, project):
    page = opened("projects/progress")
    assert page.metric[0].value == "12 of 12"
    assert page.metric[3].value == "complete"
    people = page.dataframe[0].value
    assert set(people["person"]) == {"ada", "bob", "cyd"}
    assert set(people["labels"]) == {4}


def test_the_dashboard_says_when_people_are_missing(db):
    found = make_project(db, Heading("p", "bert"), ProjectRecipe(count=4), Rules(k=3))
    hand = Hand(db, found, "ada")
    hand.say(hand.holds()[0])
    page = opened("projects/progress")
    assert "annotators so far is 1." in page.warning[0].value
    assert page.metric[0].value == "1 of 12"
    assert re.fullmatch(r"\d\d \w{3} \d\d:\d\d", page.metric[3].value)


def test_the_dashboard_and_agreement_report_labels_given_together(db):
    found = make_project(db, Heading("p", "bert"), ProjectRecipe(count=4), Rules(k=2, order="clusters"))
    for who, way in (("ada", "together"), ("bob", "single")):
        hand = Hand(db, found, who)
        for number, choice in enumerate(hand.holds()):
            hand.say(choice, "block" if number else "vertical", way=way, queue_order="clusters")
    for name in ("projects/progress", "projects/agreement"):
        page = opened(name)
        (table,) = [one.value for one in page.dataframe if "way" in one.value]
        assert list(table["way"]) == ["one by one", "together"]
        assert list(table["labels"]) == [4, 4]
        assert list(table["pairs"]) == [4, 4]


def test_maps_that_need_a_decision_are_shown_before_a_name_is_entered(project):
    page = opened("projects/adjudication")
    assert "Which maps need a decision?" in [one.value for one in page.subheader]
    assert any("1 map needs a decision" in one.value for one in page.markdown)
    assert "block: 2; vertical: 1" in "".join(one.proto.body for one in page.get("html"))
