"""What a first question needs is loaded in the background once the first page stands: torch, the bundled encoder.

The first page itself needs none of it, so it comes at once; whoever presses Enter seconds later does not wait either.
"""

import importlib
import logging
import threading

from starlette.requests import Request
from starlette.responses import Response

from core import capture, config
from core.errors import AtlasError
from pages.parts.shell import loading, resources

log = logging.getLogger("atlas")
_allowed, _admitted = threading.Event(), threading.Event()


def allow() -> None:
    """Let the next page start it: only a server does (tests of pages run scripts without one)."""
    _allowed.set()


def admit() -> None:
    """Somebody who may use the app was shown a page; before that nothing is loaded for anybody."""
    _admitted.set()


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
