import pytest

from core.jobs.api import runner
from core.jobs.executors import JobPlacement
from core.store.database import Database


@pytest.fixture
def db(tmp_path):
    database = Database(tmp_path / "atlas.duckdb")
    keeper = runner(database, JobPlacement(workers=2))
    yield database
    keeper.close()
    database.close()


@pytest.fixture
def folder(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    return marks
