"""A click on a head of the ribbons, in a real browser: its ribbon, its sentence and both heads' maps."""

import re

import pytest
from playwright.sync_api import expect

from tests.pages import browsing
from tests.pages.browsing import PATIENCE, settled, visit
from tests.pages.test_counterparts import NAME, store_match

pytestmark = [pytest.mark.browser, pytest.mark.slow]  # a server with a stored match, and a browser


def test_a_click_on_a_head_shows_its_counterpart_and_both_maps(tmp_path, browser):
    store_match(tmp_path / "atlas.duckdb")
    with browsing.serving(tmp_path) as address:
        page = browser.new_page(viewport={"width": 1400, "height": 1800})
        visit(page, f"{address}/heads?view=counterparts&head=L2H3")
        main = page.get_by_test_id("stMain")
        expect(main.get_by_text("L2H3 has a counterpart: matched with L2H3")).to_be_visible(timeout=PATIENCE)
        charts = page.get_by_test_id("stVegaLiteChart")
        expect(charts).to_have_count(3)
        settled(page)
        heads = charts.first.locator("[aria-roledescription='square'][cursor], .mark-symbol path").filter(visible=True)
        heads.and_(page.locator("[aria-label*='name: L5H2']")).first.click()
        expect(main.get_by_text("L5H2 has a counterpart: matched with L5H2")).to_be_visible(timeout=PATIENCE)
        settled(page)
        for shown in (charts.nth(1), charts.nth(2)):
            expect(
                shown.locator(".role-title-text, .mark-text").filter(has_text=re.compile(f"L5H2 of {NAME}")).first
            ).to_be_visible(timeout=PATIENCE)
            assert shown.locator(".mark-rect path").count() > 100  # a cell for each query and key
