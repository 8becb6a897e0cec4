"""Checks of every request and websocket (ASGI): origin, user, number, size and time.

Streamlit requires sign-in only inside a page; its uploads and websockets do not require it.
"""

import asyncio
import html
import ipaddress
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers
from starlette.requests import Request

from core import config
from core.errors import AtlasError
from core.store.people import Person
from pages.parts import streamlit_internals
from pages.parts.shell import people, sign_in
from pages.parts.shell.connections import LOG_EVERY, App, Limits, Message, Receive, Send, limits

# ---------------------------------------------------------------- where a request comes from, and who sends it


PORTS = {"http": 80, "https": 443}


class RefusedError(Exception):
    """Error: a request does not come from a page of this app."""


def who_asks(request: Request) -> Person:
    """Return who sent a request from a page of this app. Raises RefusedError for other requests."""
    check_source(request.headers)
    if streamlit_internals.forged(request.headers.get("x-xsrftoken"), request.cookies):
        raise RefusedError("the XSRF token of the request is missing or wrong (reload the page to get a new token)")
    return people.person_of(sign_in.claims_of_request(request) if people.sign_in_configured() else {})


def check_source(headers: Headers) -> None:
    """Raise RefusedError for an unknown host, or the origin of another site.

    Streamlit also accepts origins of other servers on the visitor's machine, and of this machine's addresses.
    """
    origin, host = headers.get("origin"), headers.get("host")
    if not _is_own_host(host):
        raise RefusedError(
            "the request is addressed to a host name that is not allowed (to allow this name, add it to "
            "server.allowedHosts)"
        )
    if origin is not None and st.get_option("server.enableCORS") and _parts(origin) not in _own_origins(host):
        raise RefusedError("the request does not come from this app (a proxy must pass on the host name unchanged)")


def _own_origins(host: str | None) -> set[tuple[str, int | None] | None]:
    """Return host and port of the allowed pages: the address of this request, and configured origins."""
    origins = {_parts(f"{scheme}://{host}") for scheme in PORTS} | {
        _parts(origin.strip()) for origin in st.get_option("server.corsAllowedOrigins")
    }
    if streamlit_internals.is_set("browser.serverAddress"):
        address, port = st.get_option("browser.serverAddress"), st.get_option("browser.serverPort")
        origins |= {_parts(f"{scheme}://{address}") for scheme in PORTS} | {_parts(f"http://{address}:{port}")}
    return origins - {None}


def _parts(origin: str) -> tuple[str, int | None] | None:
    """Return host and port of an origin, or None if it is invalid."""
    try:
        parts = urlsplit(origin)
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return None
    bare = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username)
    return (parts.hostname.lower(), port) if parts.scheme in PORTS and parts.hostname and bare else None


def _is_own_host(host: str | None) -> bool:
    """Return whether the app may be addressed by this host name.

    An app on this machine alone, where everybody is admin, accepts only names of this machine, which prevents DNS
    rebinding.
    """
    if not streamlit_internals.is_host_allowed(host):
        return False
    alone = people.listens_here_only() and not people.sign_in_configured() and not config.settings().visitors
    if st.get_option("server.allowedHosts") or not alone:
        return True
    parts = _parts(f"http://{host}") if host else None
    return parts is not None and (parts[0].endswith(".localhost") or _is_this_machine(parts[0]))


def _is_this_machine(name: str) -> bool:
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


# ---------------------------------------------------------------- the guard


log = logging.getLogger("atlas")

STRANGER_STAYS = 600.0  # seconds that a websocket stays open for nobody: long enough to press "Sign in"
BODY_STARTS, BODY_RATE = 30.0, 4096  # a body may take so many seconds, and one more for each so many bytes
LONGEST_LENGTH = 15  # digits of a Content-Length that is read as a number
TWO_LENGTHS = (  # a proxy may have read the other one, and taken a second request for the body of this one
    "A request must have Content-Length or Transfer-Encoding, not both. Send it from a page of this app."
)
SESSIONS_TOTAL = 4  # uploads of all sessions together: so many times what one session may hold


class Guard:
    """Accepts limited requests from pages of this app, and passes them on.

    `files` are the uploads by session in Streamlit, and `bounds` the limits on open pages; both can be set by tests.
    """

    def __init__(
        self,
        app: App,
        files: Callable[[], Mapping[str, Mapping[str, Any]]] | None = None,
        bounds: Callable[[], Limits] = limits,
    ):
        self._app, self._uploads = app, Uploads(files or streamlit_internals.uploaded_files)
        self._sessions = Sessions(bounds)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        elif scope["type"] == "http":
            await self._request(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Message, receive: Receive, send: Send) -> None:
        reads = scope["method"] in ("GET", "HEAD", "OPTIONS")
        session = None if reads else streamlit_internals.session_of_upload(scope["path"])
        try:
            headers = Headers(scope=scope)
            if "content-length" in headers and "transfer-encoding" in headers:
                await _answer(send, 400, TWO_LENGTHS)  # and the connection ends (RFC 9112, 6.3)
                return
            check_source(headers)
            if session is None:
                if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
                    self._sessions.check(visitor(scope))
                await Body(self._app).run(scope, receive, send)
                return
            who_asks(Request(scope)).must("annotator", "upload files")
            with self._uploads.room(session, scope):
                await Body(self._app).run(scope, receive, send)
        except RefusedError as error:
            await _answer(send, 403, f"The app takes requests of its own pages only: {error}.")
        except AtlasError as error:
            await _answer(send, 403, str(error))
        except TooMuchError as error:
            await _answer(send, 413, str(error))
        except TooManyError as error:
            await _page(send, 503, str(error))

    async def _socket(self, scope: Message, receive: Receive, send: Send) -> None:
        try:
            check_source(Headers(scope=scope))
        except RefusedError as error:
            log.warning("The server refused a websocket connection: %s", error)
            await _close(receive, send, 1008)
            return
        if people.sign_in_configured():
            scope = {**scope, "headers": sign_in.without_strangers(scope["headers"])}
        who = visitor(scope)
        try:
            with self._sessions.place(who):
                await self._app(scope, _until(receive, send, STRANGER_STAYS) if who.stranger else receive, send)
        except TooManyError:
            await _close(receive, send, 1013)


# ---------------------------------------------------------------- how many pages


class TooManyError(Exception):
    """Error: the server, a person or an address has too many open pages."""


class Visitor(NamedTuple):
    """Who opens a page: a signed-in person or an address. `stranger`: not signed in although sign-in is set up."""

    person: str
    address: str
    stranger: bool


def visitor(scope: Message) -> Visitor:
    """Return who sends a request. Behind a proxy that uvicorn trusts (FORWARDED_ALLOW_IPS), the address is that of the
    browser."""
    host = (scope.get("client") or ("", 0))[0]
    try:
        address = ipaddress.ip_address(host)
        if address.version == 6 and address.ipv4_mapped is None and not address.is_loopback:
            host = str(ipaddress.ip_network((address, 64), strict=False))  # one customer has so many addresses
    except ValueError:
        pass
    if not people.sign_in_configured():
        return Visitor("", host, stranger=False)
    claims = sign_in.claims_of(Request({**scope, "type": "http"}).cookies)
    person = str(claims.get("email") or claims.get("sub") or "")
    return Visitor(person, host, stranger=not person)


class Sessions:
    """The open pages by person and address, with their limits (`bounds`)."""

    def __init__(self, bounds: Callable[[], Limits]):
        self._bounds = bounds
        self._open: Counter[str] = Counter()
        self._logged = float("-inf")

    def check(self, who: Visitor) -> None:
        """Raise TooManyError if no further page may be opened."""
        most = self._bounds()
        person, address = f"person {who.person}", f"address {who.address}"
        if self._open["all"] >= most.sessions:
            self._refuse(f"The app has {self._open['all']} pages open, which is the most it can serve.")
        if who.stranger and self._open["strangers"] >= most.strangers:
            self._refuse(f"The app has {most.strangers} pages open without sign-in, which is the most it allows.")
        if who.person and self._open[person] >= most.person:
            self._refuse(f"You have {most.person} pages of this app open, which is the most for one person.", who)
        of_address = max(1, most.strangers // 2) if who.stranger else most.address
        if not who.person and self._open[address] >= of_address:
            self._refuse(
                f"Your address has {of_address} pages of this app open, which is the most for one address.", who
            )

    @contextmanager
    def place(self, who: Visitor) -> Iterator[None]:
        """Count a page while it is open. Raises TooManyError."""
        self.check(who)
        held = ["all", f"person {who.person}" if who.person else f"address {who.address}"]
        held += ["strangers"] if who.stranger else []
        self._open.update(held)
        try:
            yield
        finally:
            self._open.subtract(held)
            self._open += Counter()  # forgets those without any

    def _refuse(self, sentence: str, who: Visitor | None = None) -> None:
        if time.monotonic() - self._logged > LOG_EVERY:
            self._logged = time.monotonic()
            log.warning(
                "The server refused to open a page: %s %s",
                sentence,
                f"Visitor: {who.person or who.address!r}. If this address is a proxy, set FORWARDED_ALLOW_IPS to it."
                if who
                else "",
            )
        raise TooManyError(f"{sentence} Close some of these pages, or try again later.")


# ---------------------------------------------------------------- uploads


class TooMuchError(Exception):
    """Error: an upload exceeds the limit of a session or of all sessions."""


class Uploads:
    """The sizes of stored and running uploads, by session and file."""

    def __init__(self, files: Callable[[], Mapping[str, Mapping[str, Any]]]):
        self._files = files
        self._coming: Counter[str] = Counter()  # bytes by session

    @contextmanager
    def room(self, session: str, scope: Message) -> Iterator[None]:
        """Reserve space for the body of a request within the context. Raises TooMuchError without space or a length."""
        size = _length(Headers(scope=scope)) if scope["method"] == "PUT" else 0
        most = 2 * (int(st.get_option("server.maxUploadSize")) << 20)
        bytes_held = {
            name: sum(len(file.data) for file in [*files.values()]) for name, files in [*self._files().items()]
        }
        session_bytes = bytes_held.get(session, 0) + self._coming[session] + size
        if session_bytes > most or sum(bytes_held.values()) + self._coming.total() + size > SESSIONS_TOTAL * most:
            raise TooMuchError(
                f"Uploaded files must not exceed {most >> 20} MB on one page and {SESSIONS_TOTAL * most >> 20} MB on "
                "all open pages together; this file would exceed one of these limits. Remove other uploaded files, or "
                "reload the page."
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
        raise TooMuchError(
            "An upload must have a Content-Length header with the size of the file in bytes; this one is missing or "
            "not a number. Upload the file from a page of this app."
        )
    digits = length.lstrip("0") or "0"
    if len(digits) > LONGEST_LENGTH:
        raise TooMuchError("This file is larger than the limit for uploads. Upload a smaller file.")
    return int(digits)


# ---------------------------------------------------------------- time


class Body:
    """Reads the body of a request for the app; if it stalls, the answer is 408."""

    def __init__(self, app: App):
        self._app = app
        self._late = self._answered = self._whole = False
        self._bytes = 0

    async def run(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass the request on. Raises the errors of the app, unless the body is missing."""
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
            await _answer(send, 408, "The request was incomplete. Send it again.")


def _until(receive: Receive, send: Send, seconds: float) -> Receive:
    """Receive from a websocket until it ends or after this many seconds."""
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


async def _page(send: Send, status: int, sentence: str) -> None:
    """A sentence for whoever opens a page in a browser."""
    kind = b"text/html; charset=utf-8"
    headers = [(b"content-type", kind), (b"cache-control", b"no-store"), (b"retry-after", b"60")]
    body = f"<!doctype html><title>Attention Atlas</title><p>{html.escape(sentence)}</p>".encode()
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _close(receive: Receive, send: Send, code: int) -> None:
    await receive()  # websocket.connect
    await send({"type": "websocket.close", "code": code})
