"""Every view in a real browser: axe finds nothing serious, the console stays empty, and it fits its window."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import TimeoutError, expect

from pages.parts.shell import shell
from tests.pages.browsing import PROJECT, named, serving, settled, visit
from tests.pages.opening import VIEWS, address_of

LOOKS = os.environ.get("LOOKS")  # a folder that pictures of every view go to
WIDER = """() => [document.documentElement, document.querySelector('[data-testid=stMain]')]
.some((box) => box.scrollWidth > box.clientWidth + 1)"""
FOLLOWS = 5000  # milliseconds that what is drawn has to follow the window
TALLEST = 5000  # pixels of a picture
CUT = """() => [...document.querySelectorAll('[data-testid=stColumn] [data-testid=stVegaLiteChart]')]
.filter((chart) => {
  const drawn = chart.querySelector('canvas, svg'), column = chart.closest('[data-testid=stColumn]');
  return drawn && drawn.getBoundingClientRect().right > column.getBoundingClientRect().right + 1;
}).map((chart) => chart.textContent.slice(0, 60))"""
# what stands behind a name and its colon may be cut: it is read in the list
NAMES_CUT = """() => [...document.querySelectorAll('[data-testid=stMain] *, [data-testid=stSidebar] *')]
.filter((box) => {
  const style = getComputedStyle(box), hides = ['hidden', 'clip'].includes(style.overflowX);
  const own = [...box.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  const cuts = hides && (own || style.textOverflow === 'ellipsis') && box.textContent.trim();
  const field = box.tagName === 'INPUT' && box.type === 'text';
  return (cuts || field) && box.clientWidth > 4 && box.scrollWidth > box.clientWidth + 1;
}).map((box) => (box.value || box.textContent).trim()).filter((text) => !text.includes(': '))"""
PAINTED = """() => [...document.querySelectorAll('[data-testid=stVegaLiteChart]')]
.every((chart) => chart.querySelector('canvas, svg'))"""
AXE = PROJECT / "tests" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.mark.thorough
@pytest.mark.browser
def test_the_sidebar_has_the_eleven_pages_and_fits_a_small_screen(page, address):
    page.set_viewport_size({"width": 1280, "height": 768})
    visit(page, f"{address}/results")
    links = page.locator(".st-key-pages a")
    expect(links).to_contain_text([one.title for one in shell.PAGES])
    expect(links.last).to_be_in_viewport()


@pytest.fixture(scope="module")
def recorded_address(tmp_path_factory):
    """The address of an app with the results that ship, as users open it."""
    with serving(tmp_path_factory.mktemp("recorded"), ATLAS_RECORD="") as found:
        yield found


@pytest.mark.slow  # ten minutes: every view, both themes, three widths; maps also in test_maps_browser
@pytest.mark.browser
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_in_both_themes_and_three_widths_has_no_serious_fault(browser, recorded_address, name):
    """axe finds nothing serious, the console is empty, nothing is wider than the window, no picture than its
    column, no name than its field."""
    if not Path(AXE).is_file():
        pytest.skip("axe-core is not installed: npm install --prefix tests")
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, color_scheme="light", reduced_motion="reduce"
    )
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if is_fault(said) else None)
    visit(page, f"{recorded_address}/{address_of(name)}")
    named(page)
    page.add_script_tag(path=AXE)
    found = []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width in (1440, 1280, 800):
            page.set_viewport_size({"width": width, "height": 900})
            settled(page)
            page.wait_for_function("!document.querySelector('[data-testid=stSkeleton]')")
            with suppress(TimeoutError):  # charts follow the window some frames later; what stays is a fault
                page.wait_for_function(f"!({WIDER})() && !({CUT})().length", timeout=FOLLOWS)
            if LOOKS:
                pictured(page, Path(LOOKS) / f"{name.replace('/', '-')}-{theme}-{width}.png")
            if page.evaluate(WIDER):
                found.append((theme, width, "wider than the window"))
            found += [(theme, width, "cut by its column", text) for text in page.evaluate(CUT)]
            found += [(theme, width, "a name cut", text) for text in page.evaluate(NAMES_CUT)]
        found += [(theme, *fault) for fault in serious_faults(page)]
    context.close()
    assert not found
    assert not errors


def pictured(page, file: Path) -> None:
    """A picture of the whole page, however far it scrolls, and the window as it was."""
    window = page.viewport_size
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({**window, "height": min(max(window["height"], height), TALLEST)})
    settled(page)
    page.wait_for_function(PAINTED)
    page.screenshot(path=file)
    page.set_viewport_size(window)


def is_fault(said) -> bool:
    """Whether the console says of an error, but that Streamlit first asks for its server below the page's own path."""
    return said.type == "error" and "/_stcore/" not in said.location["url"]


def serious_faults(page) -> list[tuple[str, list[str]]]:
    """What axe calls serious or critical on the page as it stands."""
    violations = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]][:4])
        for one in violations
        if one["impact"] in {"serious", "critical"}
    ]


@pytest.mark.slow  # 4 CPU seconds; what the buttons write is in tests/drawing/test_csv.py
@pytest.mark.browser
def test_a_table_offers_no_csv_that_a_spreadsheet_would_run(page, address):
    """Streamlit's own export leaves formulas as they are; the buttons below a result escape them."""
    visit(page, f"{address}/heads")
    page.get_by_text("Scores and their sources").first.click()
    page.get_by_test_id("stDataFrame").first.hover()
    toolbar = page.get_by_test_id("stElementToolbar").first
    expect(toolbar.locator('[aria-label^="Search"]')).to_be_visible()
    expect(toolbar.locator('[aria-label^="Download as CSV"]')).to_have_count(1)
    expect(toolbar.locator('[aria-label^="Download as CSV"]')).to_be_hidden()
