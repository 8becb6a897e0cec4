"""Connections that say nothing, or half a request: bounded in number and in time.

uvicorn waits for the rest of a request's head as long as its sender likes, and Streamlit, which makes its settings,
names no limit; so each new connection is watched here.
"""

import asyncio
import gc
from typing import Any

import uvicorn

MOST = 512  # connections at once, websockets among them; a process often has 1,024 files
MOST_WAITING = 128  # of them, those whose request has not come; beyond, the one that waits longest goes
HEAD_SECONDS = 15.0  # for the head of a request, from its first byte or the connection's start


def bound_connections() -> None:
    """Watch the connections of the server that is about to serve this process; those of a test's stay as they are."""
    for settings in gc.get_objects():
        if type(settings) is uvicorn.Config and isinstance(getattr(settings, "http_protocol_class", None), type):
            settings.http_protocol_class = watched(settings.http_protocol_class)  # type: ignore[attr-defined]


def watched(
    protocol: Any, *, most: int = MOST, most_waiting: int = MOST_WAITING, seconds: float = HEAD_SECONDS
) -> type[asyncio.Protocol]:
    """uvicorn's protocol of a connection, its number and its waiting bounded."""
    waiting: dict[Any, asyncio.TimerHandle] = {}  # the one that waits longest first

    def let_go(connection: Any) -> None:
        timer = waiting.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def end(connection: Any) -> None:
        let_go(connection)
        connection.transport.abort()

    class Watched(protocol):  # type: ignore[misc]
        """A connection that ends where its request does not come."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            if len(waiting) >= most_waiting or (waiting and len(self.connections) > most):
                end(next(iter(waiting)))
            elif len(self.connections) > most:
                transport.abort()
                return
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._wait_or_let_go()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            half, _ = getattr(
                getattr(self, "conn", None), "trailing_data", (b"", False)
            )  # h11 has it, httptools has not
            if half:
                self._wait_or_let_go()  # half of the next head came with this request; perhaps nothing more comes

        def connection_lost(self, exc: Exception | None) -> None:
            let_go(self)
            super().connection_lost(exc)

        def _wait_or_let_go(self) -> None:
            idle = self.cycle is None or self.cycle.response_complete
            if self.transport.get_protocol() is not self or not idle:
                let_go(self)
            elif self not in waiting and not self.transport.is_closing():
                self._wait()

        def _wait(self) -> None:
            waiting[self] = self.loop.call_later(seconds, end, self)

    return Watched
