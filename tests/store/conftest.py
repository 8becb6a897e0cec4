import pytest

from core.store.database import Database


@pytest.fixture
def db(tmp_path):
    database = Database(tmp_path / "atlas.duckdb")
    yield database
    database.close()
