"""An annotator presses every control that an admin's views have: nothing that is an admin's to change is changed."""

import pytest
from streamlit.testing.v1 import AppTest

import pages.parts.shell.shell as shell
from core.labelling.assignment import Rules
from core.labelling.projects import ProjectRecipe, make_project
from core.patterns import classifier_registry
from core.store import labels
from core.store.people import Person
from core.store.projects import Heading
from pages.parts.shell import resources
from tests.labelling.test_projects import Hand, fill
from tests.pages.opening import switched
from tests.store.labelling import event

ADMINS = ("project", "project_event", "class_event", "classifier_choice", "classifier", "erasure")  # tables
VIEWS = (
    "projects/setup", "projects/agreement", "projects/adjudication", "projects/aggregated", "annotate/classifier",
    "annotate/classes", "annotate",
)  # fmt: skip
QUICK = "projects/setup"


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    monkeypatch.setenv("ATLAS_VISITORS", "annotator")
    resources.database.clear()
    database = resources.database_for(Person("lead", "admin"))  # who sets up what an annotator then meets
    fill(database, 6)
    made = make_project(database, Heading("p", "bert", annotator="lead"), ProjectRecipe(count=4), Rules(k=2))
    for who, cls in (("ada", "block"), ("bob", "vertical")):
        hand = Hand(database, made, who)
        for choice in hand.holds():
            hand.say(choice, cls)
    labels.record_events(database, [event(1, "m5", "block", batch="tab-cyd", annotator="cyd")])
    yield database
    resources.database.clear()


def theirs(db):
    """What is an admin's, and how many label events retire or come from a file."""
    rows = {name: db.cursor().execute(f"SELECT * FROM {name}").fetchall() for name in ADMINS}  # noqa: S608 - our tables
    return rows | {"events": [row["event"] for row in labels.all_events(db)]}


def opened(name):
    page = AppTest.from_file(shell.__file__, default_timeout=90)
    page.run()
    switched(page, name).run()
    if any(box.key == "annotator" for box in page.text_input):
        page.text_input(key="annotator").input("eve").run()
    return page


@pytest.mark.parametrize(
    "view",  # the page runs twice for each control: one view by default
    [view if view == QUICK else pytest.param(view, marks=pytest.mark.slow) for view in VIEWS],
)
def test_no_control_of_a_view_does_what_is_an_admins(db, view):
    if view.startswith("annotate"):  # whoever labels may add what ships; adding it again changes nothing
        classifier_registry.bundled_labels(db, "bert")
        classifier_registry.bundled_classifier(db, "bert")
    before = theirs(db)
    page = opened(view)
    names = [(button.key, button.label) for button in page.button if not button.disabled]
    assert names or view != QUICK
    for key, label in names:
        page = opened(view)
        for box in page.text_input:
            if not box.disabled and box.key not in ("annotator", "project"):
                box.input("something")
        again = [button for button in page.button if (button.key, button.label) == (key, label)]
        if again and not again[0].disabled:
            again[0].click().run()
        assert not page.exception, (label, page.exception)
        assert theirs(db) == before, label
