"""Every page in a real browser: axe finds nothing serious, whatever Streamlit has drawn anew."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from pages.parts.shell import shell
from tests.pages.browsing import PROJECT, named, visit

AXE = PROJECT / "tests" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.mark.browser
def test_the_sidebar_has_the_eleven_pages_and_fits_a_small_screen(page, address):
    page.set_viewport_size({"width": 1280, "height": 768})
    visit(page, f"{address}/results")
    links = page.locator(".st-key-pages a")
    expect(links).to_have_text([one.title for one in shell.PAGES])
    expect(links.last).to_be_in_viewport()


@pytest.mark.slow  # a minute: every page in both themes; the maps page alone is looked at in test_maps_browser
@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", [page.name for page in shell.PAGES])
def test_axe_finds_nothing_serious_on_any_page(browser, address, name, theme):
    if not Path(AXE).is_file():
        pytest.skip("axe-core is not installed: npm install --prefix tests")
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    visit(page, f"{address}/{name}")
    named(page)
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"]][:4])
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
    ]
    context.close()
    assert not serious


@pytest.mark.browser
def test_a_table_offers_no_csv_that_a_spreadsheet_would_run(page, address):
    """Streamlit's own export leaves formulas as they are; the buttons below a result escape them."""
    visit(page, f"{address}/atlas")
    page.get_by_text("Scores and their sources").first.click()
    page.get_by_test_id("stDataFrame").first.hover()
    toolbar = page.get_by_test_id("stElementToolbar").first
    expect(toolbar.locator('[aria-label^="Search"]')).to_be_visible()
    expect(toolbar.locator('[aria-label^="Download as CSV"]')).to_have_count(1)
    expect(toolbar.locator('[aria-label^="Download as CSV"]')).to_be_hidden()
