"""Middleware (ASGI) around Streamlit: which routes are open, the headers of all answers, and fast answers for files."""

import logging
import mimetypes
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from core import config
from pages.parts import streamlit_internals
from pages.parts.shell import people
from pages.parts.shell.connections import App, Message, Receive, Send
from pages.parts.streamlit_internals import InternalsError

log = logging.getLogger("atlas")

# ---------------------------------------------------------------- open routes


STRIPPED = (
    "Attention Atlas lives at /{base} here, but was asked for {path}. If you came through a proxy, the proxy took the "
    "prefix away: let it pass the path on as it came (nginx: proxy_pass http://HOST:PORT/{base}/; in a location "
    "/{base}/), or start the app without server.baseUrlPath. docs/how-to/deploy.md has a block that works.\n"
)
NO_WEBSOCKET = (
    "The app does not start because its own websocket was refused, so that no page would open: compare the versions of "
    "Streamlit, Starlette and uvicorn with requirements.txt, and server.allowedHosts with the address of the app."
)


class Closed:
    """Closes unknown routes when the server starts, tries the websocket of a page, and passes everything else on
    (ASGI).

    Streamlit adds routes with new versions, and some answer without sign-in (its metrics, its agent API). Only routes
    that the app knows are open; all others return 404.

    `base` is the path behind a proxy; requests without it get a message, because a proxy that strips the prefix would
    otherwise lead to an empty page. `own` are the routes of the app.
    """

    def __init__(self, app: App, base: str = "", own: Iterable[Any] = ()):
        self._app, self._base, self._own = app, base, list(own)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._start(scope, receive, send)
            return
        if self._base and scope["type"] == "http" and not self._inside(scope["path"]):
            words = STRIPPED.format(base=self._base, path=scope["path"]).encode("utf-8", "replace")
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")]
            await send({"type": "http.response.start", "status": 404, "headers": headers})
            await send({"type": "http.response.body", "body": words})
            return
        await self._app(scope, receive, send)

    async def _start(self, scope: Message, receive: Receive, send: Send) -> None:
        try:
            closed = streamlit_internals.close_routes(scope["app"], self._base, self._own)
        except InternalsError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        log.info("Closed routes: %s", ", ".join(closed) or "none")

        async def started(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete" and not await self._answers(scope):
                message = {"type": "lifespan.startup.failed", "message": NO_WEBSOCKET}
            await send(message)

        await self._app(scope, receive, started)

    async def _answers(self, scope: Message) -> bool:
        try:
            return await streamlit_internals.opens_websocket(self._app, scope, self._base)
        except Exception:
            log.exception("The websocket of a page failed")
            return False

    def _inside(self, path: str) -> bool:
        return path == f"/{self._base}" or path.startswith(f"/{self._base}/")


# ---------------------------------------------------------------- headers of all answers


LOADED = (  # by a page: from the app alone, so that no text in data makes a browser ask another site
    "img-src 'self' data: blob:; media-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'"
)


def headers(ancestors: Sequence[str]) -> dict[bytes, bytes]:
    """Return the headers by name. `ancestors` are origins of other sites that may frame the app."""
    sites = " ".join(["'self'", *ancestors])
    framing = {} if ancestors else {"x-frame-options": "SAMEORIGIN"}  # it cannot name a site
    named = {
        "content-security-policy": f"frame-ancestors {sites}; {LOADED}",
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
        **framing,
    }
    return {name.encode(): value.encode() for name, value in named.items()}


class Headers:
    """Adds the headers to every HTTP answer (ASGI), in addition to the policy of the answer: which sites may frame the
    app, what its pages may load, and what they reveal to other sites.

    If sign-in uses https, every cookie is Secure; Streamlit does not set this.
    """

    def __init__(self, app: App):
        self._app, self._headers = app, headers(config.settings().frame_ancestors)
        self._secure = people.configured().https

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        async def answering(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [*message.get("headers", [])]
                if self._secure:
                    given = [
                        (name, secured(value) if name.lower() == b"set-cookie" else value) for name, value in given
                    ]
                own = {name.lower() for name, _ in given} - {b"content-security-policy"}
                added = [(name, value) for name, value in self._headers.items() if name not in own]
                message = {**message, "headers": [*given, *added]}
            await send(message)

        await self._app(scope, receive, answering if scope["type"] == "http" else send)


def secured(cookie: bytes) -> bytes:
    """Return a Set-Cookie header for HTTPS only."""
    flags = {part.strip().lower() for part in cookie.split(b";")[1:]}
    return cookie if b"secure" in flags else cookie + b"; Secure"


# ---------------------------------------------------------------- files of Streamlit's own pages


FOLDER = "static"  # its files have a hash of their content in their names: they never change
_ASKS_MORE = {b"range", b"if-none-match", b"if-modified-since"}


class Bundle:
    """Answers requests for whole files of Streamlit's own pages, and passes everything else on (ASGI).

    A first page requests about a hundred of them. Streamlit needs 9 ms for each (2.7 ms of work), and a browser
    requests six at a time; here, each takes less than a millisecond. `base` is the path behind a proxy.
    """

    def __init__(self, app: App, base: str = ""):
        self._app = app
        root, self._age = streamlit_internals.static_files()
        found = [file for file in (root / FOLDER).rglob("*") if file.is_file()] if root else []
        start = f"/{base}/".replace("//", "/")
        self._files = {start + file.relative_to(root or Path()).as_posix(): file for file in found}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        file = self._files.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if file is None or any(name in _ASKS_MORE for name, _ in scope["headers"]):
            await self._app(scope, receive, send)
            return
        body = file.read_bytes()  # a millisecond at most: a thread's turn costs more
        await send({"type": "http.response.start", "status": 200, "headers": _file_headers(file, len(body), self._age)})
        await send({"type": "http.response.body", "body": body})


def _file_headers(file: Path, length: int, age: int) -> list[tuple[bytes, bytes]]:
    kind = mimetypes.guess_type(file)[0] or "application/octet-stream"
    kind += "; charset=utf-8" if kind.startswith("text/") else ""
    cache_control = f"public, immutable, max-age={age}"
    headers = {"content-type": kind, "content-length": str(length), "cache-control": cache_control}
    return [(name.encode(), value.encode()) for name, value in headers.items()]
