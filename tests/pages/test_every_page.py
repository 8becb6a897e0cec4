"""Every page and view of the table: opens at its own URL, says something, and leaves torch alone."""

import pytest
from playwright.sync_api import expect
from streamlit.testing.v1 import AppTest

from pages.parts.shell import resources, shell
from pages.parts.views.start import DOORS, SENTENCE
from tests.pages import forked
from tests.pages.browsing import visit
from tests.pages.opened import looked_at
from tests.pages.opening import VIEWS, WITH_RESULTS

NAMES = [page.name for page in shell.PAGES]
# Of a server each: 5 s a page, so most are tried with the slow tests, as their links are in test_links_browser.py.
ALWAYS = ("maps",)
COLD = [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
# what they show first is computed: an example of their own
RUN_A_MODEL = {
    "maps/why",
    "maps/generation",
    "maps/norms",
    "heads/one",
    "heads/counterparts",
    "interventions/ablation",
    "interventions/patching",
}
LIGHT = [name for name in VIEWS if name not in RUN_A_MODEL]
ELSEWHERE = {name for name, _ in WITH_RESULTS if name in LIGHT}  # test_results.py opens these by default


def parted(views: list[str]) -> list:
    """Those that another test opens by default are slow here."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in ELSEWHERE else name for name in views]


TITLES = {page.name: page.title for page in shell.PAGES}
OF_VIEWS = ("test_a_view_opens_with_its_title_and_something_to_do", "test_a_view_opens_without_torch")


@pytest.fixture
def own_database(tmp_path, monkeypatch):
    """An empty store; jobs helpers and the database are opened anew for each test."""
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    yield
    resources.database.clear()


@pytest.fixture(scope="module")
def opened(request, tmp_path_factory) -> dict[str, dict]:
    """Views as a link opens them where torch is not; this process has imported everything. Those that tests ask for."""
    asked = {item.callspec.params["name"] for item in request.session.items if item.originalname in OF_VIEWS}
    folder = tmp_path_factory.mktemp("opened")
    return forked.look(folder, [name for name in LIGHT if name in asked])


@pytest.mark.thorough
@pytest.mark.parametrize("name", parted(VIEWS))
def test_a_view_opens_with_its_title_and_something_to_do(name, opened, own_database):
    page = opened[name] if name in opened else looked_at(name)
    assert page["troubles"] == []
    assert page["titles"][0] == TITLES[name.partition("/")[0]]
    assert page["says what to do"], "an empty page says what to do next"


def test_the_start_of_the_app_is_the_first_page_and_leads_to_the_others(own_database):
    app = AppTest.from_file(shell.__file__, default_timeout=60).run()
    assert app.title[0].value == shell.PAGES[0].title
    assert SENTENCE in [one.value.removeprefix("##### ") for one in app.markdown]
    assert [one.label for one in app.text_input] == ["Sentence"]
    assert [one.label for one in app.selectbox] == ["Checkpoint"]
    doors = {link.proto.label.strip("*"): link.proto.page for link in app.main.get("page_link")}
    wanted = {label: target for target, label, _ in DOORS}
    assert len(wanted) == 4
    assert {label: doors[label] for label in wanted} == wanted
    app.switch_page(f"../../{NAMES[-1]}.py").run()
    assert not app.exception
    assert app.title[0].value == TITLES[NAMES[-1]]


@pytest.mark.thorough
@pytest.mark.parametrize("name", COLD)
@pytest.mark.browser
def test_a_link_to_a_page_opens_it_on_a_server_that_nobody_has_visited(name, fresh_address, page):
    visit(page, f"{fresh_address}/{'' if name == NAMES[0] else name}?kept=yes")
    assert page.locator('[data-testid="stMain"] h1').first.inner_text() == TITLES[name]
    expect(page.get_by_role("dialog")).to_have_count(0)  # "Page not found" would be one
    expect(page.locator(".st-key-pages")).to_have_count(1 if len(NAMES) > 1 else 0)
    assert "kept=yes" in page.evaluate("location.search")


@pytest.mark.thorough
@pytest.mark.parametrize("name", parted(LIGHT))
def test_a_view_opens_without_torch(name, opened):
    assert opened[name]["titles"], "the page showed nothing"
    assert opened[name]["heavy"] == [], "came in with the page"
