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
