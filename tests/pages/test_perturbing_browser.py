"""Perturb in a real browser: a name is swapped, words at the mask stand side by side, edges are cut."""

import pytest
from playwright.sync_api import expect

from core import config
from tests.pages.browsing import PATIENCE, settled, visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (config.BUNDLED_MODELS / "atlas-encoder").is_dir(), reason="the encoder is not in data/models"
    ),
]
MASKED = "Karen said that Daniel was in the [MASK]."


@pytest.mark.slow  # 3 to 5 CPU seconds each; the same view without a browser is in test_perturbing.py
def test_a_swapped_name_moves_maps_and_words_at_the_mask(address, page):
    visit(page, f"{address}/interventions?view=patching&text={MASKED}&kind=name-gender")
    expect(page.get_by_text("Second input:", exact=False)).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("Karen becomes", exact=False).first).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_test_id("stDataFrame")).to_have_count(1, timeout=PATIENCE)
    first = page.get_by_test_id("stVegaLiteChart").locator('path[aria-label^="head: 1; layer: 1;"]').first
    first.wait_for(timeout=PATIENCE)
    settled(page)  # while a script runs the control may be out of the page for a moment
    page.get_by_test_id("stButtonGroup").get_by_text("Patching", exact=True).click()
    settled(page)
    expect(page.get_by_text("Compared by the logit of", exact=False)).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(2, timeout=PATIENCE)


@pytest.mark.slow  # 3 to 5 CPU seconds each; the same view without a browser is in test_perturbing.py
def test_a_name_of_any_gender_is_refused_in_a_sentence(address, page):
    visit(page, f"{address}/interventions?view=patching&text=Alex came home late.&kind=name-gender")
    expect(page.get_by_text("Alex has no partner by gender", exact=False)).to_be_visible(timeout=PATIENCE)


@pytest.mark.slow  # 3 to 5 CPU seconds each; the same view without a browser is in test_perturbing.py
def test_cut_separators_are_counted(address, page):
    visit(page, f"{address}/interventions?view=patching&text={MASKED}&mode=Cut edges&edges=separators")
    expect(page.get_by_text("of the map", exact=False)).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_test_id("stDataFrame")).to_have_count(1, timeout=PATIENCE)
