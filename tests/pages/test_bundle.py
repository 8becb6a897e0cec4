"""The files of Streamlit's pages: answered as Streamlit answers them, and nothing else of this machine."""

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_assets_routes

from pages.parts.shell.middleware import Bundle


class Counting:
    """Streamlit's own answers, and how many were asked for."""

    def __init__(self, base: str):
        self._app, self.asked = Starlette(routes=create_streamlit_static_assets_routes(base)), 0

    async def __call__(self, scope, receive, send):
        self.asked += 1
        await self._app(scope, receive, send)


def both(base=""):
    streamlit = Counting(base)
    return TestClient(Bundle(streamlit, base=base)), streamlit


def files(base=""):
    """One file of each kind: a script, a style, a font."""
    known = Bundle(None, base=base)._files
    return [next(path for path in known if path.endswith(kind)) for kind in (".js", ".css", ".woff2")]


@pytest.mark.parametrize("base", ["", "atlas"])
def test_a_file_is_answered_as_streamlit_answers_it(base):
    mine, streamlit = both(base)
    for path in files(base):
        answer, usual = mine.get(path), TestClient(streamlit).get(path)
        assert answer.status_code == usual.status_code == 200
        assert answer.content == usual.content
        for header in ("content-type", "content-length", "cache-control"):
            assert answer.headers[header] == usual.headers[header]
    assert streamlit.asked == len(files(base))  # of which none was handed on


@pytest.mark.parametrize(
    "path", ["/", "/index.html", "/maps", "/static/js/../../index.html", "/static/../../../../etc/passwd", "/static/js"]
)
def test_everything_else_is_handed_on(path):
    mine, streamlit = both()
    mine.get(path)
    assert streamlit.asked >= 1


def test_who_has_a_file_already_or_wants_a_part_asks_streamlit():
    mine, streamlit = both()
    path = files()[0]
    assert mine.get(path, headers={"range": "bytes=0-9"}).status_code == 206
    assert mine.head(path).content == b""
    known = TestClient(streamlit).get(path).headers["etag"]
    assert mine.get(path, headers={"if-none-match": known}).status_code == 304
    assert streamlit.asked == 4
