"""Five hundred jobs and two hundred projects on their pages: each opens, and asks the store a few times."""

import pytest
from streamlit.testing.v1 import AppTest

import pages.parts.shell.shell as shell
from core.labelling.assignment import Rules
from core.labelling.projects import ProjectRecipe, make_project
from core.store import jobs as store
from core.store import projects
from core.store.database import Database, Reader
from core.store.projects import Heading
from pages.parts.shell import resources
from tests.labelling.test_projects import fill
from tests.pages.opening import switched

pytestmark = pytest.mark.slow  # to make so many takes longer than to show them
JOBS, PROJECTS = 500, 200


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    database = resources.database()
    yield database
    resources.database.clear()
    database.close()


def fill_jobs(db: Database, count: int) -> None:
    """Jobs of four units each, every tenth of them failed."""
    with db.write():
        for number in range(count):
            job = store.add_job(db, "tests.jobs.tiny", f"Squares {number}", {"count": 4, "number": number})
            store.add_units(db, job, {"count": 4}, [{"key": str(k), "arguments": {}, "size": 1} for k in range(4)])
            for position in range(4):
                error = "ValueError: unlucky" if number % 10 == 0 else None
                store.store_outcome(db, job, position, store.UnitEnd(rows=[{"k": 1}], error=error, seconds=0.1))
            store.set_state(db, job, "failed" if number % 10 == 0 else "done")


def asked_by(name: str, asked: list[str]) -> int:
    """How many statements the page asked."""
    page = AppTest.from_file(shell.__file__, default_timeout=300)
    page.run()
    asked.clear()
    switched(page, name).run()
    assert not page.exception
    assert not page.error
    return len(asked)


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """Every statement that is read."""
    found: list[str] = []
    before = Reader.execute
    monkeypatch.setattr(Reader, "execute", lambda self, sql, *rest: found.append(sql) or before(self, sql, *rest))
    return found


def test_five_hundred_jobs(db, asked):
    fill_jobs(db, 20)
    few = asked_by("results/jobs", asked)
    fill_jobs(db, JOBS - 20)
    many = asked_by("results/jobs", asked)
    assert any("FROM job LEFT JOIN" in sql for sql in asked)  # the list of them all
    assert many <= few + 20


def test_two_hundred_projects(db, asked):
    fill(db, 12)
    for number in range(5):
        make_project(db, Heading(f"Project {number}", "bert", annotator="ada"), ProjectRecipe(count=4), Rules(k=2))
    few = asked_by("projects", asked)
    counted = [projects.one_project(db, each.project).title for each in projects.projects(db)]
    assert counted == [f"Project {number}" for number in reversed(range(5))]
    for number in range(5, PROJECTS):
        make_project(db, Heading(f"Project {number}", "bert", annotator="ada"), ProjectRecipe(count=4), Rules(k=2))
    many = asked_by("projects", asked)
    assert many <= few  # as many statements for two hundred as for five
