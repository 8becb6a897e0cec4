"""Pages in one file, opened from disk in a real browser: to explore, and without one request."""

import pytest
from playwright.sync_api import expect

from core.attention import AttentionMaps
from core.drawing.maps_page import Source, maps_page
from core.drawing.page import Chart, Grid, Table, Words, html_page
from core.drawing.panes import scored_pane
from tests.drawing.made import random_maps, random_pane

pytestmark = pytest.mark.browser
EVIL = '<img src=x onerror="window.owned=1"><script>window.owned=1</script>'


@pytest.fixture
def opened(page, tmp_path):
    """Opens a page's text from a file; fails where it asked for anything or broke its own policy."""
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)

    def show(text):
        file = tmp_path / "page.html"
        file.write_text(text, encoding="utf-8")
        page.goto(file.as_uri())
        page.locator(".root[data-painted]").first.wait_for()
        return page

    yield show
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == 1
    assert said == []
    assert page.evaluate("window.owned") is None


def test_hover_enlarge_and_lines_work_from_a_file_and_script_in_tokens_never_runs(opened):
    maps = random_maps(3, 4, 6)
    maps = AttentionMaps(maps.weights, (EVIL, "the", "cat", "sat", "</script>", "[SEP]"), maps.segments)
    pane = scored_pane(EVIL, maps, first=0, separators=[5])
    page = opened(maps_page([pane], Source(EVIL, EVIL, EVIL), head="L1H2"))
    root = page.locator(".root")
    expect(root).to_have_attribute("data-head", "L1H2")
    page.locator(".allBox").focus()
    page.keyboard.press("ArrowDown")
    expect(root).to_have_attribute("data-head", "L2H2")
    box = page.locator("canvas.over").bounding_box()
    margin, cell = map(float, page.locator(".oneBox").get_attribute("data-frame").split(","))
    page.mouse.move(box["x"] + margin + 2.5 * cell, box["y"] + margin + 1.5 * cell)
    expect(page.locator(".reading")).to_contain_text("from “the” (2) to “cat” (3)")
    read = float(page.locator(".reading").get_attribute("data-weight"))
    assert read == pytest.approx(maps.weights[1, 1, 1, 2], abs=1e-4)
    page.get_by_role("button", name="Lines").click()
    expect(page.locator(".reading")).to_contain_text("What each token receives")
    with page.expect_download() as saved:
        page.get_by_role("button", name="SVG").first.click()
    assert b"<image" in open(saved.value.path(), "rb").read()  # noqa: PTH123, SIM115 - a download


def test_charts_tables_and_two_grids_share_a_page(opened):
    axes = {"x": {"field": "a", "type": "nominal"}, "y": {"field": "b", "type": "quantitative"}}
    chart = Chart({"mark": "bar", "data": {"values": [{"a": EVIL, "b": 1}]}, "encoding": axes})
    grids = [Grid([random_pane(1, 2, 4)], head="L1H1"), Grid([random_pane(2, 2, 5)], head="L2H2")]
    page = opened(html_page("Two", [Words("A", EVIL), chart, Table(["x"], [[EVIL]]), *grids]))
    expect(page.locator(".chart canvas, .chart svg").first).to_be_visible()
    expect(page.locator(".root[data-painted]")).to_have_count(2)
    expect(page.locator("#grid-4 .root")).to_have_attribute("data-head", "L2H2")
    expect(page.locator("td")).to_have_text(EVIL)
