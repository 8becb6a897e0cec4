"""Doors of the server that nobody here needs, and a word for a proxy that leads to none.

Streamlit's metrics answer without sign-in, so they answer nobody.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Sent = Callable[[Message], Awaitable[None]]
CLOSED = "/_stcore/metrics"
STRIPPED = (
    "Attention Atlas lives at /{base} here, but was asked for {path}. If you came through a proxy, the proxy took the "
    "prefix away: let it pass the path on as it came (nginx: proxy_pass http://HOST:PORT/{base}/; in a location "
    "/{base}/), or start the app without server.baseUrlPath. docs/deploy.md has a block that works.\n"
)


class Closed:
    """Answers 404 where a door is closed and hands everything else on (ASGI).

    base: the path that the app lives at behind a proxy, "" for none; what comes without it gets a sentence, because a
    proxy that strips the prefix would otherwise leave whoever set it up with an empty page.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], base: str = ""):
        self._app, self._base = app, base

    async def __call__(self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Sent) -> None:
        if scope["type"] == "http" and CLOSED in scope["path"]:
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        if self._base and scope["type"] == "http" and not self._inside(scope["path"]):
            words = STRIPPED.format(base=self._base, path=scope["path"]).encode("utf-8", "replace")
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")]
            await send({"type": "http.response.start", "status": 404, "headers": headers})
            await send({"type": "http.response.body", "body": words})
            return
        await self._app(scope, receive, send)

    def _inside(self, path: str) -> bool:
        return path == f"/{self._base}" or path.startswith(f"/{self._base}/")
