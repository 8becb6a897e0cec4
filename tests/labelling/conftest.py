"""A database with maps to label, for the tests of projects."""

import pytest

from core.store.database import Database
from tests.labelling.test_projects import fill


@pytest.fixture
def map_count():
    """How many maps `db` has; a file of tests may say another number."""
    return 24


@pytest.fixture
def db(tmp_path, map_count):
    with Database(tmp_path / "atlas.duckdb") as database:
        fill(database, map_count)
        yield database
