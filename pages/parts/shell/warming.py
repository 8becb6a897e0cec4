"""Background loading of what a first page and a first question need.

The server answers before the libraries of pages are imported (numpy, pandas, DuckDB: half of its start); they are
imported after its first answers. The database and the example maps are opened while the browser reads Streamlit's
scripts. torch and the bundled encoder are loaded once that page is shown.
"""

import importlib
import logging
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from core import config
from core.errors import AtlasError
from pages.parts import streamlit_internals
from pages.parts.shell.page_table import PAGES, VIEWS_ROOM

log = logging.getLogger("atlas")
_allowed, _admitted, _page_requested = threading.Event(), threading.Event(), threading.Event()
PREPARING, IMPORTING = "first page", "imports"
FIRST = ("pages.parts.shell.shell", "PIL.Image", f"{VIEWS_ROOM}.page",
         f"{VIEWS_ROOM}.{PAGES[0].views[0].module}")  # what a first page imports  # fmt: skip
TURN = 0.0005  # seconds after which an import lets the server answer; usually 0.005, for each of a hundred answers
USUAL_TURN = sys.getswitchinterval()


def allow() -> None:
    """Let the next page start loading; called by servers only, not by tests that run scripts."""
    _allowed.set()


def admit() -> None:
    """Record that a page was shown to an authorised user; nothing is loaded before."""
    _admitted.set()


@asynccontextmanager
async def serving(_app: object) -> AsyncIterator[None]:
    """Begin the imports of a first page after the first answers of the server."""
    threading.Thread(target=bring_in, name=IMPORTING, daemon=True).start()
    yield


def bring_in() -> None:
    """Import the libraries of a first page; other threads wait only for the part that they need."""
    with _short_turns():
        for name in FIRST:
            importlib.import_module(name)


@contextmanager
def _short_turns() -> Iterator[None]:
    sys.setswitchinterval(TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(USUAL_TURN)


class FirstPage:
    """Passes every request on; the first request for a page starts its preparation (ASGI). `base` is the path behind a
    proxy."""

    def __init__(self, app: Callable[..., Awaitable[None]], base: str = ""):
        self._app = app
        self._pages = {
            f"/{base}/{name}".replace("//", "/").rstrip("/") for name in ("", *(page.name for page in PAGES))
        }

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not _page_requested.is_set() and scope["path"].rstrip("/") in self._pages:
            _page_requested.set()
            threading.Thread(target=prepare, name=PREPARING, daemon=True).start()
        await self._app(scope, receive, send)


def prepare() -> None:
    """Prepare once what the script of a first page needs; errors appear on the page."""
    streamlit_internals.quiet_thread(PREPARING)  # spinners have no page here, and need none
    bring_in()
    from core.atlas import example  # numpy; behind the server's first answers, as all of a first page
    from pages.parts.shell import resources  # numpy and DuckDB

    streamlit_internals.warm_first_element()
    with suppress(AtlasError):
        resources.open_database()
        resources.shown(config.usual_encoder(), example.TEXT, example.PAIR)


def start() -> None:
    """Start loading, once per process and if allowed; returns at once."""
    if _admitted.is_set() and _allowed.is_set():
        _allowed.clear()
        threading.Thread(target=load, name="warming", daemon=True).start()


async def painted(_request: Request) -> Response:
    """Handle the browser's report that its page is shown (POST painted)."""
    start()
    return Response(status_code=204)


def load() -> None:
    """Open the bundled encoder, capture one map, and load the libraries of charts; errors appear when they are
    needed."""
    from core import capture  # when the first page stands
    from pages.parts.shell import resources  # is there by now

    resources.begin_import()
    try:
        opened = resources.open_checkpoint(config.usual_encoder(), None, "none")
        capture.running.capture(opened, opened.encode("The first run of a model costs more than those after it."))
        resources.end_import()
        importlib.import_module("altair")  # half a second that a page whose maps draw themselves need not wait for
        resources.open_pipeline(None)
    except AtlasError as error:
        log.info("Not everything could be loaded in advance: %s", error)
    finally:
        resources.end_import()
