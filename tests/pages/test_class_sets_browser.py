"""A class set of one's own in a real browser: made on its page, then labelled by a key and by a click."""

import pytest
from playwright.sync_api import expect

from core.patterns.snapshot import known_class_set
from core.store import labels
from core.store.database import Database
from tests.pages.browsing import PATIENCE, serving, settled, visit
from tests.pages.test_label_browser import all_saved, fill, open_sheet

pytestmark = pytest.mark.browser
SCRIPT = "<img src=x onerror=window.ran=1>"


def typed(page, label, text, nth=0):
    box = page.get_by_label(label, exact=True).nth(nth)
    box.fill(text)
    box.press("Enter")
    settled(page)


@pytest.mark.slow  # a server and two pages of it
def test_a_class_set_is_made_on_its_page_and_labelled_by_a_key_and_by_a_click(page, tmp_path):
    fill(tmp_path, 8)
    page.set_viewport_size({"width": 1280, "height": 1600})
    with serving(tmp_path) as address:
        visit(page, f"{address}/annotate?view=classes")
        page.get_by_text("Create a class set of your own").click()
        typed(page, "Classes", "2")
        typed(page, "Name of the class set", "sea")
        for k, (name, eye) in enumerate([("Wave", "A wave."), (SCRIPT, "All else.")]):
            typed(page, "Class", name, k)
            typed(page, "Appearance", eye, k + 1)  # the first is of the form beside it
        typed(page, "Key", "", 2)
        page.get_by_role("button", name="Create class set").click()
        expect(page.get_by_text("Made: sea")).to_be_visible(timeout=PATIENCE)
        root = open_sheet(page, address, at="annotate?view=label&class_set=sea")
        page.keyboard.press("1")
        root.get_by_role("button", name=SCRIPT).click()
        all_saved(root, 2)
        assert page.evaluate("window.ran") is None, "a name with script is text"
    db = Database(tmp_path / "atlas.duckdb")
    assert known_class_set(db, "sea").classes[1].key == ""
    assert sorted(labels.decided(db, "sea", "ada").values()) == sorted(["wave", SCRIPT])
    db.close()
