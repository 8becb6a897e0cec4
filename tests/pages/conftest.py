"""A server and a browser for every test that looks at pages as a user does."""

from collections.abc import Iterator

import pytest

from core import config
from pages.parts.shell import resources
from tests.pages import browsing


@pytest.fixture(scope="session")
def address(tmp_path_factory) -> str:
    """The address of the app, with an empty database of its own; one server for the whole session."""
    with browsing.serving(tmp_path_factory.mktemp("server"), warm=True) as found:
        yield found


@pytest.fixture
def fresh_address(tmp_path) -> str:
    """The address of a server that nobody has visited."""
    with browsing.serving(tmp_path) as found:
        yield found


@pytest.fixture(scope="package", autouse=True)
def own_database(tmp_path_factory) -> Iterator[None]:
    """Pages that a test opens without `db` have a database of this process: another process may hold the default."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_DB", str(tmp_path_factory.mktemp("pages") / "atlas.duckdb"))
        yield


@pytest.fixture(autouse=True)
def record(request, tmp_path, monkeypatch) -> None:
    """Pages of a test see its own results alone; with the marker `shipped` also those that ship, as users do."""
    if request.node.get_closest_marker("shipped") is None:
        monkeypatch.setattr(config, "RECORD", tmp_path / "no-record")


@pytest.fixture
def db(tmp_path, monkeypatch):
    """An empty database of the test's own, which the pages have open."""
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    yield resources.database()
    resources.database.clear()
