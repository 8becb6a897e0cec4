"""The maps page in a real browser: what a user types, sees, reads and downloads."""

import io
import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.pages.browsing import PATIENCE, painted, settled, visit

pytestmark = pytest.mark.browser
SENTENCE = "The keys to the old cabinet were on the table."


@pytest.fixture(scope="module")
def encoder_maps():
    from core.capture.running import capture
    from core.models.opening import bundled_names, open_checkpoint

    if "atlas-encoder" not in bundled_names():
        pytest.skip("the bundled encoder is not in data/models")
    encoder = open_checkpoint("atlas-encoder")
    return capture(encoder, encoder.encode(SENTENCE))


def type_sentence(page, text: str) -> None:
    box = page.get_by_label("Sentence", exact=True)
    box.fill(text)
    box.press("Enter")


def point_at(page, query: int, key: int, length: int) -> str:
    """Put the pointer on one cell of the enlarged map; returns what the page says."""
    over = page.locator("canvas.over")
    over.wait_for(timeout=PATIENCE)
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    frame = over.evaluate("canvas => canvas.parentElement.dataset.frame")
    margin, cell = map(float, frame.split(","))
    page.mouse.move(box["x"] + margin + (key + 0.5) * cell, box["y"] + margin + (query + 0.5) * cell)
    assert cell * length + margin < box["width"] + 1
    return page.locator(".reading").inner_text()


def test_a_typed_sentence_shows_every_head_and_hover_reads_the_weight_that_core_computed(page, address, encoder_maps):
    visit(page, f"{address}/maps")
    type_sentence(page, SENTENCE)
    grid = painted(page)
    grid.locator(".allBox").focus()
    page.keyboard.type("l3h2")
    page.keyboard.press("Enter")
    expect(grid).to_have_attribute("data-head", "L3H2")
    for query, key in [(0, 0), (2, 5), (len(encoder_maps) - 1, 3)]:
        said = point_at(page, query, key, len(encoder_maps))
        assert encoder_maps.tokens[query] in said
        assert encoder_maps.tokens[key] in said
        read = float(page.locator(".reading").get_attribute("data-weight"))
        assert read == pytest.approx(encoder_maps.weights[2, 1, query, key], abs=1e-4)  # sent as 16 bits, float32 sums


def test_a_click_enlarges_the_head_under_the_pointer_and_arrows_walk_on(page, address):
    visit(page, f"{address}/maps?text={SENTENCE}")
    grid = painted(page)
    box = grid.locator("canvas.all").bounding_box()
    page.mouse.click(box["x"] + 40, box["y"] + 30)
    expect(grid).to_have_attribute("data-head", "L1H1")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(grid).to_have_attribute("data-head", "L2H2")
    page.keyboard.press("Escape")
    expect(grid).to_have_attribute("data-head", "")


def test_a_link_reopens_what_was_seen(page, address, browser):
    visit(page, f"{address}/maps?text={SENTENCE}&unit=words")
    grid = painted(page)
    grid.get_by_label("Score").select_option("previous")
    grid.get_by_label("Show").select_option("highest")
    grid.get_by_label("At least").fill("0.05")
    grid.get_by_label("Colour").select_option("own")
    grid.get_by_label("Go to a head").fill("L2H3")
    grid.get_by_label("Go to a head").press("Enter")
    page.wait_for_function("location.search.includes('head=L2H3')")
    link = page.evaluate("location.href")
    other = browser.new_page()
    visit(other, link)
    again = painted(other)
    expect(again).to_have_attribute("data-head", "L2H3")
    expect(again.get_by_label("Score")).to_have_value("previous")
    expect(again.get_by_label("Show")).to_have_value("highest")
    expect(again.get_by_label("At least")).to_have_value("0.05")
    expect(again.get_by_label("Colour")).to_have_value("own")
    expect(other.get_by_label("Sentence", exact=True)).to_have_value(SENTENCE)
    other.close()


def test_two_checkpoints_side_by_side_follow_each_other(page, address):
    visit(page, f"{address}/maps?text={SENTENCE}&beside=atlas-decoder")
    first, second = painted(page, 0), painted(page, 1)
    first.locator(".allBox").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(first).to_have_attribute("data-head", "L1H2")
    expect(second).to_have_attribute("data-head", "L1H2")


def test_pictures_and_weights_are_saved_as_files(page, address, encoder_maps):
    visit(page, f"{address}/maps?text={SENTENCE}&head=L1H1")
    grid = painted(page)
    with page.expect_download() as saved:
        grid.get_by_title("Download the picture of all heads as PNG").click()
    assert saved.value.path().read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with page.expect_download() as saved:
        grid.get_by_title("Download this map as SVG").click()
    picture = ElementTree.fromstring(saved.value.path().read_text())  # noqa: S314 - written by the page a moment ago
    words = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"weight", "0", "1", *encoder_maps.tokens} <= set(words)  # the scale and every token
    with page.expect_download() as saved:
        page.get_by_role("button", name="Weights (NPZ)").click()
    stored = np.load(io.BytesIO(saved.value.path().read_bytes()))
    np.testing.assert_allclose(stored["weights"], encoder_maps.weights, atol=1e-6)
    assert tuple(stored["tokens"]) == encoder_maps.tokens


def test_script_in_a_sentence_is_text_everywhere(page, address):
    page.add_init_script("window.ran = 0; window.alert = () => { window.ran += 1; };")
    hostile = "<img src=x onerror=alert(1)> </script><script>alert(2)</script> **bold** [l](javascript:alert(3)) ok"
    visit(page, f"{address}/maps")
    type_sentence(page, hostile)
    grid = painted(page)
    grid.locator(".allBox").focus()
    page.keyboard.type("L1H1")
    page.keyboard.press("Enter")
    point_at(page, 1, 1, 1)
    assert grid.locator(".row span").count() > 10
    expect(grid.locator(".row img, .row script, .row a")).to_have_count(0)
    with page.expect_download() as saved:
        grid.get_by_title("Download the picture of all heads as SVG").click()
    assert "<script" not in saved.value.path().read_text()
    assert page.evaluate("window.ran") == 0


def test_letters_typed_in_the_grid_do_not_reach_streamlit(page, address):
    visit(page, f"{address}/maps?text={SENTENCE}")
    painted(page).locator(".allBox").focus()
    page.keyboard.press("c")
    page.keyboard.press("r")
    settled(page)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_hundred_and_twenty_eight_tokens_are_read_by_pointing(page, address):
    words = " ".join(f"word{k}" for k in range(200))
    visit(page, f"{address}/maps?text={words}&head=L1H1")
    painted(page)
    assert re.search(r"longer than 128 pieces.*\d+ were cut", page.get_by_test_id("stAlert").inner_text(), re.DOTALL)
    point_at(page, 100, 3, 128)
    assert json.loads(page.locator(".row").evaluate("row => JSON.stringify(row.children.length)")) == 128
