"""Doors of the server that nobody here needs: Streamlit's metrics answer without sign-in, so they answer nobody."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Sent = Callable[[Message], Awaitable[None]]
CLOSED = "/_stcore/metrics"


class Closed:
    """Answers 404 where a door is closed and hands everything else on (ASGI)."""

    def __init__(self, app: Callable[..., Awaitable[None]]):
        self._app = app

    async def __call__(self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Sent) -> None:
        if scope["type"] == "http" and CLOSED in scope["path"]:
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._app(scope, receive, send)
