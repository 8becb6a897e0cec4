"""Every page in a real browser: axe finds nothing serious, whatever Streamlit has drawn anew."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from pages.parts.shell import shell
from tests.pages.browsing import PROJECT, named, visit

AXE = PROJECT / "tests" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.mark.browser
def test_the_sidebar_is_lists_again_once_it_has_been_drawn_anew(page, address):
    visit(page, f"{address}/findings")
    sections = page.locator('[data-testid="stSidebarNavItems"][role="presentation"] > [role="list"]')
    expect(sections).not_to_have_count(0)
    count = sections.count()
    page.evaluate(
        """() => {
      const list = document.querySelector('[data-testid="stSidebarNavItems"]'), anew = list.cloneNode(true);
      for (const part of [anew, ...anew.children]) part.removeAttribute('role');
      list.replaceWith(anew);
    }"""
    )
    expect(sections).to_have_count(count)


@pytest.mark.slow  # a minute: every page in both themes; the maps page alone is looked at in test_maps_browser
@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", [page.name for page in shell.PAGES])
def test_axe_finds_nothing_serious_on_any_page(browser, address, name, theme):
    if not Path(AXE).is_file():
        pytest.skip("axe-core is not installed: npm install --prefix tests")
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    visit(page, f"{address}/{name}")
    named(page)
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"]][:4])
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
    ]
    context.close()
    assert not serious
