"""A server and a browser for every test that looks at pages as a user does."""

import pytest

from tests.pages import browsing


@pytest.fixture(scope="session")
def address(tmp_path_factory) -> str:
    """The address of the app, with an empty database of its own; one server for the whole session."""
    with browsing.serving(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture
def fresh_address(tmp_path) -> str:
    """The address of a server that nobody has visited."""
    with browsing.serving(tmp_path) as found:
        yield found


@pytest.fixture(scope="session")
def browser():
    with browsing.browsing() as found:
        yield found


@pytest.fixture
def page(browser):
    """A new browser window, 1280 x 900; fails the test if the page's scripts threw."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light", accept_downloads=True)
    window = context.new_page()
    errors: list[str] = []
    window.on("pageerror", lambda error: errors.append(str(error)))
    yield window
    context.close()
    assert not errors
