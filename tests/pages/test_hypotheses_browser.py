"""From the first page to a registered and tested hypothesis about a head, in a real browser: clicks are counted."""

import pytest
from playwright.sync_api import expect

from core.store import hypotheses
from core.store.database import Database
from tests.pages import browsing
from tests.pages.browsing import PATIENCE, settled, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]
MOST_CLICKS = 8


def test_a_hypothesis_is_registered_and_tested_in_at_most_eight_clicks(tmp_path, browser):
    with browsing.serving(tmp_path) as address:
        page, clicks = browser.new_page(), 0
        visit(page, address)
        for step in (
            page.get_by_role("link", name="Heads").first,
            page.get_by_text("One head", exact=True).first,
            page.get_by_test_id("stButton").filter(has_text="L1H1 looks").first,
        ):
            step.click(timeout=PATIENCE)
            clicks += 1
            settled(page)
        expect(page.get_by_text("Measured values for each criterion")).to_be_visible(timeout=4 * PATIENCE)
        assert clicks <= MOST_CLICKS
        page.get_by_text("Measured values for each criterion").click()
        opens = page.get_by_test_id("stExpander").get_by_role("link", name="Open")
        expect(opens).to_have_count(2)  # the run on the rows of the thought, and that on the judging ones
        expect(page.get_by_text("held out, explained", exact=False).first).to_be_visible()
        database = tmp_path / "atlas.duckdb"
    with Database(database) as db:
        (one,) = hypotheses.hypotheses(db)
        assert len(one.criteria) == 7
