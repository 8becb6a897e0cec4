"""Probes in a real browser: a click on a word keeps its arcs and shortens the table."""

import pytest
from playwright.sync_api import expect

from tests.pages.browsing import PATIENCE, settled, visit

pytestmark = pytest.mark.browser


@pytest.mark.slow  # 7 CPU seconds; the view and its arcs without a browser are in test_probes.py
def test_a_click_on_a_word_keeps_its_arcs_alone(address, page):
    visit(page, f"{address}/linguistics?view=probes&mode=One sentence")
    expect(page.get_by_text("Every word of the sentence", exact=False)).to_be_visible(timeout=PATIENCE)
    word = page.get_by_test_id("stVegaLiteChart").locator("g.mark-text.role-mark text").nth(1)
    word.wait_for(timeout=PATIENCE)
    word.click()
    settled(page)
    expect(page.get_by_text("The chosen word and its dependents", exact=False)).to_be_visible(timeout=PATIENCE)
