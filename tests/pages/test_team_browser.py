"""A project in a real browser: training with feedback, labels through their own door, and a server that is killed."""

import os
import signal

import pytest
from playwright.sync_api import expect

from core.labelling import adjudicating, assignment_service
from core.labelling.assignment import Rules
from core.labelling.projects import ProjectRecipe, make_project
from core.store import labels
from core.store.database import Database
from core.store.projects import Heading
from tests.labelling.test_projects import fill
from tests.pages.browsing import PATIENCE, free_port, process_of, serving, settled, visit
from tests.store.labelling import event

pytestmark = [pytest.mark.browser, pytest.mark.slow]  # a server and a browser, minutes on a busy machine


def made(folder, **rules) -> str:
    db = Database(folder / "atlas.duckdb")
    fill(db, 12)
    labels.record_events(db, [event(1, "m0", "vertical", annotator="expert")])
    recipe = ProjectRecipe(count=6, exemplars=1, known_from="expert")
    project = make_project(db, Heading("Who sees what", "bert"), recipe, Rules(k=1, ahead=3, **rules))
    db.close()
    return project


def open_project(page, address, project, name="ada"):
    return open_sheet(page, f"{address}/annotate?project={project}", name)


def open_sheet(page, address, name):
    visit(page, address)
    box = page.get_by_label("Your name")
    box.fill(name)
    box.press("Enter")
    root = page.locator(".root[data-cursor]")
    root.wait_for(timeout=PATIENCE)
    settled(page)
    root.locator("canvas").focus()
    return root


def train(page, root):
    """A wrong class on the exemplar, then the right one; the first maps are there then."""
    expect(root.locator(".word")).to_contain_text("Training, round 1")
    page.keyboard.press("2")
    expect(root).to_have_attribute("data-feedback", "wrong")
    expect(root.locator(".word")).to_contain_text("You said Diagonal; it is Vertical")
    expect(root.locator(".word canvas.verdict")).to_have_count(1)  # the map that it is of
    expect(root).to_have_attribute("data-sheets", "2")
    page.keyboard.press("1")
    expect(root).to_have_attribute("data-feedback", "right")
    expect(root).to_have_attribute("data-sheets", "3")
    for key in "123":
        page.keyboard.press(key)
    expect(root).to_have_attribute("data-saved", "5")
    expect(root).to_have_attribute("data-sheets", "4")


def votes_of(folder, project):
    with Database(folder / "atlas.duckdb") as db:
        return assignment_service.board_of(db, project).labels_by_map()


def test_training_feedback_and_labels_to_the_end_of_a_project(page, tmp_path):
    project = made(tmp_path)
    with serving(tmp_path) as address:
        root = open_project(page, address, project)
        train(page, root)
        for key in "455":
            page.keyboard.press(key)
        expect(root.locator(".word")).to_contain_text("The project is complete")
    assert {len(one) for one in votes_of(tmp_path, project).values()} == {1}


def test_labels_wait_for_a_server_that_was_killed(page, tmp_path):
    project, port = made(tmp_path), free_port()
    with serving(tmp_path, port=port) as address:
        root = open_project(page, address, project)
        train(page, root)
        os.kill(process_of(address), signal.SIGKILL)
    for key in "45":
        page.keyboard.press(key)
    expect(root).to_have_attribute("data-waiting", "2")
    with serving(tmp_path, port=port):
        expect(root).to_have_attribute("data-waiting", "0")
    assert sum(map(len, votes_of(tmp_path, project).values())) == 5


def test_a_dispute_is_decided_by_key(page, tmp_path):
    with Database(tmp_path / "atlas.duckdb") as db:
        fill(db, 4)
        for who, cls in (("bob", "block"), ("cyd", "vertical")):
            labels.record_events(db, [event(1, "m1", cls, batch=who, annotator=who)])
    with serving(tmp_path) as address:
        root = open_sheet(page, f"{address}/projects?view=adjudication", "ada")
        expect(root.locator(".word")).to_contain_text("Person A: Block; Person B: Vertical")
        page.keyboard.press("4")
        expect(root).to_have_attribute("data-saved", "1")
    with Database(tmp_path / "atlas.duckdb") as db:
        assert adjudicating.disputes(db, "bert") == []
        assert labels.all_events(db)[-1]["class"] == "block"
