"""Every page with odd links: it opens, says one sentence where something is wrong, and changes nothing."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from core.store.database import Database
from pages.parts.shell import resources, shell
from tests.pages.opening import VIEWS, switched
from tests.robustness.doors import contents, one_sentence
from tests.robustness.texts import NAMES, QUERIES, TEXTS

SHOWN_TEXTS = {name: TEXTS[name] for name in ("NUL", "only combining marks", "300,000 characters", "a script", "SQL")}
SHOWN_NAMES = {
    name: NAMES[name] for name in ("5,000 letters", "NUL", "another person's home", "a script", "a folder that is none")
}
OF_TEXTS = {"maps/maps", "maps/generation", "interventions/patching"}
# those of a text and three more; the others, a CPU second each, are with the slow tests, which try all alone
ALWAYS = {"heads/overview", "interventions/ablation", "results/all"} | OF_TEXTS
TRIED = [view if view in ALWAYS else pytest.param(view, marks=pytest.mark.slow) for view in VIEWS]
PATIENCE = 120  # s, on a machine that is busy


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    yield resources.database
    resources.database.clear()


def opened(page: str, query: dict[str, str]) -> AppTest:
    """The page as a link with this query opens it: no other page has run before."""
    app = switched(AppTest.from_file(shell.__file__, default_timeout=PATIENCE), page)
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def fine(app: AppTest) -> None:
    """No traceback, no defect of ours; errors are sentences."""
    assert not app.exception, app.exception[0].value
    for error in app.error:
        one_sentence(error.value.replace("\\", ""))


def together(queries: dict[str, dict[str, str]]) -> list[dict[str, str]]:
    """The same odd values in fewer links: queries join where they name nothing twice.

    A checkpoint that does not open ends a page early, so such a one stays with others of its kind.
    """
    joined: list[dict[str, str]] = []
    for query in queries.values():
        for link in joined:
            if not set(query) & set(link) and ("checkpoint" in query) == ("checkpoint" in link):
                link |= query
                break
        else:
            joined.append(dict(query))
    return joined


def changes_nothing(page: str, queries: list[dict[str, str]], store: Callable[[], Database]) -> None:
    before = None
    for query in queries:
        app = opened(page, query)
        assert app.title, query
        fine(app)
        before = before or contents(store())
    assert contents(store()) == before


def test_links_hold_every_odd_value():
    links = together(QUERIES)
    assert {pair for query in QUERIES.values() for pair in query.items()} == {
        pair for link in links for pair in link.items()
    }
    assert len(links) < len(QUERIES)


@pytest.mark.thorough
@pytest.mark.parametrize("page", TRIED)
def test_odd_links(page, store):
    """Most of the values in one link, and a checkpoint that is none; on pages of a text the rest too."""
    links = together(QUERIES)
    of_checkpoints = next(link for link in links if "checkpoint" in link)
    changes_nothing(page, links if page in OF_TEXTS else [links[0], of_checkpoints], store)


@pytest.mark.slow  # nine links of each page, one oddity a link
@pytest.mark.parametrize("page", VIEWS)
def test_odd_links_one_by_one(page, store):
    changes_nothing(page, list(QUERIES.values()), store)


@pytest.mark.thorough
@pytest.mark.parametrize("name", SHOWN_TEXTS)
def test_odd_texts_on_the_maps_page(store, name):
    app = opened("maps", {})
    app.session_state["text"] = SHOWN_TEXTS[name]
    fine(app.run())


@pytest.mark.thorough
@pytest.mark.parametrize("name", SHOWN_NAMES)
def test_odd_checkpoints_on_the_maps_page(store, name):
    app = opened("maps", {"text": "Hello there.", "checkpoint": SHOWN_NAMES[name]})
    fine(app)
    assert app.error, "a checkpoint that cannot be opened says so"
