"""The open routes, and a message for a proxy that is set up wrongly.

Streamlit adds routes with new versions, and some answer without sign-in (its metrics, its agent API). Only routes that
the app knows are open; all others return 404.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from pages.parts import streamlit_internals
from pages.parts.streamlit_internals import InternalsError

log = logging.getLogger("atlas")
Message = MutableMapping[str, Any]
Sent = Callable[[Message], Awaitable[None]]
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

    `base` is the path behind a proxy; requests without it get a message, because a proxy that strips the prefix would
    otherwise lead to an empty page. `own` are the routes of the app.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], base: str = "", own: Iterable[Any] = ()):
        self._app, self._base, self._own = app, base, list(own)

    async def __call__(self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Sent) -> None:
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

    async def _start(self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Sent) -> None:
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
