"""The labelling sheet as it meets an annotator's hands and eyes: keys, what is saved, and what a map looks like."""

import io

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.pages.browsing import serving, settled
from tests.pages.test_label_browser import all_saved, fill, open_sheet

pytestmark = pytest.mark.browser
PRIMARY = (31, 95, 168)
RECORD_TEXTS = """window.texts = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  window.texts.push(text);
  return write.call(this, text, ...rest);
};"""
DARK = "getComputedStyle(document.querySelector('.stApp')).backgroundColor === 'rgb(20, 23, 28)'"
FIRST_MAP = """canvas => { const scale = window.devicePixelRatio || 1;
  return [...canvas.getContext('2d').getImageData(10 * scale, 20 * scale, 60 * scale, 60 * scale).data].join() }"""


@pytest.mark.slow  # 6 CPU seconds, a server of its own; test_label_browser.py walks over the sheet by default
def test_keys_work_wherever_the_focus_is_but_in_a_field_and_what_is_saved_is_said_on_coming_back(page, tmp_path):
    fill(tmp_path, 12)
    with serving(tmp_path) as address:
        root = open_sheet(page, address)
        assert share_of_track(root) == 0
        page.get_by_role("heading", name="Annotate").click()
        page.keyboard.press("1")
        expect(root).to_have_attribute("data-done", "1")
        page.get_by_text("Codebook", exact=True).last.click()  # the switch; its box has the focus now
        settled(page)
        page.keyboard.press("2")
        expect(root).to_have_attribute("data-done", "2")
        page.get_by_label("Your name").click()
        page.keyboard.press("3")
        page.keyboard.press("Backspace")
        expect(root).to_have_attribute("data-done", "2")
        all_saved(root, 2)
        pages = page.locator(".st-key-pages")
        for name in ("Start", "Annotate"):
            pages.get_by_role("link", name=name).click()
            page.get_by_test_id("stMain").get_by_role("heading", level=1).filter(has_text=name).wait_for()
        expect(root.locator(".status")).to_contain_text("2 of 12 maps done · 2 saved · 0 waiting")
        page.keyboard.press("4")
        expect(root).to_have_attribute("data-done", "3")
        assert share_of_track(root) == pytest.approx(3 / 12, abs=0.03)


def share_of_track(root) -> float:
    """How much of the progress track is drawn as done, in the light theme."""
    picture = np.asarray(Image.open(io.BytesIO(root.locator("progress").screenshot())).convert("RGB"), dtype=int)
    middle = picture[len(picture) // 2, 2:-2]  # without its border
    return float((np.abs(middle - PRIMARY).max(-1) < 40).mean())


@pytest.mark.slow  # 6 CPU seconds, a server of its own; test_label_browser.py walks over the sheet by default
def test_maps_have_one_ground_in_both_themes_whole_captions_and_no_slivers(page, tmp_path):
    page.add_init_script(RECORD_TEXTS)
    fill(tmp_path, 30)
    with serving(tmp_path) as address:
        root = open_sheet(page, address)
        canvas = root.locator("canvas").first
        light = canvas.evaluate(FIRST_MAP)
        page.emulate_media(color_scheme="dark")
        page.reload()
        page.locator(".root[data-cursor]").wait_for()
        settled(page)
        page.wait_for_function(DARK)
        assert canvas.evaluate(FIRST_MAP) == light
        page.keyboard.press("3")
        before = canvas.evaluate("canvas => canvas.toDataURL()")
        page.keyboard.press("ArrowRight")
        assert canvas.evaluate("canvas => canvas.toDataURL()") != before
        page.keyboard.press("ArrowLeft")
        assert canvas.evaluate("canvas => canvas.toDataURL()") == before
        texts = page.evaluate("window.texts")
        assert not [text for text in texts if "…" in text]
        assert "max 0.50 · 8 tokens" in texts
