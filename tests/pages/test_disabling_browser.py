"""Disable heads in a real browser: click heads, read what changes, go on with them."""

import re

import pytest
from playwright.sync_api import expect

from core import config
from tests.pages.browsing import PATIENCE, painted, settled, visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (config.BUNDLED_MODELS / "atlas-encoder").is_dir(), reason="the encoder is not in data/models"
    ),
]
MASKED = "The old [MASK] sat in the garden."


def cell(page, head: str):
    """The cell of a head in the layer x head picture."""
    layer, number = re.fullmatch(r"L(\d+)H(\d+)", head).groups()
    found = page.get_by_test_id("stVegaLiteChart").locator(f'path[aria-label^="head: {number}; layer: {layer};"]').first
    found.wait_for(timeout=PATIENCE)
    return found


def click(page, head: str, chosen: str) -> None:
    """Click a head and wait until it is among those that are changed."""
    cell(page, head).click()
    page.wait_for_function(
        "value => document.querySelector('input[aria-label=\"Heads to change\"]').value === value",
        arg=chosen,
        timeout=PATIENCE,
    )
    settled(page)


@pytest.mark.slow  # 6 CPU seconds; the other walk clicks heads too, words and numbers are in test_disabling.py
def test_clicked_heads_are_disabled_and_the_words_before_and_after_are_shown(address, page):
    visit(page, f"{address}/interventions?text={MASKED}")
    page.get_by_text("No head has been ablated yet", exact=False).wait_for(timeout=PATIENCE)
    click(page, "L2H2", "L2H2")
    click(page, "L6H1", "L2H2,L6H1")
    said = page.get_by_text("the prediction", exact=False)
    said.wait_for(timeout=PATIENCE)
    assert re.search(
        r"If L2H2, L6H1 are ablated, the prediction (stays|changes from \S+ \(\d+%\) to) \S+", said.inner_text()
    )
    expect(page.get_by_text("Word predicted at position 4", exact=False)).to_have_count(1)
    expect(page.get_by_test_id("stDataFrame")).to_have_count(1)
    assert "heads=L2H2%2CL6H1" in page.url
    # layers above the first touched one moved, the one below did not
    below, above = (cell(page, head).get_attribute("aria-label") for head in ("L1H1", "L3H1"))
    assert below.endswith("change of the map: 0")
    assert float(above.rpartition(": ")[2]) > 0
    click(page, "L2H2", "L6H1")
    assert "If L6H1 is ablated" in page.get_by_text("the prediction", exact=False).inner_text()


@pytest.mark.slow  # 9 CPU seconds; words and numbers are in test_disabling.py
def test_clicked_heads_go_on_to_a_sweep_and_a_head_of_the_maps_comes_here(address, page):
    visit(page, f"{address}/interventions?text={MASKED}&heads=L2H2,L6H1")
    page.get_by_role("link", name="Maps of L2H2").click(timeout=PATIENCE)
    page.get_by_role("heading", name="Attention maps").wait_for(timeout=PATIENCE)
    expect(painted(page)).to_have_attribute("data-head", "L2H2")
    visit(page, f"{address}/interventions?text={MASKED}&heads=L2H2,L6H1")
    page.get_by_role("button", name="Ablate these heads on the examples of a task").click()
    groups = page.get_by_label("Groups", exact=True)
    groups.wait_for(timeout=PATIENCE)
    settled(page)
    expect(groups).to_have_value("L2H2,L6H1")
    visit(page, f"{address}/maps?text={MASKED}&head=L2H2")
    link = page.get_by_role("link", name="What happens without L2H2")
    link.wait_for(timeout=PATIENCE)
    link.click()
    page.get_by_role("heading", name="Interventions").wait_for(timeout=PATIENCE)
    settled(page)
    expect(page.get_by_role("textbox", name="Heads to change")).to_have_value("L2H2")
    expect(page.get_by_role("textbox", name="Sentence", exact=True)).to_have_value(MASKED)
