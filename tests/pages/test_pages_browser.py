"""Every page in a real browser: Back and reload restore what was chosen, and axe finds nothing serious."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from pages.parts.frame import shell
from tests.pages.browsing import PROJECT, settled, visit

AXE = PROJECT / "tests" / "node_modules" / "axe-core" / "axe.min.js"
CHOSEN = {  # page: what a link may say of it, and where it shows
    "features": ("inputs=sentences", "Sentences, one a line"),
    "relations": ("inputs=sentences", "Sentences, one a line"),
    "statistics": ("inputs=sentences", "Sentences, one a line"),
    "disable": ("view=Race", "What races"),
    "perturb": ("view=A+task%27s+rows", "Question"),
    "frames": ("view=A+set+of+sentences", "Direction"),
    "patterns": ("class_set=gpt2", "Class set"),
    "shares": ("class_set=gpt2", "Class set"),
    "agreement": ("class_set=gpt2", "Class set"),
    "prune": ("task=rte", "Task"),
}


@pytest.mark.browser
@pytest.mark.parametrize("name", ["features", "disable", "shares"])
def test_a_reload_and_back_restore_what_was_chosen(page, address, name):
    asked, shown = CHOSEN[name]
    visit(page, f"{address}/{name}")
    visit(page, f"{address}/{name}?{asked}")
    expect(page.get_by_text(shown, exact=True).first).to_be_attached()
    page.reload()
    settled(page)
    expect(page.get_by_text(shown, exact=True).first).to_be_attached()
    assert asked in page.evaluate("location.search")
    page.go_back()
    expect(page.locator('[data-testid="stMain"] h1').first).to_be_visible()
    assert asked not in page.evaluate("location.search")


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
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"]][:4])
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
    ]
    context.close()
    assert not serious
