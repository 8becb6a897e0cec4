"""What is made ready for a first page: begun once, by a request for a page, and never in its way."""

import json
import os
import subprocess
import sys
import threading

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from core import config
from core.atlas import example
from core.errors import StoreError
from pages.parts.shell import resources, warming
from tests.pages.browsing import PROJECT


@pytest.fixture
def begun(monkeypatch):
    """How often the preparation began."""
    times = []
    monkeypatch.setattr(warming, "_page_requested", threading.Event())
    monkeypatch.setattr(warming, "prepare", lambda: times.append(threading.current_thread().name))
    return times


def client(base=""):
    async def answer(request):
        return PlainTextResponse(request.url.path)

    app = Starlette(routes=[Mount("/", routes=[Route("/{path:path}", answer)])])
    return TestClient(warming.FirstPage(app, base=base))


@pytest.mark.parametrize(
    ("base", "path"),
    [("", "/"), ("", "/heads"), ("", "/heads/"), ("atlas", "/atlas/"), ("atlas", "/atlas"), ("a/b", "/a/b/maps")],
)
def test_the_first_request_for_a_page_begins_it_once(begun, base, path):
    asking = client(base)
    assert [asking.get(path).text for _ in range(3)] == [path] * 3
    assert begun == [warming.PREPARING]


@pytest.mark.parametrize(
    ("base", "path"), [("", "/_stcore/health"), ("", "/static/js/a.js"), ("atlas", "/"), ("", "/headsets")]
)
def test_nothing_else_begins_it(begun, base, path):
    assert client(base).get(path).text == path
    assert begun == []


def test_what_is_made_ready_is_there_for_the_page(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    warming.prepare()
    assert (tmp_path / "atlas.duckdb").exists()
    made = resources.shown(config.ENCODER, example.TEXT, example.PAIR)
    assert resources.shown(config.ENCODER, example.TEXT, example.PAIR) is made
    resources.database.clear()


def test_a_database_that_cannot_be_opened_is_left_to_the_page(monkeypatch):
    asked = []

    def held():
        asked.append("the database")
        raise StoreError("Another process holds the database.")

    monkeypatch.setattr(resources, "open_database", held)
    warming.prepare()
    assert asked == ["the database"]


LOADED = """import json, sys
import app
before = [name for name in HEAVY if name in sys.modules]
app.pages.parts.shell.warming.prepare()
print(json.dumps([before, [name for name in HEAVY if name in sys.modules]]))"""
HEAVY = ("numpy", "pandas", "duckdb", "pyarrow", "torch", "altair", "PIL", "sklearn", "scipy", "spacy", "matplotlib")


@pytest.mark.thorough
def test_a_server_answers_before_anything_heavy_is_imported_and_a_first_page_needs_no_pandas(tmp_path):
    settings = os.environ | {"ATLAS_DB": str(tmp_path / "atlas.duckdb")}
    script = f"HEAVY = {HEAVY}\n{LOADED}"
    command = [sys.executable, "-c", script]
    told = subprocess.run(command, cwd=PROJECT, env=settings, capture_output=True, text=True, check=True)
    before, first_page = json.loads(told.stdout.splitlines()[-1])
    assert before == []
    assert first_page == ["numpy", "duckdb", "pyarrow", "PIL"]


def test_imports_take_short_turns_and_leave_the_usual_ones():
    usual, seen = sys.getswitchinterval(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warming.importlib, "import_module", lambda name: seen.append((name, sys.getswitchinterval())))
        warming.bring_in()
    assert [name for name, _ in seen] == list(warming.FIRST)
    assert [turn for _, turn in seen] == pytest.approx([warming.TURN] * len(seen))
    assert sys.getswitchinterval() == pytest.approx(usual)
