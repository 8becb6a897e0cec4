"""Fast answers for the files of Streamlit's own pages.

A first page requests about a hundred of them. Streamlit needs 9 ms for each (2.7 ms of work), and a browser requests
six at a time; here, each takes less than a millisecond.
"""

import mimetypes
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from pages.parts import streamlit_internals

Message = MutableMapping[str, Any]
FOLDER = "static"  # its files have a hash of their content in their names: they never change
_ASKS_MORE = {b"range", b"if-none-match", b"if-modified-since"}


class Bundle:
    """Answers requests for whole files of the bundle, and passes everything else on (ASGI). `base` is the path behind a
    proxy."""

    def __init__(self, app: Callable[..., Awaitable[None]], base: str = ""):
        self._app = app
        root, self._age = streamlit_internals.static_files()
        found = [file for file in (root / FOLDER).rglob("*") if file.is_file()] if root else []
        start = f"/{base}/".replace("//", "/")
        self._files = {start + file.relative_to(root or Path()).as_posix(): file for file in found}

    async def __call__(self, scope: Message, receive: Any, send: Callable[[Message], Awaitable[None]]) -> None:
        file = self._files.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if file is None or any(name in _ASKS_MORE for name, _ in scope["headers"]):
            await self._app(scope, receive, send)
            return
        body = file.read_bytes()  # a millisecond at most: a thread's turn costs more
        await send({"type": "http.response.start", "status": 200, "headers": _headers(file, len(body), self._age)})
        await send({"type": "http.response.body", "body": body})


def _headers(file: Path, length: int, age: int) -> list[tuple[bytes, bytes]]:
    kind = mimetypes.guess_type(file)[0] or "application/octet-stream"
    kind += "; charset=utf-8" if kind.startswith("text/") else ""
    cache_control = f"public, immutable, max-age={age}"
    headers = {"content-type": kind, "content-length": str(length), "cache-control": cache_control}
    return [(name.encode(), value.encode()) for name, value in headers.items()]
