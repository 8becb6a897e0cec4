"""Headers of all answers: which sites may frame the app, what its pages may load, and what they reveal to other
sites."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from core import config
from pages.parts.shell import people

Message = MutableMapping[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

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
    """Adds the headers to every HTTP answer (ASGI), in addition to the policy of the answer.

    If sign-in uses https, every cookie is Secure; Streamlit does not set this.
    """

    def __init__(self, app: App):
        self._app, self._headers = app, headers(config.settings().frame_ancestors)
        self._secure = people.configured().https

    async def __call__(self, scope: Message, receive: Any, send: Callable[[Message], Awaitable[None]]) -> None:
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
