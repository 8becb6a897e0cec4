"""What a first page and a first question need is made ready in the background, each as soon as somebody waits for it.

A first page's own parts (the database, the example's maps) are opened while its browser reads Streamlit's scripts.
What a first question needs (torch, the bundled encoder) is loaded once that page stands: the page needs none of it, so
it comes at once; whoever presses Enter seconds later does not wait either.
"""

import importlib
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from core import capture, config
from core.atlas import example
from core.errors import AtlasError
from pages.parts.shell import loading, resources
from pages.parts.shell.page_table import PAGES, VIEWS_ROOM

log = logging.getLogger("atlas")
_allowed, _admitted, _asked = threading.Event(), threading.Event(), threading.Event()
PREPARING = "first page"
FIRST = ("streamlit.env_util", "PIL.Image", f"{VIEWS_ROOM}.{PAGES[0].views[0].module}")  # what a first page imports


def allow() -> None:
    """Let the next page start it: only a server does (tests of pages run scripts without one)."""
    _allowed.set()


def admit() -> None:
    """Somebody who may use the app was shown a page; before that nothing is loaded for anybody."""
    _admitted.set()


class FirstPage:
    """Hands every request on; the first for a page begins to make that page ready (ASGI).

    base: the path that the app lives at behind a proxy, "" for none.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], base: str = ""):
        self._app = app
        self._pages = {
            f"/{base}/{name}".replace("//", "/").rstrip("/") for name in ("", *(page.name for page in PAGES))
        }

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not _asked.is_set() and scope["path"].rstrip("/") in self._pages:
            _asked.set()
            threading.Thread(target=prepare, name=PREPARING, daemon=True).start()
        await self._app(scope, receive, send)


def prepare() -> None:
    """Do once what the script of a first page waits for; what fails says so on the page."""
    no_page = logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context")
    no_page.addFilter(lambda record: record.threadName != PREPARING)  # spinners have no page here, and need none
    env_util, *_ = (importlib.import_module(name) for name in FIRST)
    env_util.is_repl()  # asked before the first thing is drawn; reads where every module lies
    with suppress(AtlasError):
        resources.open_database()
        resources.shown(config.ENCODER, example.TEXT, example.PAIR)


def start() -> None:
    """Begin, once a process and where it is allowed; returns at once."""
    if _admitted.is_set() and _allowed.is_set():
        _allowed.clear()
        threading.Thread(target=load, name="warming", daemon=True).start()


async def painted(_request: Request) -> Response:
    """Answers the browser that says its page stands (POST painted)."""
    start()
    return Response(status_code=204)


def load() -> None:
    """Open the bundled encoder, capture once, load what charts and frames need; what fails says so when asked for."""
    loading.begin()
    try:
        opened = resources.open_checkpoint(config.ENCODER, None, "none", resources.stamp(config.ENCODER))
        capture.running.capture(opened, opened.encode("The first run of a model costs more than those after it."))
        loading.end()
        importlib.import_module("altair")  # half a second that a page whose maps draw themselves need not wait for
        resources.open_pipeline(None)
    except AtlasError as error:
        log.info("Nothing was loaded beforehand: %s", error)
    finally:
        loading.end()
