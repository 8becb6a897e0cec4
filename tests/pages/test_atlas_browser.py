"""The atlas in a browser: it stands without a model, hover reads a head, a click opens its page."""

import re

import pytest
from playwright.sync_api import expect

from tests.pages.browsing import painted, until, visit

pytestmark = pytest.mark.browser


def test_the_first_page_shows_every_head_and_a_click_opens_one(address, page):
    visit(page, f"{address}/heads?layout=two+scores")
    heads = page.locator("figure.picture .head")
    expect(heads).to_have_count(36)
    expect(page.locator("figure.scatter circle")).to_have_count(36)
    painted(page)  # what stands above the picture has come: until then the picture moves under the pointer
    head = page.locator('figure.picture [data-head="L2H2"]')

    def tip_names_the_head():  # text above that breaks into one line more moves another head under a pointer at rest
        head.hover()
        return "L2H2" in page.locator(".tip").inner_text()

    until(tip_names_the_head)
    page.locator('figure.picture [data-head="L2H2"]').click()
    page.wait_for_url("**/heads?*view=one*")
    expect(page.get_by_text("next token", exact=False).first).to_be_visible()
    expect(page.get_by_role("combobox", name="Head")).to_have_value("L2H2")


@pytest.mark.slow  # 5 to 8 CPU seconds each; the first test walks from all heads to one, values are in test_atlas.py
def test_scores_of_both_signs_are_painted(address, page):
    visit(page, f"{address}/heads?checkpoint=atlas-decoder&colour=roles/copying")
    expect(page.locator("figure.picture .head")).to_have_count(36)
    shades = page.locator("figure.picture .head").evaluate_all(
        "marks => new Set(marks.map((m) => m.getAttribute('fill'))).size"
    )
    assert shades > 5
    assert "colour=roles" in page.url  # a link names a score by its key


@pytest.mark.slow  # 5 to 8 CPU seconds each; the first test walks from all heads to one, values are in test_atlas.py
def test_the_gallery_shows_its_maps(address, page):
    visit(page, f"{address}/heads?view=one&head=L2H3&gallery=true")
    page.get_by_role("tab", name="Gallery").click()
    maps = page.locator("[class*=st-key-gallery_maps] .root figure canvas")
    expect(maps).to_have_count(15)  # 3 highest, 9 deciles, 3 lowest
    inks = maps.first.evaluate(
        "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
    )
    assert inks > 5
    maps.first.scroll_into_view_if_needed()
    box = maps.first.bounding_box()
    maps.first.hover(position={"x": box["width"] - 5, "y": box["height"] - 5})
    expect(maps.first).to_have_attribute("title", re.compile(r"^from .* to .*: \d\.\d\d$"))


@pytest.mark.slow  # 5 to 8 CPU seconds each; the first test walks from all heads to one, values are in test_atlas.py
def test_a_drag_selects_heads_whose_rows_are_listed(address, page):
    visit(page, f"{address}/heads?layout=two+scores")
    painted(page)
    first, last = (page.locator(f'figure.picture [data-head="{name}"]') for name in ("L1H1", "L2H3"))
    expect(last).to_be_visible()
    first.hover(position={"x": 2, "y": 2})  # waits until what stands above the picture has come
    start = first.bounding_box()
    page.mouse.down()
    page.mouse.move(start["x"] + 30, start["y"] + 30)
    size = page.viewport_size
    page.set_viewport_size({"width": size["width"] - 8, "height": size["height"]})  # drawn anew, but not under the drag
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    end = last.bounding_box()
    page.mouse.move(end["x"] + end["width"] - 2, end["y"] + end["height"] - 2)
    page.mouse.up()
    expect(page.get_by_text("6 heads selected", exact=False).first).to_be_visible()
    expect(page.locator("figure.scatter circle.faint")).to_have_count(30)
