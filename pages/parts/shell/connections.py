"""Limits on connections and open files of the server, derived from the limit of the process on open files.

uvicorn waits for the headers of a request without a time limit, and Streamlit sets none. This middleware sets limits in
the settings of uvicorn when the server starts, under `streamlit run app.py`, `App.run()` and `uvicorn app:app` alike.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pages.parts import streamlit_internals

try:
    import resource
except ModuleNotFoundError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

log = logging.getLogger("atlas")
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

HEAD_SECONDS = 15.0  # for the head of a request, from its first byte or the connection's start
FILES_A_SESSION = 4  # open files of one page: its websocket, and three of the event loop of its script
CLOSED_SESSIONS = 128  # pages whose browser left, which Streamlit keeps for two minutes with their event loops
RESERVED_FILES = 192 + 3 * CLOSED_SESSIONS  # libraries, the database, model files, pipes of workers; closed pages
MOST_SESSIONS, MOST_REQUESTS = 400, 256  # pages, and connections of single requests, however many files are allowed
BACKLOG = 256  # connections that the system holds until they are accepted, and most accepted in one turn
FALLBACK_FILES = 10_240  # systems without a hard limit take this many (macOS: OPEN_MAX)
OUT_OF_FILES = "socket.accept() out of system resource"  # asyncio's message for EMFILE, ENFILE, ENOBUFS and ENOMEM
LOG_EVERY = 60.0  # seconds between two lines about the same thing


@dataclass(frozen=True)
class Limits:
    """files: open files of the process. connections: of the server at once, including websockets. waiting: connections
    without a request; beyond, the one that has waited longest is closed. sessions: open pages (websockets); strangers:
    those of visitors without sign-in, if sign-in is set up. person, address: open pages of one signed-in person, or of
    one address without sign-in."""

    files: int
    connections: int
    waiting: int
    sessions: int
    strangers: int
    person: int
    address: int


def limits_for(files: int) -> Limits:
    """Return the limits for a process with this many open files."""
    spare = max(0, files - RESERVED_FILES)
    requests = max(8, min(MOST_REQUESTS, spare // 4))
    sessions = max(4, min(MOST_SESSIONS, (spare - requests) // FILES_A_SESSION))
    return Limits(
        files=files,
        connections=sessions + requests,
        waiting=requests // 2,
        sessions=sessions,
        strangers=max(1, sessions // 8),
        person=min(40, max(4, sessions // 5)),
        address=max(1, sessions // 4),
    )


@cache
def limits() -> Limits:
    """Return the limits of this process, after raising its limit on open files to the maximum."""
    return limits_for(raise_file_limit())


def raise_file_limit() -> int:
    """Raise the limit on open files of the process to its hard limit, and return it."""
    if resource is None:
        return FALLBACK_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, FALLBACK_FILES):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # no number, or more than the system takes
            continue
        break
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else FALLBACK_FILES


class BoundedServer:
    """Sets the limits in the settings of uvicorn before it listens, and passes everything on (ASGI).

    A server that does not report its start (`--lifespan off` of uvicorn) has no limits, so all requests are refused.
    """

    def __init__(self, app: App):
        self._app, self._bounded = app, False

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            try:
                bound_server(receive)
            except streamlit_internals.InternalsError as error:
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            self._bounded = True
        if not self._bounded:
            raise RuntimeError(
                "The web server must send the ASGI startup event before the first request; it sent none. Start the app "
                "with `streamlit run app.py`, or without the option `--lifespan off`."
            )
        await self._app(scope, receive, send)


def bound_server(receive: Receive) -> None:
    """Set the limits in the settings of the server that is about to listen. Raises InternalsError."""
    settings, most = streamlit_internals.server_settings(receive), limits()
    streamlit_internals.check_protocol(settings)
    settings.http_protocol_class = streamlit_internals.bounded_protocol(
        settings.http_protocol_class,
        most=most.connections,
        most_waiting=most.waiting,
        seconds=HEAD_SECONDS,
        made=send_at_once,
    )
    settings.backlog = min(settings.backlog, BACKLOG)
    asyncio.get_running_loop().set_exception_handler(FewLines())
    log.info(
        "Limits of the server: %d open files, %d connections, %d of them waiting, %d open pages, %d open pages per "
        "address and %d per person",
        most.files, most.connections, most.waiting, most.sessions, most.address, most.person,
    )  # fmt: skip


class FewLines:
    """Log filter that reduces the tracebacks of asyncio about missing open files to one line per minute."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if context.get("message") != OUT_OF_FILES:
            loop.default_exception_handler(context)
        elif time.monotonic() - self._last > LOG_EVERY:
            self._last = time.monotonic()
            log.error(
                "The server cannot accept connections, usually because the process has too many open files (%s). It "
                "tries again every second. Raise the limit (ulimit -n) or restart the app.",
                context.get("exception"),
            )


def send_at_once(transport: asyncio.BaseTransport) -> None:
    """Set TCP_NODELAY on a connection.

    Streamlit creates its socket without naming TCP as its protocol, so asyncio does not disable Nagle's algorithm, and
    the second packet of every answer waits 40 ms for the browser's delayed acknowledgement.
    """
    connection = transport.get_extra_info("socket")
    if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
