"""The frames page in a real browser: type a sentence, read the picture, click a word, open the maps."""

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
SENTENCE = "The old teacher was getting angry about the noise."


def type_sentence(page, text: str) -> None:
    box = page.get_by_label("Sentence", exact=True)
    box.fill(text)
    box.press("Enter")


@pytest.mark.slow  # 7 CPU seconds; the view without a browser is in test_frames.py
def test_typing_a_sentence_gives_pictures_in_both_directions_and_clicks_change_them(address, page):
    visit(page, f"{address}/linguistics?view=frames")
    type_sentence(page, SENTENCE)
    pictures = page.get_by_test_id("stVegaLiteChart")
    pictures.nth(2).wait_for(timeout=PATIENCE)
    settled(page)
    expect(pictures).to_have_count(3)
    assert page.get_by_text("element → target", exact=False).count()
    assert "text=The+old+teacher" in page.url
    page.get_by_role("radio", name="element", exact=True).click()
    page.get_by_role("option", name="noise", exact=True).click()
    expect(page.get_by_role("option", name="noise, element")).to_be_visible()
    page.get_by_role("radio", name="element", exact=True).click()
    page.get_by_role("option", name="teacher", exact=True).click()  # in place of the word before
    expect(page.get_by_role("option", name="teacher, element")).to_be_visible()
    expect(page.get_by_role("option", name="noise", exact=True)).to_be_visible()
    page.get_by_role("radio", name="element", exact=True).click()
    page.get_by_role("option", name="noise", exact=True).click(modifiers=["Shift"])  # beside it
    expect(page.get_by_role("option", name="noise, element")).to_be_visible()
    expect(page.get_by_role("option", name="teacher, element")).to_be_visible()
    page.wait_for_function("location.search.includes('element=')", timeout=PATIENCE)
    settled(page)
    expect(page.get_by_test_id("stException")).to_have_count(0)


@pytest.mark.slow  # 5 CPU seconds each; the first test walks over the page
def test_a_head_opens_its_maps_on_the_same_sentence(address, page):
    visit(page, f"{address}/linguistics?view=frames&text={SENTENCE}")
    link = page.get_by_role("link", name="Maps of")
    link.wait_for(timeout=PATIENCE)
    link.click()
    page.get_by_role("heading", name="Attention maps").wait_for(timeout=PATIENCE)
    settled(page)
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(SENTENCE)
    assert "head=L" in page.url


@pytest.mark.slow  # 5 CPU seconds each; the first test walks over the page
def test_the_picture_of_a_sentence_can_be_kept(address, page):
    visit(page, f"{address}/linguistics?view=frames&text={SENTENCE}")
    button = page.get_by_role("button", name="Picture (SVG)")
    page.get_by_role("button", name="Save", exact=True).first.click(timeout=PATIENCE)
    button.wait_for(timeout=PATIENCE)
    with page.expect_download(timeout=PATIENCE) as kept:
        button.click()
    assert kept.value.suggested_filename == "heads.svg"
    drawn = kept.value.path().read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert "element" in drawn


@pytest.mark.slow  # 5 CPU seconds each; the first test walks over the page
@pytest.mark.parametrize(
    ("checkpoint", "number"), [("atlas-encoder", 0), ("atlas-encoder", 1), ("atlas-encoder", 2), ("atlas-decoder", 1)]
)
def test_every_example_button_fills_the_sentence_and_draws_its_heads(address, page, number, checkpoint):
    from pages.parts.frames.lookup import EXAMPLES

    visit(page, f"{address}/linguistics?view=frames&checkpoint={checkpoint}")
    button, menu = page.get_by_role("button", name=EXAMPLES[number]), page.get_by_role("button", name="Examples")
    if number == 0:  # the view opens with it, so another one is needed first
        menu.click()
        expect(button).to_be_disabled()
        page.keyboard.press("Escape")
        type_sentence(page, SENTENCE)
    menu.click()
    button.click()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(EXAMPLES[number], timeout=PATIENCE)
    page.get_by_test_id("stVegaLiteChart").nth(1).wait_for(timeout=PATIENCE)  # a decoder draws one direction
    expect(page.get_by_test_id("stException")).to_have_count(0)
