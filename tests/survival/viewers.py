"""Viewers without a screen: sessions of the app over its own websocket, as many browsers elsewhere would hold them.

A browser costs more than the page that it shows, and viewers bring their own machines; twenty of them beside the
server would measure themselves. These send what Streamlit's front end sends (a page's name, a fragment that asks again
by itself) and read everything that comes back.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

PATIENCE = 60.0  # seconds


@dataclass
class Seen:
    """seconds: from asking for a page until its script had finished. errors: exceptions and red boxes, as shown."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


async def messages(socket: ClientConnection) -> AsyncIterator[ForwardMsg]:
    """What the server sends."""
    async for data in socket:
        found = ForwardMsg()
        found.ParseFromString(data)
        yield found


def asking(page: str, query: str, fragment: str = "") -> bytes:
    """The message that runs a page, or one of its fragments by its timer."""
    asked = BackMsg()
    asked.rerun_script.page_name, asked.rerun_script.query_string = page, query
    if fragment:
        asked.rerun_script.fragment_id, asked.rerun_script.is_auto_rerun = fragment, True
    return asked.SerializeToString()


async def again(socket: ClientConnection, page: str, query: str, fragment: str, interval: float) -> None:
    """A fragment that asks by itself, as long as its page is shown."""
    while True:
        await asyncio.sleep(interval)
        await socket.send(asking(page, query, fragment))


def wrong(message: ForwardMsg) -> str | None:
    """What an exception, a red box or a page that is not there says in this message."""
    if message.WhichOneof("type") == "page_not_found":
        return "there is no such page"
    element = message.delta.new_element
    if element.WhichOneof("type") == "exception":
        return element.exception.message
    if element.WhichOneof("type") == "alert" and element.alert.format == Alert.ERROR:
        return element.alert.body
    return None


class Viewer:
    """One session. `visit` opens a page and returns when it stands; its timers run until the next visit."""

    def __init__(self, socket: ClientConnection, seen: Seen) -> None:
        self._socket, self._seen = socket, seen
        self._page, self._query = "", ""
        self._timers: list[asyncio.Task[None]] = []
        self._finished = asyncio.Event()

    async def visit(self, page: str, query: str) -> float:
        """Seconds until the page's script had finished. Errors: TimeoutError."""
        self.stop()
        self._page, self._query = page, query
        self._finished.clear()
        began = time.monotonic()
        await self._socket.send(asking(page, query))
        await asyncio.wait_for(self._finished.wait(), PATIENCE)
        return time.monotonic() - began

    async def listen(self) -> None:
        """Read until the connection ends."""
        async for message in messages(self._socket):
            kind = message.WhichOneof("type")
            if kind == "script_finished" and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                self._finished.set()
            elif kind == "auto_rerun":
                asked = (self._page, self._query, message.auto_rerun.fragment_id, message.auto_rerun.interval)
                self._timers.append(asyncio.create_task(again(self._socket, *asked)))
            elif said := wrong(message):
                self._seen.errors.append(f"{self._page}: {said}")

    def stop(self) -> None:
        """End the timers of the page shown."""
        for timer in self._timers:
            timer.cancel()
        self._timers = []


@asynccontextmanager
async def opened(address: str, seen: Seen) -> AsyncIterator[Viewer]:
    """A session of the app at `address`."""
    place = f"{address.replace('http', 'ws', 1)}/_stcore/stream"
    async with connect(place, subprotocols=["streamlit"], max_size=None) as socket:
        viewer = Viewer(socket, seen)
        listening = asyncio.create_task(viewer.listen())
        yield viewer
        viewer.stop()
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening


async def browse(address: str, number: int, pages: Sequence[str], query: str, visits: int, pause: float) -> Seen:
    """One viewer goes from page to page, one in about `pause` seconds. The first page is not counted."""
    draw, seen = random.Random(number), Seen()  # noqa: S311 - no secret
    async with opened(address, seen) as viewer:
        await viewer.visit("maps", query)
        await asyncio.sleep(pause * draw.random())
        for step in range(visits):
            page = pages[(number + step * (1 + number % 5)) % len(pages)]
            seen.seconds.append(await viewer.visit(page, query))
            await asyncio.sleep(pause * (0.5 + draw.random()))
    return seen


def browse_all(address: str, viewers: int, pages: Sequence[str], query: str, visits: int, pause: float) -> list[Seen]:
    """All viewers at once."""

    async def together() -> list[Seen]:
        each = (browse(address, number, pages, query, visits, pause) for number in range(viewers))
        return await asyncio.gather(*each)

    return asyncio.run(together())
