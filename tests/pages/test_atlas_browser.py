"""The atlas in a browser: it stands without a model, hover reads a head, a click opens its page."""

import pytest
from playwright.sync_api import expect

from tests.pages.browsing import visit

pytestmark = pytest.mark.browser


def test_the_first_page_shows_every_head_and_a_click_opens_one(address, page):
    visit(page, f"{address}/atlas")
    heads = page.locator("figure.picture .head")
    expect(heads).to_have_count(36)
    expect(page.locator("figure.scatter circle")).to_have_count(36)
    page.locator('figure.picture [data-head="L1H6"]').hover()
    expect(page.locator(".tip")).to_contain_text("L1H6")
    page.locator('figure.picture [data-head="L1H6"]').click()
    expect(page.locator('[data-testid="stMain"] h1').first).to_have_text("One head")
    expect(page.get_by_text("previous token", exact=False).first).to_be_visible()
    expect(page.get_by_role("combobox", name="Head")).to_have_value("L1H6")


def test_scores_of_both_signs_are_painted(address, page):
    visit(page, f"{address}/atlas?checkpoint=atlas-decoder&colour=roles/copying")
    expect(page.locator("figure.picture .head")).to_have_count(36)
    shades = page.locator("figure.picture .head").evaluate_all(
        "marks => new Set(marks.map((m) => m.getAttribute('fill'))).size"
    )
    assert shades > 5
