"""The maps page in a real browser: what a user types, sees, reads and downloads."""

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from core.drawing import theme
from tests.capture.conftest import tiny
from tests.pages.browsing import PATIENCE, PROJECT, named, painted, settled, visit
from tests.pages.test_guided_path import next_token_head

pytestmark = pytest.mark.browser
AXE = PROJECT / "tests" / "node_modules" / "axe-core" / "axe.min.js"
SVG = "{http://www.w3.org/2000/svg}"
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
    """Instead of the pair that the page opens with, whose second sentence goes with its first."""
    grid = painted(page)
    pair = grid.get_attribute("data-painted")
    second, box = page.get_by_label("Second sentence"), page.get_by_label("Sentence", exact=True)
    expect(second).not_to_have_value("")
    box.fill(text)
    box.press("Enter")
    changed(page, grid, pair)
    expect(second).to_have_value("")


def changed(page, grid, seen: str | None) -> str:
    """Wait until the grid has painted something else; returns what."""
    expect(grid).not_to_have_attribute("data-painted", seen or "")
    return grid.get_attribute("data-painted")


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


@pytest.mark.thorough
def test_a_typed_sentence_shows_every_head_and_hover_reads_the_weight_that_core_computed(page, address, encoder_maps):
    visit(page, f"{address}/maps")
    type_sentence(page, SENTENCE)
    grid = painted(page)
    expect(grid.get_by_role("gridcell")).to_have_count(36)
    page.wait_for_function("text => location.search.includes(text)", arg="keys+to+the+old")
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


@pytest.mark.slow  # 4 to 8 CPU seconds; a sentence's grid and hover, and Back and Forward, are walked by default
def test_a_click_enlarges_the_head_under_the_pointer_and_arrows_walk_on(page, address):
    visit(page, f"{address}/maps?text={SENTENCE}")
    grid = painted(page)
    box = grid.locator("canvas.all").bounding_box()
    page.mouse.click(box["x"] + 40, box["y"] + 30)
    expect(grid).to_have_attribute("data-head", "L1H1")
    assert grid.locator("canvas.all").bounding_box() == box  # the map that was clicked stays under the pointer
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(grid).to_have_attribute("data-head", "L2H2")
    page.keyboard.press("Escape")
    expect(grid).to_have_attribute("data-head", "")


@pytest.mark.slow  # 4 to 8 CPU seconds; a sentence's grid and hover, and Back and Forward, are walked by default
def test_another_sentence_keeps_the_head_and_the_links_below_are_of_it(page, address):
    visit(page, f"{address}/maps?text={SENTENCE}&head=L3H2")
    grid = painted(page)
    before = grid.get_attribute("data-painted")
    box = page.get_by_label("Sentence", exact=True)
    box.fill("The cat sat.")
    box.press("Enter")
    changed(page, grid, before)
    expect(grid).to_have_attribute("data-head", "L3H2")
    expect(page.get_by_role("link", name="All about L3H2")).to_have_attribute("href", re.compile("head=L3H2"))


@pytest.mark.slow  # 4 to 8 CPU seconds; a sentence's grid and hover, and Back and Forward, are walked by default
def test_a_link_reopens_what_was_seen(page, address, browser):
    visit(page, f"{address}/maps?text={SENTENCE}&unit=words")
    grid = painted(page)
    grid.get_by_label("Order by").select_option("previous")
    expect(grid.get_by_label("Show")).to_have_value("highest")  # choosing an order orders
    grid.get_by_label("Show").select_option("highest")
    grid.get_by_label("At least").fill("0.05")
    grid.get_by_role("button", name="Tools").click()
    grid.get_by_label("Colour").select_option("own")
    grid.get_by_label("Go to a head").fill("L2H3")
    grid.get_by_label("Go to a head").press("Enter")
    page.wait_for_function("location.search.includes('head=L2H3')")
    link = page.evaluate("location.href")
    other = browser.new_page()
    visit(other, link)
    again = painted(other)
    expect(again).to_have_attribute("data-head", "L2H3")
    expect(again.get_by_label("Order by")).to_have_value("previous")
    expect(again.get_by_label("Show")).to_have_value("highest")
    expect(again.get_by_label("At least")).to_have_value("0.05")
    expect(again.get_by_label("Colour")).to_have_value("own")
    expect(other.get_by_label("Sentence", exact=True)).to_have_value(SENTENCE)
    other.close()


@pytest.mark.slow  # 4 to 8 CPU seconds; a sentence's grid and hover, and Back and Forward, are walked by default
def test_two_checkpoints_follow_each_other_under_one_set_of_controls(page, address):
    visit(page, f"{address}/maps?text={SENTENCE}&beside=atlas-decoder")
    grid = painted(page)
    expect(grid.locator(".column")).to_have_count(2)
    expect(grid.locator(".note").first).to_contain_text("No difference can be shown")
    grid.locator(".allBox").first.focus()
    page.keyboard.press("L")
    page.keyboard.type("1H2")
    page.keyboard.press("Enter")
    expect(grid.locator("h2")).to_have_text(["L1H2", "L1H2"])
    expect(grid.get_by_role("button", name="Lines")).to_have_count(1)


@pytest.mark.slow  # 4 to 8 CPU seconds; a sentence's grid and hover, and Back and Forward, are walked by default
def test_the_difference_of_two_sentences_is_a_third_picture_with_its_scale(page, address):
    from core.capture.running import capture
    from core.models.opening import open_checkpoint

    encoder = open_checkpoint("atlas-encoder")
    first, second = (capture(encoder, encoder.encode(f"The {animal} sat on the mat.")) for animal in ("cat", "dog"))
    link = "text=The cat sat on the mat.&compare=two sentences&text2=The dog sat on the mat.&head=L3H5"
    visit(page, f"{address}/maps?{link}")
    grid = painted(page)
    expect(grid.locator(".column")).to_have_count(3)
    tops = {round(grid.locator("canvas.all").nth(k).bounding_box()["y"]) for k in range(3)}
    assert len(tops) == 1  # also where one title takes two lines
    third = grid.locator(".column").nth(2)
    expect(third.locator("h3")).to_have_text("The dog sat on the mat. − The cat sat on the mat.")
    over = third.locator("canvas.over")
    box, frame = over.bounding_box(), third.locator(".oneBox").get_attribute("data-frame")
    margin, cell = map(float, frame.split(","))
    page.mouse.move(box["x"] + margin + 3.5 * cell, box["y"] + margin + 1.5 * cell)  # from "the" to "sat"
    expected = float(second.weights[2, 4, 1, 3] - first.weights[2, 4, 1, 3])
    expect(third.locator(".reading")).to_have_attribute("data-weight", re.compile(r"-?0\.\d+"))
    assert float(third.locator(".reading").get_attribute("data-weight")) == pytest.approx(expected, abs=1e-4)
    expect(third.locator(".reading")).to_contain_text("cat" if abs(expected) > 1 else "the")


def picture_has_every_map(picture: Image.Image, maps) -> None:
    """A saved picture of all heads, twice the size of its layout: 6 by 6 maps of 150 pixels with 3 between them, right
    of and below their numbers, above the legend and a caption; the middle of each cell has the ink of its weight."""
    names, numbers, side, step = 26, 16, 150, 153
    assert picture.size == (2 * (names + 6 * step + 12), 2 * (numbers + 6 * step + 2 + 34 + 34))
    pixels = np.asarray(picture.convert("RGB")).astype(int)
    inks = np.array([[int(ink[k : k + 2], 16) for k in (1, 3, 5)] for ink in theme.ranges()["light"]["ramp"]])
    middles = ((np.arange(len(maps)) + 0.5) * 2 * side / len(maps)).astype(int)
    for layer, head in np.ndindex(6, 6):
        drawn = pixels[2 * (numbers + layer * step) + middles][:, 2 * (names + head * step) + middles]
        places = maps.weights[layer, head] * (len(inks) - 1)
        expected = np.stack([np.interp(places, range(len(inks)), inks[:, k]) for k in range(3)], -1)
        assert np.abs(drawn - expected).max() <= 2  # a ramp of 256 steps


@pytest.mark.slow  # 4 to 8 CPU seconds; a sentence's grid and hover, and Back and Forward, are walked by default
def test_pictures_and_weights_are_saved_as_files(page, address, encoder_maps):
    visit(page, f"{address}/maps?text={SENTENCE}&head=L1H1")
    grid = painted(page)
    with page.expect_download() as saved:
        grid.get_by_role("button", name="Tools").click()
        grid.get_by_title("Download the picture of all heads as PNG").click()
    picture_has_every_map(Image.open(saved.value.path()), encoder_maps)
    with page.expect_download() as saved:
        grid.get_by_title("Download this map as SVG").click()
    picture = ElementTree.fromstring(saved.value.path().read_text())  # noqa: S314 - written by the page a moment ago
    words = [text.text for text in picture.iter(f"{SVG}text")]
    assert {"weight", "0", "1", *encoder_maps.tokens} <= set(words)  # the scale and every token
    assert not list(picture.iter(f"{SVG}image"))  # cells are paths, which print sharp at any size
    cells = [len(re.findall("M", path.get("d"))) for path in picture.iter(f"{SVG}path")]
    assert len(cells) > 10
    assert sum(cells) <= len(encoder_maps) ** 2 + 1
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("getComputedStyle(document.querySelector('.stApp')).backgroundColor === 'rgb(20, 23, 28)'")
    with page.expect_download() as dark:
        if not grid.get_by_title("Download this map as SVG").is_visible():
            grid.get_by_role("button", name="Tools").click()
        grid.get_by_title("Download this map as SVG").click()
    assert dark.value.path().read_text() == saved.value.path().read_text()  # on paper, whatever the screen is
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save or pin").click()
        page.get_by_role("button", name="Weights (NPZ)").click()
    stored = np.load(io.BytesIO(saved.value.path().read_bytes()))
    np.testing.assert_allclose(stored["weights"], encoder_maps.weights, atol=1e-6)
    assert tuple(stored["tokens"]) == encoder_maps.tokens


@pytest.mark.slow  # 4 to 8 CPU seconds; a sentence's grid and hover, and Back and Forward, are walked by default
def test_script_in_a_sentence_is_text_everywhere(page, address):
    page.add_init_script("window.ran = 0; window.alert = () => { window.ran += 1; };")
    hostile = "<img src=x onerror=alert(1)> </script><script>alert(2)</script> **bold** [l](javascript:alert(3)) ok"
    visit(page, f"{address}/maps")
    type_sentence(page, hostile)
    grid = painted(page)
    page.wait_for_function("location.search.includes('onerror')")
    grid.locator(".allBox").focus()
    page.keyboard.type("L1H1")
    page.keyboard.press("Enter")
    point_at(page, 1, 1, 1)
    assert grid.locator(".row span").count() > 10
    expect(grid.locator(".row img, .row script, .row a, .seen img")).to_have_count(0)
    with page.expect_download() as saved:
        grid.get_by_role("button", name="Tools").click()
        grid.get_by_title("Download the picture of all heads as SVG").click()
    assert "<script" not in saved.value.path().read_text()
    assert page.evaluate("window.ran") == 0


@pytest.mark.slow  # 4 to 8 CPU seconds; a sentence's grid and hover, and Back and Forward, are walked by default
def test_letters_typed_in_the_grid_do_not_reach_streamlit(page, address):
    visit(page, f"{address}/maps?text={SENTENCE}")
    painted(page).locator(".allBox").focus()
    page.keyboard.press("c")
    page.keyboard.press("r")
    settled(page)
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.slow  # 4 to 8 CPU seconds; a sentence's grid and hover, and Back and Forward, are walked by default
def test_a_hundred_and_twenty_eight_tokens_are_read_by_pointing(page, address):
    words = " ".join(f"word{k}" for k in range(200))
    visit(page, f"{address}/maps?text={words}&head=L1H1")
    painted(page)
    assert re.search(r"longer than 128 tokens.*\d+ were cut", page.get_by_test_id("stAlert").inner_text(), re.DOTALL)
    point_at(page, 100, 3, 128)
    assert json.loads(page.locator(".row").evaluate("row => JSON.stringify(row.children.length)")) == 128


@pytest.mark.slow  # 4 to 8 CPU seconds; a sentence's grid and hover, and Back and Forward, are walked by default
def test_a_long_prompt_has_a_window_of_exact_weights_below_it(page, address, tmp_path):
    checkpoint = tiny("gpt2")  # 1,024 positions
    checkpoint.model.save_pretrained(tmp_path)
    checkpoint.tokenizer.save_pretrained(tmp_path)
    visit(page, f"{address}/maps?checkpoint={tmp_path}&text={'the old dog ran ' * 60}")
    painted(page)
    note = painted(page, 1).locator(".note").first
    expect(note).to_contain_text("L1H1, queries 1 to 64, keys 1 to 64: exact weights")
    page.get_by_label("Queries from").fill("101")
    page.get_by_label("Queries from").press("Enter")
    expect(note).to_contain_text("queries 101 to 164, keys 1 to 64: exact weights")
    over = page.locator("canvas.over").nth(1)
    over.scroll_into_view_if_needed()
    box, frame = over.bounding_box(), over.evaluate("canvas => canvas.parentElement.dataset.frame")
    margin, cell = map(float, frame.split(","))
    page.mouse.move(box["x"] + margin + 2.5 * cell, box["y"] + margin + 3.5 * cell)
    expect(page.locator(".reading").nth(1)).to_contain_text(re.compile(r"from “.*” \(104\) to “.*” \(3\): 0\.\d{4}"))
    expect(page.get_by_test_id("stAlert")).to_have_count(0)
    expect(page.get_by_test_id("stException")).to_have_count(0)


@pytest.mark.thorough
def test_the_page_opens_full_and_on_one_screen(page, fresh_address):
    page.set_viewport_size({"width": 1280, "height": 800})
    visit(page, f"{fresh_address}/maps")
    grid = painted(page)
    expect(grid).to_have_attribute("data-head", "L2H2")
    expect(grid.locator(".seen")).to_contain_text("L2H2 attends to the next token")
    expect(page.get_by_label("Tokens").or_(page.get_by_test_id("stButtonGroup")).first).to_be_visible()
    for part in ("canvas.all", "canvas.oneMap"):
        box = grid.locator(part).bounding_box()
        assert box["y"] > 0
        assert box["y"] + box["height"] <= 800
    assert page.evaluate("document.querySelector('[data-testid=stMain] h1').getBoundingClientRect().top") <= 24


@pytest.mark.slow  # 4 CPU seconds a size; the page in its usual window is walked by default
@pytest.mark.parametrize(
    ("width", "height"),
    [
        pytest.param(800, 800, id="800 px"),
        pytest.param(853, 533, id="150 % of 1280 x 800"),  # the lowest
    ],
)
def test_in_a_narrow_window_the_sidebar_gives_way_and_maps_are_seen_first(page, address, width, height):
    page.set_viewport_size({"width": width, "height": height})
    visit(page, f"{address}/maps")
    grid = painted(page)
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    box = grid.locator("canvas.all").bounding_box()
    assert box["y"] + box["height"] / 2 < height
    page.get_by_test_id("stExpandSidebarButton").click()
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "false")


@pytest.mark.slow  # 5 CPU seconds; test_links_browser.py goes back on this page by default
def test_back_and_forward_restore_sentence_head_and_view(page, address):
    visit(page, f"{address}/maps?text={SENTENCE}")
    grid = painted(page)
    grid.locator(".allBox").focus()
    expect(grid).to_have_attribute("data-head", "L2H5")
    page.keyboard.press("ArrowDown")
    expect(page).to_have_url(re.compile("head=L3H5"))
    grid.get_by_role("button", name="Lines").click()
    expect(page).to_have_url(re.compile("look=lines"))
    box = page.get_by_label("Sentence", exact=True)
    box.fill("The cat sat.")
    box.press("Enter")
    expect(page).to_have_url(re.compile("cat"))
    page.go_back()
    expect(box).to_have_value(SENTENCE)
    expect(grid.get_by_role("button", name="Lines")).to_have_attribute("aria-pressed", "true")
    page.go_back()
    expect(grid.get_by_role("button", name="Matrix")).to_have_attribute("aria-pressed", "true")
    expect(grid).to_have_attribute("data-head", "L3H5")
    page.go_back()
    expect(grid).to_have_attribute("data-head", "L2H5")
    page.go_forward()
    expect(grid).to_have_attribute("data-head", "L3H5")
    expect(page).to_have_url(re.compile("head=L3H5"))


@contextmanager
def hearing_nothing(page):
    """What the server says waits: a line so slow that the page does not know yet that the script runs."""
    connection = page.connection_under_test
    connection["held"] = []
    yield
    held, connection["held"] = connection["held"], None
    for message in held:
        connection["browser"].send(message)


def slow_line(page) -> None:
    """Put the page's socket where `hearing_nothing` reaches it; before the page is opened."""
    page.connection_under_test = {"held": None, "browser": None}

    def connect(browser):
        server, connection = browser.connect_to_server(), page.connection_under_test
        connection["browser"] = browser
        server.on_message(
            lambda message: browser.send(message) if connection["held"] is None else connection["held"].append(message)
        )

    page.route_web_socket(re.compile("_stcore/stream"), connect)


@pytest.mark.slow  # 9 CPU seconds; what an interrupted Back leaves is tested without a browser in test_context.py
@pytest.mark.parametrize("acts", [False, True], ids=["nothing else", "another head at once"])
def test_back_is_kept_where_the_page_hears_late_that_the_script_runs(page, address, acts):
    """What the workbench tells by itself, or a click, took the fields' values of before along and undid Back."""
    slow_line(page)
    visit(page, f"{address}/maps?text={SENTENCE}&head=L3H5")
    grid = painted(page)
    box = page.get_by_label("Sentence", exact=True)
    box.fill("The cat sat.")
    box.press("Enter")
    expect(page).to_have_url(re.compile("cat"))
    settled(page)
    with hearing_nothing(page):
        page.go_back()
        if acts:
            grid.locator(".allBox").focus()
            page.keyboard.press("ArrowDown")
        page.wait_for_timeout(600)  # the workbench tells of its view 250 ms after it rests
    expect(box).to_have_value(SENTENCE)
    head = "L4H5" if acts else "L3H5"
    expect(page).to_have_url(re.compile(rf"text=The(%20|\+)keys.*head={head}"))
    settled(page)
    expect(grid).to_have_attribute("data-head", head)
    grid.get_by_role("button", name="Lines").click()
    expect(page).to_have_url(re.compile("look=lines"))
    expect(page).to_have_url(re.compile(rf"text=The(%20|\+)keys.*head={head}"))
    expect(box).to_have_value(SENTENCE)


@pytest.mark.slow  # 4 CPU seconds; what the server says again is tested without a browser in test_bound.py
def test_a_head_chosen_before_the_fields_are_drawn_loses_no_sentence(page, address):
    """The code of Streamlit's fields comes by itself, and on a slow line after the maps."""
    held = []
    page.route(re.compile(r"/static/js/(TextInput|Selectbox)\."), lambda route: held.append(route))
    visit(page, f"{address}/maps?checkpoint=atlas-encoder-sst2&text={SENTENCE}")
    grid = painted(page)
    grid.locator(".allBox").focus()
    head = grid.get_attribute("data-head")
    page.keyboard.press("ArrowUp" if head.startswith("L6") else "ArrowDown")
    expect(page).to_have_url(re.compile("head="))
    settled(page)
    assert held
    for route in held:
        route.continue_()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(SENTENCE)
    grid.get_by_role("button", name="Lines").click()
    expect(page).to_have_url(re.compile("look=lines"))
    expect(page).to_have_url(re.compile("checkpoint=atlas-encoder-sst2.*text=The"))


@pytest.mark.slow  # 4 to 8 CPU seconds; a sentence's grid and hover, and Back and Forward, are walked by default
def test_lines_show_several_heads_and_what_each_word_receives(page, address, encoder_maps):
    visit(page, f"{address}/maps?text={SENTENCE}&head=L2H2")
    grid = painted(page)
    box = grid.locator("canvas.all").bounding_box()
    grid.get_by_role("button", name="Lines").click()
    before = grid.locator("canvas.oneMap").evaluate("canvas => canvas.toDataURL()")
    page.keyboard.down("Control")
    page.mouse.click(box["x"] + 40, box["y"] + box["height"] / 12)  # in the first of six layers
    page.keyboard.up("Control")
    expect(grid.locator(".chosen button")).to_have_text(["L2H2", "L1H1"])
    assert grid.locator("canvas.oneMap").evaluate("canvas => canvas.toDataURL()") != before
    mean = encoder_maps.weights[[1, 0], [1, 0]].mean((0, 1))  # over heads and queries
    most = int(mean.argmax())
    expect(grid.locator(".reading")).to_contain_text(
        f"mean of 2 heads: most “{encoder_maps.tokens[most]}” {mean[most]:.2f}"
    )
    expect(page).to_have_url(re.compile("also=L1H1"))
    grid.locator(".lineBox input").fill("0.95")
    expect(page).to_have_url(re.compile("line=0.95"))


@pytest.mark.slow  # 4 to 8 CPU seconds; a sentence's grid and hover, and Back and Forward, are walked by default
def test_a_list_of_ones_own_is_stepped_through(page, address):
    visit(page, f"{address}/maps")
    grid = painted(page)
    page.get_by_role("button", name="Rows").click()
    page.get_by_role("tab", name="Your own").click()
    page.get_by_label("Sentences", exact=True).fill("One cat.\nTwo dogs.\tThree birds.")
    page.get_by_label("Sentences", exact=True).press("Control+Enter")
    settled(page)
    page.get_by_role("button", name="Browse these examples").click()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value("One cat.")
    expect(page.get_by_text("1 of 2")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value("Two dogs.")
    expect(page.get_by_label("Second sentence")).to_have_value("Three birds.")
    expect(grid.locator(".seen")).not_to_be_empty()


@pytest.mark.slow  # 4 to 8 CPU seconds; a sentence's grid and hover, and Back and Forward, are walked by default
def test_a_screen_reader_hears_the_chosen_head(page, address):
    visit(page, f"{address}/maps?text={SENTENCE}&score=previous")
    grid = painted(page)
    box = grid.get_by_role("grid")
    box.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(grid.get_by_role("gridcell", selected=True)).to_have_count(1)
    chosen = grid.get_by_role("gridcell", selected=True)
    expect(chosen).to_have_attribute("aria-label", re.compile(r"Layer 2, head 5, to previous [01]\.\d\d"))
    expect(box).to_have_attribute("aria-activedescendant", chosen.get_attribute("id"))
    assert box.evaluate("element => getComputedStyle(element).outlineWidth") == "2px"


@pytest.mark.slow  # with those of the other pages
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, address, theme):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm install --prefix tests")
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    visit(page, f"{address}/maps?look=lines&also=L1H2")
    painted(page)
    named(page)
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"]][:6])
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
    ]
    context.close()
    assert not serious


@pytest.mark.slow  # 5 CPU seconds; the path's steps are walked without a browser by default
def test_the_guided_path_goes_on_after_a_reload_and_from_another_page(page, address):
    best, _ = next_token_head()
    visit(page, f"{address}/?view=path")
    field = page.get_by_label("Head that attends most to the next token")
    field.fill(best)
    field.press("Enter")
    expect(page.get_by_text("1 of 4 steps done")).to_be_visible()
    for again in (
        page.reload,
        lambda: visit(page, f"{address}/results"),
        lambda: page.goto(f"{address}/?view=path"),
    ):
        again()
        settled(page)
    expect(field).to_have_value(best)
    expect(page.get_by_text("1 of 4 steps done")).to_be_visible()


@pytest.fixture(scope="module")
def three_by_four(tmp_path_factory):
    """The folder of a decoder with 3 layers of 4 heads, where the bundled encoder has 6 of 6."""
    folder = tmp_path_factory.mktemp("small") / "three-by-four"
    checkpoint = tiny("gpt2")
    checkpoint.model.save_pretrained(folder)
    checkpoint.tokenizer.save_pretrained(folder)
    return folder


def choose_checkpoint(page, name: str) -> None:
    """Type a name into the context bar, and wait until other maps are painted."""
    grid = painted(page)
    seen = grid.get_attribute("data-painted")
    box = page.get_by_role("combobox", name="Checkpoint")
    box.fill(str(name))
    box.press("Enter")
    changed(page, grid, seen)


@pytest.mark.slow  # 4 to 8 CPU seconds
def test_a_head_stays_the_same_layer_and_head_in_a_model_of_another_shape(page, address, three_by_four):
    visit(page, f"{address}/maps?text={SENTENCE}&head=L2H3")
    grid = painted(page)
    expect(grid.locator("h2")).to_have_text("L2H3")
    choose_checkpoint(page, three_by_four)
    expect(grid.locator("h2")).to_have_text("L2H3")  # by its number in the grid of 6 x 6 it would be L3H1
    expect(grid.locator(".seen")).to_contain_text("L2H3")
    choose_checkpoint(page, "atlas-encoder")
    expect(grid).to_have_attribute("data-head", "L2H3")


@pytest.mark.slow  # 4 to 8 CPU seconds
def test_a_head_that_the_next_model_lacks_is_closed_with_one_message(page, address, three_by_four):
    visit(page, f"{address}/maps?text={SENTENCE}&head=L6H1")
    grid = painted(page)
    expect(grid.locator("h2")).to_have_text("L6H1")
    choose_checkpoint(page, three_by_four)
    expect(grid).to_have_attribute("data-head", "")
    expect(grid.locator(".absent")).to_have_text("L6H1 was closed: these maps are of L1H1 to L3H4. Click one of them.")
    page.wait_for_function("() => !location.search.includes('L6H1')")
    grid.locator(".allBox").focus()
    page.keyboard.press("ArrowRight")
    expect(grid).to_have_attribute("data-head", "L1H1")
    expect(grid.locator(".absent")).to_be_hidden()


@pytest.mark.slow  # 4 to 8 CPU seconds
def test_of_two_models_one_says_that_it_lacks_the_head(page, address, three_by_four):
    visit(page, f"{address}/maps?text={SENTENCE}&beside={three_by_four}&head=L5H6")
    grid = painted(page)
    expect(grid.locator("h2")).to_have_text(["L5H6", "L5H6"])
    expect(grid.locator(".seen").first).to_contain_text("L5H6")
    expect(grid.locator(".seen").last).to_contain_text("has no L5H6: its heads are L1H1 to L3H4.")
    assert "NaN" not in grid.inner_text()


@pytest.mark.slow  # 4 to 8 CPU seconds
def test_what_a_decoder_is_forced_to_is_left_out_of_its_scale_and_its_sentences(page, address, three_by_four):
    """The first token of a decoder sees only itself: a weight of 1 in every map."""
    from core.capture.running import capture
    from core.models.opening import open_checkpoint

    small = open_checkpoint(str(three_by_four))
    maps = capture(small, small.encode("The old dog ran."))
    weights = maps.weights[0, 1].copy()
    assert weights[0, 0] == 1
    weights[0, 0] = 0
    most = np.unravel_index(weights.argmax(), weights.shape)
    visit(page, f"{address}/maps?checkpoint={three_by_four}&text=The old dog ran.&head=L1H2&scale=own")
    grid = painted(page)
    seen = grid.locator(".seen").inner_text()
    if "largest weight from its queries" in seen:
        assert f"“{maps.tokens[most[0]]}” to “{maps.tokens[most[1]]}”: {weights.max():.2f}" in seen
    levels = grid.locator("canvas.oneMap").evaluate(
        """(canvas, [query, key]) => {
            const [margin, cell] = canvas.parentElement.dataset.frame.split(",").map(Number);
            const scale = window.devicePixelRatio;
            const at = (position) => Math.round((margin + (position + 0.5) * cell) * scale);
            return [...canvas.getContext("2d").getImageData(at(key), at(query), 1, 1).data].slice(0, 3);
        }""",
        [int(most[0]), int(most[1])],
    )
    assert levels == [8, 38, 79]  # #08264F, the strongest colour of the light theme


@pytest.mark.slow  # 4 to 8 CPU seconds
def test_a_second_sentence_pasted_at_once_after_the_first_stays_in_its_box(page, address):
    visit(page, f"{address}/maps")
    grid = painted(page)
    first, second = page.get_by_label("Sentence", exact=True), page.get_by_label("Second sentence")
    expect(second).not_to_have_value("")
    first.fill("The old dog sleeps.")
    first.press("Enter")
    second.fill("It dreams of cats.")
    second.press("Enter")
    expect(grid.locator("canvas.all")).to_be_visible()
    page.wait_for_function("() => location.search.includes('dreams')", timeout=PATIENCE)
    settled(page)
    expect(second).to_have_value("It dreams of cats.")
