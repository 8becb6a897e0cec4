"""Every page of the table: opens at its own URL on a cold server, says something, and leaves torch alone."""

import subprocess
import sys

import pytest
from playwright.sync_api import expect
from streamlit.testing.v1 import AppTest

from pages.parts.shell import resources, shell
from tests.pages.browsing import PROJECT, visit

NAMES = [page.name for page in shell.PAGES]
# Of a server each: 8 s a page, so most are tried with the slow tests, as their links are in test_links_browser.py.
ALWAYS = ("maps", "head", "frames", "label", "disable", "jobs")
COLD = [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
TITLES = {page.name: page.title for page in shell.PAGES}


@pytest.fixture
def own_database(tmp_path, monkeypatch):
    """An empty store; jobs helpers and the database are opened anew for each test."""
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    yield
    resources.database.clear()


@pytest.mark.parametrize("name", NAMES)
def test_a_page_opens_with_its_title_and_something_to_do(name, own_database):
    app = AppTest.from_file(shell.__file__, default_timeout=60).run()
    app.switch_page(f"../../{name}.py").run()
    assert not app.exception
    assert not app.error, app.error[0].value
    assert app.title[0].value == TITLES[name]
    inputs = [*app.selectbox, *app.text_input, *app.button, *app.segmented_control, *app.multiselect]
    assert inputs or app.info, "an empty page says what to do next"


def test_the_start_of_the_app_is_the_first_page(own_database):
    app = AppTest.from_file(shell.__file__, default_timeout=60).run()
    assert app.title[0].value == shell.PAGES[0].title


@pytest.mark.parametrize("name", COLD)
@pytest.mark.browser
def test_a_link_to_a_page_opens_it_on_a_server_that_nobody_has_visited(name, fresh_address, page):
    visit(page, f"{fresh_address}/{name}?kept=yes")
    assert page.locator('[data-testid="stMain"] h1').first.inner_text() == TITLES[name]
    expect(page.get_by_role("dialog")).to_have_count(0)  # "Page not found" would be one
    expect(page.get_by_test_id("stSidebarNav")).to_have_count(1 if len(NAMES) > 1 else 0)
    assert "kept=yes" in page.evaluate("location.search")


RUN_A_MODEL = {
    "generation",
    "perturb",
    "values",
    "disable",
}  # what they show first is computed: an example of their own


@pytest.mark.parametrize("name", [name for name in NAMES if name not in RUN_A_MODEL])
def test_a_page_opens_without_torch(name, tmp_path):
    """In a process of its own, because this one has imported everything."""
    script = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        "from pages.parts.shell import shell\n"
        "app = AppTest.from_file(shell.__file__, default_timeout=60)\n"
        f"app.switch_page('../../{name}.py').run()\n"
        "assert app.title, 'the page showed nothing'\n"
        "heavy = {'torch', 'transformers', 'spacy'} & set(sys.modules)\n"
        "assert not heavy, f'{sorted(heavy)} came in with the page'\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "ATLAS_DB": str(tmp_path / "a.duckdb"), "HOME": str(tmp_path)},
    )
    assert found.returncode == 0, found.stderr[-2000:]
