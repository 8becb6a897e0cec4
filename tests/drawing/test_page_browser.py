"""Pages in one file, opened from disk in a real browser: to explore, and without one request."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from core.attention import AttentionMaps
from core.drawing.page import Chart, Grid, GridTabs, MapsSource, Table, Words, html_page, maps_page
from core.drawing.panes import scored_pane
from core.findings.export import result_page
from core.report.records import records_of
from core.report.rendering.html import html_of
from core.report.rendering.words import About
from core.store import runs, shipped_record
from core.store.database import Database
from core.store.rows import from_json
from core.store.runs import Provenance
from tests.drawing.made import random_maps, random_pane
from tests.pages.browsing import until

pytestmark = pytest.mark.browser
EVIL = '<img src=x onerror="window.owned=1"><script>window.owned=1</script>'


@pytest.fixture
def opened(page, tmp_path):
    """Opens a page's text from a file; fails where it asked for anything or broke its own policy."""
    asked, said, shown = [], [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)

    def show(text):
        file = tmp_path / "page.html"
        file.write_text(text, encoding="utf-8")
        shown.append(file.as_uri())
        page.goto(file.as_uri())
        page.locator(".root[data-painted]").first.wait_for()
        return page

    yield show
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
    assert [url for url in asked if url.startswith("file:")] == shown
    assert said == []
    assert page.evaluate("window.owned") is None


DARK = """(canvases) => {
  const [canvas] = canvases.sort((a, b) => b.width * b.height - a.width * a.height);
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let dark = 0;
  for (let k = 0; k < data.length; k += 4) dark += data[k] < 128;
  return (4 * dark) / data.length;
}"""


@pytest.mark.thorough
def test_one_large_weight_does_not_hide_the_others_of_a_long_map_and_the_scale_says_so(opened):
    weights = np.full((2, 2, 64, 64), 0.36 / 32)
    weights[..., ::2] = 0.64 / 32
    weights[..., 5, :] = 0.0
    weights[..., 5, 5] = 1.0  # alone on the scale from 0 to 1, and on one that ends at the map's maximum
    tokens = tuple(f"w{k}" for k in range(64))
    pane = scored_pane("long", AttentionMaps(weights, tokens, (0,) * 64), first=0, separators=[63])
    page = opened(maps_page([pane], MapsSource("long", "text", ""), head="none"))
    expect(page.get_by_label("Colour")).to_have_value("own")
    assert page.locator("canvas").evaluate_all(DARK) > 0.2
    assert "percentile" in page.get_by_label("Colour").get_attribute("title")
    page.get_by_role("button", name="Tools").click()
    page.get_by_label("Colour").select_option("absolute")
    until(lambda: page.locator("canvas").evaluate_all(DARK) < 0.05)


@pytest.mark.thorough
def test_hover_enlarge_and_lines_work_from_a_file_and_script_in_tokens_never_runs(opened):
    maps = random_maps(3, 4, 6)
    maps = AttentionMaps(maps.weights, (EVIL, "the", "cat", "sat", "</script>", "[SEP]"), maps.segments)
    pane = scored_pane(EVIL, maps, first=0, separators=[5])
    page = opened(maps_page([pane], MapsSource(EVIL, EVIL, EVIL), head="L1H2"))
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
        page.get_by_role("button", name="Tools").click()
        page.get_by_role("button", name="SVG").first.click()
    assert b"<path" in open(saved.value.path(), "rb").read()  # noqa: PTH123, SIM115 - a download; cells of few tokens


@pytest.mark.thorough
def test_charts_tables_and_two_grids_share_a_page(opened):
    axes = {"x": {"field": "a", "type": "nominal"}, "y": {"field": "b", "type": "quantitative"}}
    chart = Chart({"mark": "bar", "data": {"values": [{"a": EVIL, "b": 1}]}, "encoding": axes})
    grids = [Grid([random_pane(1, 2, 64)], head="L1H1"), Grid([random_pane(2, 1, 65)], head="L2H1")]
    page = opened(html_page("Two", [Words("A", EVIL), chart, Table(["x"], [[EVIL]]), *grids]))
    expect(page.locator(".chart canvas, .chart svg").first).to_be_visible()
    expect(page.locator(".root[data-painted]")).to_have_count(2)
    expect(page.locator("#grid-4 .root")).to_have_attribute("data-head", "L2H1")
    expect(page.locator("td")).to_have_text(EVIL)
    for grid, is_vector in (("#grid-3", True), ("#grid-4", False)):  # 64 tokens print sharp; 65 would be too many paths
        with page.expect_download() as saved:
            page.locator(grid).get_by_role("button", name="Tools").click()
            page.locator(grid).get_by_title("Download this map as SVG").click()
        picture = saved.value.path().read_text()
        assert ("<path" in picture, "<image" in picture) == (is_vector, not is_vector)


@pytest.mark.slow  # 6 CPU seconds; charts, tables and grids on a page are below
def test_a_results_and_the_reports_file_let_charts_and_heads_be_explored(opened, tmp_path):
    with Database(tmp_path / "atlas.duckdb") as db:
        about = Provenance(checkpoint="atlas-encoder", task=EVIL, split="dev", row_ids=(1, 2))
        run = runs.record_run(db, "statistics", {}, about, title=EVIL)
        runs.store_rows(
            db,
            run,
            [
                {"statistic": EVIL, "layer": layer, "head": head, "value": 0.1 + layer, "low": 0.0, "high": 3.0, "n": 9}
                for layer in range(2)
                for head in range(3)
            ],
        )
        card = result_page(db, run)
    known = shipped_record.one_run(shipped_record.runs("reproduce")["run"].iloc[0])
    about, records = About.of(known | {"options": from_json(known["options"])}), shipped_record.run_rows(known["run"])
    report = html_of(about, records_of(records), GridTabs({EVIL: evil_grid(), "two": evil_grid()}))
    for text in (card, report):
        page = opened(text)
        enlarge_and_hover(page)
        explore(page)


def evil_grid():
    maps = random_maps(2, 3, 5)
    maps = AttentionMaps(maps.weights, (EVIL, "the", "cat", "</script>", "[SEP]"), maps.segments)
    return Grid([scored_pane(EVIL, maps, first=0, separators=[4])], EVIL, head="L1H2", note=EVIL)


def enlarge_and_hover(page):
    """The first chart over the whole window, a mark of it read, and back."""
    button = page.get_by_role("button", name="Enlarge").first
    button.click()
    mark = page.locator(".enlarged .mark-rect.role-mark path").first
    mark.hover()
    expect(page.locator("#vg-tooltip-element")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".enlarged")).to_have_count(0)
    expect(button).to_be_focused()


def explore(page):
    """Another head by keyboard, a weight by pointing, and lines."""
    root = page.locator("div.root")
    for _ in range(3):  # from wherever it opened to the first head
        root.locator(".allBox").press("ArrowUp")
    root.locator(".allBox").press("ArrowDown")
    expect(root).to_have_attribute("data-head", re.compile("^L2H"))
    box = root.locator("canvas.over")
    box.scroll_into_view_if_needed()
    margin, cell = map(float, root.locator(".oneBox").get_attribute("data-frame").split(","))
    box.hover(position={"x": margin + 2.5 * cell, "y": margin + 1.5 * cell})
    expect(root.locator(".reading")).to_contain_text("from “")
    root.get_by_role("button", name="Lines").click()
    expect(root.locator(".reading")).to_contain_text("What each token receives")


@pytest.mark.thorough
def test_layers_of_a_hybrid_without_attention_are_not_drawn_and_cannot_be_chosen(opened):
    maps = random_maps(4, 3, 5)
    weights = maps.weights.copy()
    weights[[0, 2]] = np.nan
    hybrid = AttentionMaps(weights, maps.tokens, maps.segments, attending=(1, 3))
    pane = scored_pane("hybrid", hybrid, first=0, separators=[4])
    page = opened(maps_page([pane], MapsSource("hybrid", "five tokens"), head="L2H3"))
    root, jump = page.locator(".root"), page.get_by_label("Go to a head by name")
    expect(jump).to_have_attribute("placeholder", "L4H3")
    expect(root).to_have_attribute("data-head", "L2H3")
    expect(page.get_by_role("row")).to_have_count(2)
    assert page.get_by_role("gridcell").first.get_attribute("aria-label") == "Layer 2, head 1"
    page.locator(".allBox").press("ArrowRight")
    expect(root).to_have_attribute("data-head", "L4H1")
    expect(page.locator(".seen")).not_to_contain_text("NaN")
    page.locator(".allBox").press("ArrowRight")
    page.locator(".allBox").press("ArrowUp")
    expect(root).to_have_attribute("data-head", "L2H2")
    page.get_by_role("button", name="Tools").click()
    jump.fill("L3H1")
    jump.press("Enter")
    assert jump.evaluate("box => box.validationMessage") == "Heads run from L2H1 to L4H3."
    jump.fill("L4H3")
    jump.press("Enter")
    expect(root).to_have_attribute("data-head", "L4H3")
    page.get_by_label("Order by").select_option("previous")
    expect(root).to_have_attribute("data-head", "L4H3")


def test_a_head_is_ranked_by_the_share_that_its_sentence_names(opened):
    maps = random_maps(2, 2, 6)
    weights = maps.weights.copy()
    for head, share in ((0, 0.9), (1, 0.8)):
        weights[0, head] = (1 - share) / 5
        weights[0, head, :, 0] = share
    pane = scored_pane("first", AttentionMaps(weights, maps.tokens, maps.segments), first=0, separators=[5])
    page = opened(maps_page([pane], MapsSource("first", "six tokens"), head="L1H1"))
    seen = page.locator(".seen")
    expect(seen).to_contain_text("L1H1 attends to the first token: 0.90 of its weight on average")
    expect(seen).to_contain_text("None of the other 3 heads attends to the first token more.")
    page.locator(".allBox").press("ArrowRight")
    expect(seen).to_contain_text("1 of the other 3 heads gives more weight there.")
