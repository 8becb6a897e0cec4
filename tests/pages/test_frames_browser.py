"""The frames page in a real browser: type a sentence, read the picture, click a word, open the maps."""

import pytest

from core import config
from tests.pages.browsing import PATIENCE, settled, visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (config.BUNDLED_MODELS / "atlas-encoder").is_dir(), reason="the encoder is not in data/models"
    ),
]
SENTENCE = "The old teacher was getting angry about the noise."


def type_sentence(page, text: str) -> None:
    box = page.get_by_label("Sentence", exact=True)
    box.fill(text)
    box.press("Enter")


def test_typing_a_sentence_gives_pictures_in_both_directions_and_clicks_change_them(address, page):
    visit(page, f"{address}/frames")
    type_sentence(page, SENTENCE)
    pictures = page.get_by_test_id("stVegaLiteChart")
    pictures.nth(2).wait_for(timeout=PATIENCE)
    settled(page)
    assert pictures.count() == 3, "two directions and the strip"
    assert page.get_by_text("element → target", exact=False).count()
    assert "sentence=The+old+teacher" in page.url
    page.get_by_label("Element words").get_by_text("noise", exact=True).click()
    settled(page)
    assert page.get_by_test_id("stException").count() == 0


def test_a_head_opens_its_maps_on_the_same_sentence(address, page):
    visit(page, f"{address}/frames?sentence={SENTENCE}")
    link = page.get_by_role("link", name="on this sentence")
    link.wait_for(timeout=PATIENCE)
    link.click()
    page.get_by_role("heading", name="Attention maps").wait_for(timeout=PATIENCE)
    settled(page)
    assert page.get_by_label("Sentence", exact=True).input_value() == SENTENCE
    assert "head=L" in page.url
