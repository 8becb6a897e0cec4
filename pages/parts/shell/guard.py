"""What stands before every request and websocket (ASGI): where it comes from, whose it is, how much and how long.

Streamlit asks for a sign-in inside a page alone; its uploads, and its websockets before that page, ask nobody.
"""

import asyncio
import json
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from streamlit import config as server
from streamlit import runtime

from core.errors import AtlasError
from pages.parts.shell import people, sign_in_cookie
from pages.parts.shell.request_checks import RefusedError, check_source, who_asks

log = logging.getLogger("atlas")
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/[^/]+$")
MOST_SOCKETS, MOST_STRANGERS = 400, 50  # websockets at once; of them, of nobody who signed in
STRANGER_STAYS = 600.0  # seconds that a websocket stays open for nobody: long enough to press "Sign in"
BODY_STARTS, BODY_RATE = 30.0, 4096  # a body may take so many seconds, and one more for each so many bytes
SESSIONS_TOTAL = 4  # uploads of all sessions together: so many times what one session may hold


class Guard:
    """Lets in what comes from this app's own pages, of a bounded number and size, and hands it on.

    files: what is uploaded by session, as Streamlit keeps it; for tests.
    """

    def __init__(self, app: App, files: Callable[[], Mapping[str, Mapping[str, Any]]] | None = None):
        self._app, self._uploads = app, Uploads(files or _uploaded)
        self._sockets: Counter[str] = Counter()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        elif scope["type"] == "http":
            await self._request(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Message, receive: Receive, send: Send) -> None:
        upload = UPLOAD.search(scope["path"]) if scope["method"] not in ("GET", "HEAD", "OPTIONS") else None
        try:
            check_source(Headers(scope=scope))
            if upload is None:
                await Body(self._app).run(scope, receive, send)
                return
            who_asks(Request(scope)).must("annotator", "upload files")
            with self._uploads.room(upload[1], scope):
                await Body(self._app).run(scope, receive, send)
        except RefusedError as error:
            await _answer(send, 403, f"The app takes requests of its own pages only: {error}.")
        except AtlasError as error:
            await _answer(send, 403, str(error))
        except TooMuchError as error:
            await _answer(send, 413, str(error))

    async def _socket(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        stranger = people.sign_in_configured()
        try:
            check_source(headers)
        except RefusedError as error:
            log.warning("A websocket was refused: %s", error)
            await _close(receive, send, 1008)
            return
        if stranger:
            scope = {**scope, "headers": sign_in_cookie.without_strangers(scope["headers"])}
            stranger = not sign_in_cookie.claims_of(Request({**scope, "type": "http"}).cookies)
        if self._sockets.total() >= MOST_SOCKETS or (stranger and self._sockets["stranger"] >= MOST_STRANGERS):
            await _close(receive, send, 1013)
            return
        kind = "stranger" if stranger else "person"
        self._sockets[kind] += 1
        try:
            await self._app(scope, _until(receive, send, STRANGER_STAYS) if stranger else receive, send)
        finally:
            self._sockets[kind] -= 1


# ---------------------------------------------------------------- uploads


class TooMuchError(Exception):
    """An upload beyond what a session, or all of them, may hold."""


class Uploads:
    """How much is uploaded and on its way. files: what is kept, by session and file."""

    def __init__(self, files: Callable[[], Mapping[str, Mapping[str, Any]]]):
        self._files = files
        self._coming: Counter[str] = Counter()  # bytes by session

    @contextmanager
    def room(self, session: str, scope: Message) -> Iterator[None]:
        """Hold room for the body of a request until it is kept. Errors: TooMuchError without room or a length."""
        size = _length(Headers(scope=scope)) if scope["method"] == "PUT" else 0
        most = 2 * (int(server.get_option("server.maxUploadSize")) << 20)
        bytes_held = {
            name: sum(len(file.data) for file in [*files.values()]) for name, files in [*self._files().items()]
        }
        session_bytes = bytes_held.get(session, 0) + self._coming[session] + size
        if session_bytes > most or sum(bytes_held.values()) + self._coming.total() + size > SESSIONS_TOTAL * most:
            raise TooMuchError(
                f"Uploads of a page are {most >> 20} MB at most, all together to {SESSIONS_TOTAL * most >> 20} MB: "
                "take files away, or open the page again."
            )
        self._coming[session] += size
        try:
            yield
        finally:
            self._coming[session] -= size
            self._coming += Counter()  # forgets sessions without any


def _length(headers: Headers) -> int:
    length = headers.get("content-length", "")
    if not (length.isascii() and length.isdigit()):
        raise TooMuchError("An upload says how long it is; this one does not: send it from a page of this app.")
    return int(length[:18])


def _uploaded() -> Mapping[str, Mapping[str, Any]]:
    manager = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    return getattr(manager, "file_storage", {})


# ---------------------------------------------------------------- time


class Body:
    """Reads a request's body for the app as long as it keeps coming; one that stalls is answered 408 and let go."""

    def __init__(self, app: App):
        self._app = app
        self._late = self._answered = self._whole = False
        self._bytes = 0

    async def run(self, scope: Message, receive: Receive, send: Send) -> None:
        """Hand the request on. Errors: those of the app, unless it failed for want of a body."""
        began = asyncio.get_running_loop().time()

        async def coming() -> Message:
            if self._whole:
                return await receive()
            until = began + BODY_STARTS + self._bytes / BODY_RATE
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                self._late = self._whole = True
                return {"type": "http.disconnect"}
            self._bytes += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            return message

        async def answering(message: Message) -> None:
            if self._answered or not self._late:  # what the app says of a request that broke off is not the reason
                self._answered = True
                await send(message)

        try:
            await self._app(scope, coming, answering)
        except Exception:
            if not self._late:
                raise
        if self._late and not self._answered:
            await _answer(send, 408, "The rest of the request did not come: send it again.")


def _until(receive: Receive, send: Send, seconds: float) -> Receive:
    """What a websocket receives, up to its end after so many seconds."""
    until = asyncio.get_running_loop().time() + seconds

    async def received() -> Message:
        try:
            async with asyncio.timeout_at(until):
                return await receive()
        except TimeoutError:
            await send({"type": "websocket.close", "code": 1001})
            return {"type": "websocket.disconnect", "code": 1001}

    return received


# ---------------------------------------------------------------- answers


async def _answer(send: Send, status: int, sentence: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"refused": sentence}).encode()})


async def _close(receive: Receive, send: Send, code: int) -> None:
    await receive()  # websocket.connect
    await send({"type": "websocket.close", "code": code})
