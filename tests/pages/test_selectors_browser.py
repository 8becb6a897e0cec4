"""What page.css and the scripts of components select in Streamlit's pages is listed, and still matches something."""

import re
from pathlib import Path

import pytest
import streamlit

from pages.parts.streamlit_internals import SELECTED
from tests.pages.browsing import PATIENCE, PROJECT, serving, settled

STYLE = PROJECT / "pages" / "parts" / "shell" / "page.css"
NAMED = re.compile(r'data-testid\^?=\\?"([\w-]+)"|\[(data-(?!testid|painted|at|act)[\w-]+)|\.(st[A-Z][\w-]*)')
LISTED = [name for names in SELECTED.values() for name in names]
TRANSIENT = (  # on a page for moments only
    *("stSkeleton", 'data-test-script-state="running"', 'data-test-script-state="rerunRequested"'),
    ':not([data-test-script-state="notRunning"])',
)


def texts():
    files = [file for kind in ("css", "js") for file in (PROJECT / "pages").rglob(f"*.{kind}")]
    return [file.read_text("utf-8") for file in files]


def in_style():
    """The selectors of page.css, without states and pseudo-elements."""
    text = re.sub(r"/\*.*?\*/", "", STYLE.read_text("utf-8"), flags=re.DOTALL)
    heads = re.findall(r"([^{}]+)\{", text)
    listed = [one.strip() for head in heads for one in re.split(r",(?![^(]*\))", head)]
    plain = [re.sub(r"::?(before|after|hover|focus-visible|empty)", "", one) for one in listed]
    return list(dict.fromkeys(one for one in plain if one and not one.startswith(("@", "to"))))


def in_scripts():
    found = [one for text in texts() for one in re.findall(r"querySelector(?:All)?\('([^']+)'\)", text)]
    return sorted({one for one in found if "data-test" in one})


def test_every_name_is_listed_and_every_listed_name_is_used():
    used = {name for text in texts() for pair in NAMED.findall(text) for name in pair if name}
    assert sorted(used) == sorted(LISTED)


def test_every_listed_name_is_in_the_installed_streamlit():
    scripts = (Path(streamlit.__file__).parent / "static").rglob("*.js")
    found, text = set(), ""
    for script in scripts:
        text = script.read_text("utf-8", "replace")
        found |= {name for name in LISTED if name in text}
    assert found == set(LISTED)


@pytest.mark.thorough
@pytest.mark.browser
def test_every_selector_matches_something_on_a_page(tmp_path, page):
    """Also the part of a page that is folded away, and what opens above it."""
    wanted = [one for one in (*in_style(), *in_scripts()) if not any(name in one for name in TRANSIENT)]
    assert len(wanted) > 45
    left = set(wanted)

    def look():
        nonlocal left
        left -= set(page.evaluate("(all) => all.filter((one) => document.querySelector(one))", sorted(left)))

    with serving(tmp_path, script="tests/pages/selected_elements.py") as address:
        page.goto(address)
        page.locator("[data-testid=stVegaLiteChart] :is(canvas, svg)").nth(1).wait_for(timeout=PATIENCE)
        settled(page)
        look()
        page.locator("[data-testid=stDataFrame]").hover()
        look()
        page.locator(".st-key-checkpoint input").click()
        page.get_by_role("listbox").wait_for(timeout=PATIENCE)
        look()
        page.keyboard.press("Escape")
        page.get_by_role("button", name="A popover").click()
        page.get_by_text("Its text").wait_for(timeout=PATIENCE)
        look()
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Open the dialog").click()
        page.get_by_role("dialog").wait_for(timeout=PATIENCE)
        look()
        page.keyboard.press("Escape")
        page.locator('[data-testid="stSidebarHeader"]').hover()
        page.locator('[data-testid="stSidebarCollapseButton"] button').click()
        page.locator('[data-testid="stSidebar"][data-collapsed="true"]').wait_for(state="attached", timeout=PATIENCE)
        look()
    assert left == set()
