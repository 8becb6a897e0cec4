"""The private names of Streamlit, Starlette and uvicorn that the app relies on. No other module uses any.

Each function has one purpose and names the public feature that would replace it. `check` tests every name on the
installed versions when the app starts. If a name needed for security is missing, InternalsError prevents the start; any
other is one warning. tests/pages/test_streamlit_internals.py has a contract test for each.
"""

import importlib
import json
import logging
import math
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import streamlit as st
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from streamlit import runtime

log = logging.getLogger("atlas")
Message = MutableMapping[str, Any]
TRIED = {"streamlit": "1.67", "starlette": "1.10", "uvicorn": "0.54"}  # the versions in requirements.txt
_SERVER = "streamlit.web.server.starlette."
_CONFIG, _UTIL = _SERVER + "starlette_server_config", _SERVER + "starlette_app_utils"
_AUTH, _SOCKET = _SERVER + "starlette_auth_routes", _SERVER + "starlette_websocket"
_CONTEXT, _STATE = "streamlit.runtime.scriptrunner_utils.script_run_context", "streamlit.runtime.state.session_state"
_SIGN_IN, _FORGERY = "the check of sign-ins", "the check of requests from other sites"
_ROUTES, _LIMIT, _UPLOADS = "the list of open routes", "the limit on connections", "the limit on uploads"


class InternalsError(RuntimeError):
    """Error: a private name needed for security is missing in the installed version of Streamlit, Starlette or
    uvicorn."""

    def __init__(self, what: str, missing: str):
        super().__init__(
            f"The app does not start because {what} relies on {missing}, which the installed package lacks. Install "
            "the package versions in requirements.txt."
        )


def _named(guards: str, module: str, name: str) -> Any:
    """Return a private name. Raises InternalsError if it is missing."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InternalsError(guards, f"{module}.{name}") from error


@cache
def _warn(what: str, missing: str) -> None:
    """Log once that a private name without relevance to security is missing."""
    log.warning("%s, because Streamlit %s has no %s.", what, version("streamlit"), missing)


# ---------------------------------------------------------------- when the app starts


def check() -> None:
    """Test every private name before the app serves requests. Raises InternalsError for a name needed for security.

    An untested version causes one warning.
    """
    for package, known in TRIED.items():
        if version(package).split(".")[:2] != known.split("."):
            log.warning(
                "The app has not been tested with %s %s. It was developed with version %s.",
                package,
                version(package),
                known,
            )
    for contract in GUARDING:
        contract()
    refuse_infinite_numbers()
    went_back()
    drawn("")
    static_files()
    quiet_thread("")


# ---------------------------------------------------------------- server


def server_settings(receive: Any) -> uvicorn.Config:
    """Return the settings of the uvicorn server whose lifespan messages come from `receive`.

    uvicorn reads the protocol class of its connections from them. Streamlit would replace this by an argument of
    `st.App` for settings of uvicorn. Raises InternalsError for another server, or settings without a protocol class.
    """
    settings = getattr(getattr(receive, "__self__", None), "config", None)
    if not (isinstance(settings, uvicorn.Config) and isinstance(getattr(settings, "http_protocol_class", None), type)):
        raise InternalsError(_LIMIT, "uvicorn's Config.http_protocol_class")
    return settings


def bounded_protocol(
    protocol: Any, *, most: int, most_waiting: int, seconds: float, made: Callable[[Any], None]
) -> type[Any]:
    """Return uvicorn's protocol of a connection with limits on the number of connections and the wait for a request.

    `limit_concurrency` of uvicorn answers 503 and keeps the connection, and there is no limit on the time of headers.
    uvicorn would replace this by a setting for both. `made` is called with the transport of each new connection.
    """
    waiting: dict[Any, Any] = {}  # the one that waits longest first

    def let_go(connection: Any) -> None:
        timer = waiting.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def end(connection: Any) -> None:
        let_go(connection)
        connection.transport.abort()

    class Bounded(protocol):  # type: ignore[misc]
        """A connection that is closed if its request does not arrive."""

        def connection_made(self, transport: Any) -> None:
            made(transport)
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
            if not hasattr(self, "conn") or self.conn.trailing_data[0]:  # of h11; httptools does not say what came
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

    return Bounded


def check_protocol(settings: uvicorn.Config) -> None:
    """Raise InternalsError if connections of uvicorn lack what `bounded_protocol` reads, or it has no websockets.

    Requires the running event loop.
    """
    state = _named(_LIMIT, "uvicorn.server", "ServerState")
    protocol: Any = (
        settings.http_protocol_class
    )  # uvicorn types it as any Protocol of asyncio, which takes no arguments
    try:
        connection = protocol(config=settings, server_state=state(), app_state={})
    except TypeError as error:
        raise InternalsError(_LIMIT, "uvicorn's protocol of a connection") from error
    for name in ("connections", "cycle", "loop", "transport", "on_response_complete"):
        if not hasattr(connection, name):
            raise InternalsError(_LIMIT, f"uvicorn's {type(connection).__name__}.{name}")
    if hasattr(connection, "conn") and not hasattr(connection.conn, "trailing_data"):
        raise InternalsError(_LIMIT, "h11's Connection.trailing_data")
    if settings.ws_protocol_class is None:
        raise InternalsError("every page", "a library for websockets in uvicorn")


# ---------------------------------------------------------------- routes

WEBSOCKET, UPLOAD = "/_stcore/stream", "/_stcore/upload_file/{session_id}/{file_id}"
_READ = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN: dict[str, frozenset[str]] = {  # Streamlit's routes that pages need, and their methods; every other one is closed
    WEBSOCKET: frozenset(),
    UPLOAD: frozenset({"PUT", "DELETE", "OPTIONS"}),
    "/_stcore/health": _READ,
    "/_stcore/host-config": _READ,
    "/_stcore/bidi-components/{path:path}": _READ,
    "/media/{file_id:path}": _READ,
    "/auth/login": _READ,
    "/auth/logout": _READ,
    "/oauth2callback": _READ,
    "": frozenset(),  # the mount of the page itself and its scripts
}
_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/[^/]+$")


def session_of_upload(path: str) -> str | None:
    """Return the session of a request that uploads or deletes a file; None for other paths.

    Streamlit would replace this by a hook before an upload.
    """
    found = _UPLOAD.search(path)
    return found[1] if found else None


class _ClosedRoute:
    """A route in place of a closed one: it matches the same requests and returns 404."""

    def __init__(self, route: Any):
        self._route, self.path = route, getattr(route, "path", "")
        self.name = getattr(route, "name", "")

    def matches(self, scope: Message) -> Any:
        return self._route.matches(scope)

    async def handle(self, scope: Message, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
            return
        await Response(status_code=404)(scope, receive, send)


def close_routes(app: Any, base: str, own: Iterable[Any]) -> list[str]:
    """Close every route of a Starlette app that is neither in OPEN nor in `own`, and return the paths.

    `base` is the path of the app. Streamlit would replace this by an option with the routes to serve. Raises
    InternalsError if the app has no routes, or lacks one in OPEN.
    """
    routes = getattr(getattr(app, "router", None), "routes", None)
    if not isinstance(routes, list):
        raise InternalsError(_ROUTES, "Starlette's Router.routes")
    prefix, own_routes = f"/{base}" if base else "", {id(route) for route in own}
    missing, closed = {prefix + path for path in OPEN}, []
    for number, route in enumerate(routes):
        path, methods = str(getattr(route, "path", "")), getattr(route, "methods", None) or frozenset()
        if id(route) in own_routes:
            continue
        known = OPEN.get(path.removeprefix(prefix)) if path.startswith(prefix) and hasattr(route, "path") else None
        if known is not None and methods <= known:
            missing.discard(path)
        elif not isinstance(route, _ClosedRoute):
            routes[number] = _ClosedRoute(route)
            closed.append(path)
    if missing:
        raise InternalsError(_ROUTES, f"Streamlit's route {min(missing) or '/'}")
    rest = Route(f"{prefix}/_stcore/{{rest:path}}", Response(status_code=404))  # the mount answers with the page
    routes.insert(len(routes) - 1, rest)
    return list(dict.fromkeys(closed))


async def opens_websocket(app: Callable[..., Awaitable[None]], scope: Message, base: str) -> bool:
    """Return whether the websocket of a page is accepted, tested within the process.

    `scope` is that of the lifespan. Streamlit would replace this by a health check that covers its websocket.
    """
    hosts = st.get_option("server.allowedHosts") or ["localhost"]
    host = str(hosts[0]).replace("*", "localhost")
    path = (f"/{base}" if base else "") + WEBSOCKET
    headers = [(b"host", host.encode()), (b"origin", f"http://{host}".encode())]
    answers: list[str] = []
    coming = iter([{"type": "websocket.connect"}])

    async def receive() -> Message:
        return next(coming, {"type": "websocket.disconnect", "code": 1000})

    async def send(message: Message) -> None:
        answers.append(message["type"])

    request = {
        **{name: scope[name] for name in ("app", "asgi", "state") if name in scope},
        "type": "websocket",
        "scheme": "ws",
        "http_version": "1.1",
        "method": "GET",
        "query_string": b"",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "headers": headers,
        "subprotocols": [],
        "client": ("127.0.0.1", 0),
        "server": (host, 80),
        "extensions": {},
    }
    await app(request, receive, send)
    return answers[:1] == ["websocket.accept"]


def static_files() -> tuple[Path | None, int]:
    """Return the folder with the files of Streamlit's own pages, and how many seconds a browser may cache them.

    Without it, Streamlit serves them itself, more slowly. Streamlit would replace this by a faster route.
    """
    try:
        folder = _named("", "streamlit.file_util", "get_static_dir")()
        return Path(folder), int(_named("", _CONFIG, "STATIC_ASSET_CACHE_MAX_AGE_SECONDS"))
    except InternalsError:
        _warn("Scripts of pages are answered more slowly", "file_util.get_static_dir or its age in caches")
        return None, 0


# ---------------------------------------------------------------- uploads and addresses


def uploaded_files() -> Mapping[str, Mapping[str, Any]]:
    """Return the uploads by session and file. Streamlit would replace this by a limit on the uploads of a session.

    Raises InternalsError if the store of files has no `file_storage`.
    """
    if not runtime.exists():
        return {}
    files = getattr(runtime.get_instance().uploaded_file_mgr, "file_storage", None)
    if not isinstance(files, Mapping):
        raise InternalsError(_UPLOADS, "MemoryUploadedFileManager.file_storage")
    return files


def refuse_infinite_numbers() -> None:
    """Treat `?field=1e999` like any other invalid number; Streamlit's own check accepts it, and the page fails.

    Streamlit would replace this by catching OverflowError. Raises InternalsError if its function that reads parameters
    is missing.
    """
    session_state = importlib.import_module(_STATE)
    parse = _named("the check of numbers in addresses", _STATE, "parse_url_param")
    if hasattr(parse, "finite"):
        return

    def finite(value: str | list[str], value_type: str) -> Any:
        parsed = parse(value, value_type)
        if any(
            isinstance(number, float) and math.isinf(number)
            for number in [parsed, *(parsed if isinstance(parsed, list) else [])]
        ):
            raise ValueError(f"A number in the address of a page must be finite; got {value!r}. Correct the address.")
        return parsed

    finite.finite = True  # type: ignore[attr-defined]
    session_state.parse_url_param = finite  # type: ignore[attr-defined]


def is_set(option: str) -> bool:
    """Return whether an option of Streamlit was set in a file, on the command line or in the environment.

    Streamlit would replace this by an origin in `st.get_option`.
    """
    return bool(_named("who is let in", "streamlit.config", "is_manually_set")(option))


def options_in_environment() -> dict[str, Any]:
    """Return the options of Streamlit that environment variables set, such as STREAMLIT_SERVER_PORT, by name.

    `streamlit run` reads these variables, but `App.run()` reads only secret ones. Streamlit would replace this by
    reading all. Raises ValueError for an invalid number.
    """
    try:
        known = _named("", "streamlit.config", "_config_options_template")
    except InternalsError:
        _warn("Environment variables of Streamlit are not read", "config._config_options_template")
        return {}
    found: dict[str, Any] = {}
    for name, option in known.items():
        text = os.environ.get(option.env_var)
        if text is None or option.sensitive:
            continue
        if option.multiple:
            found[name] = text.split()
        elif option.type is bool:
            found[name] = text.lower() in ("1", "true", "t", "yes", "y", "on")
        elif option.type in (int, float):
            try:
                found[name] = option.type(text)
            except ValueError as error:
                raise ValueError(f"{option.env_var} must be a number; got {text!r}. Correct or unset it.") from error
        else:
            found[name] = text
    return found


# ---------------------------------------------------------------- forgery and sign-in


def is_host_allowed(host: str | None) -> bool:
    """Return whether `server.allowedHosts` permits this host. Streamlit would replace this by a check for the routes of
    `st.App`."""
    return bool(_named(_FORGERY, _SOCKET, "is_host_allowed")(host))


def forged(token: str | None, cookies: Mapping[str, str]) -> bool:
    """Return whether a request lacks the XSRF token of its cookie, if one is required.

    Streamlit would replace this by a dependency for the routes of `st.App`.
    """
    if not _named(_FORGERY, "streamlit.web.server.server_util", "is_xsrf_enabled")():
        return False
    cookie = cookies.get(_named(_FORGERY, _CONFIG, "XSRF_COOKIE_NAME"))
    return not _named(_FORGERY, _UTIL, "validate_xsrf_token")(token, cookie)


def user_cookie() -> str:
    """Return the name of the cookie of a signed-in user.

    Streamlit would replace this and the functions below by a hook for the content of the cookie.
    """
    return str(_named(_SIGN_IN, _CONFIG, "USER_COOKIE_NAME"))


def cookie_secret() -> str:
    return str(_named(_SIGN_IN, "streamlit.web.server.server_util", "get_cookie_secret")())


def signed(name: str, value: str, secret: str | None = None) -> bytes | None:
    """Return the content of a cookie of this name, None if it was not signed with `secret` (default: that of this app).

    Raises ValueError for a value that no cookie can have.
    """
    secret = cookie_secret() if secret is None else secret
    held: bytes | None = _named(_SIGN_IN, _UTIL, "decode_signed_value")(secret, name, value.encode("latin-1"))
    return held


def joined(name: str, cookies: Mapping[str, str], secret: str | None = None) -> bytes | None:
    """Return the content of a cookie, whole or in chunks, as Streamlit reads it."""
    read = _named(_SIGN_IN, "streamlit.auth_util", "get_cookie_with_chunks")
    held: bytes | None = read(lambda part: signed(part, cookies.get(part, ""), secret), name)
    return held


def cookies_in(header: str) -> dict[str, str]:
    """Return names and values in a Cookie header, as Starlette reads them. Starlette would replace this by documenting
    it."""
    found: dict[str, str] = _named(_SIGN_IN, "starlette.requests", "cookie_parser")(header)
    return found


async def answer_callback(request: Request, base: str) -> Response:
    """Return Streamlit's answer to a provider that redirects a user back from signing in."""
    answer: Response = await _named(_SIGN_IN, _AUTH, "_auth_callback")(request, base)
    return answer


async def answer_sign_out(request: Request, base: str) -> Response:
    """Return Streamlit's answer that clears the cookies of a sign-in."""
    answer: Response = await _named(_SIGN_IN, _AUTH, "_auth_logout")(request, base)
    return answer


def write_user_cookie(response: Response, request: Request, held: str) -> None:
    """Set the cookie of a sign-in to one signed value, and remove any other and its chunks."""
    _named(_SIGN_IN, _AUTH, "_clear_single_auth_cookie_and_chunks")(response, request, user_cookie())
    _named(_SIGN_IN, _AUTH, "_set_single_cookie")(response, user_cookie(), held)


def clear_cookies(response: Response, request: Request) -> None:
    _named(_SIGN_IN, _AUTH, "_clear_auth_cookie")(response, request)


# ---------------------------------------------------------------- runs of pages


def went_back() -> bool:
    """Return whether this run of a page follows Back or Forward in the browser.

    Streamlit would replace this by a field of `st.context`.
    """
    context = _script_context()
    if context is not None and not hasattr(context, "is_history_navigation"):
        _warn("Back and Forward leave the fields of a page as they are", "ScriptRunContext.is_history_navigation")
    return bool(context is not None and getattr(context, "is_history_navigation", False))


def drawn(key: str) -> bool:
    """Return whether the message that caused this run contains the value of a field.

    Streamlit would replace this by a list of sent values in `st.session_state`.
    """
    context = _script_context()
    if context is None:
        return True
    try:
        state = context.session_state._state
        return state._key_id_mapper.get_id_from_key(key) in state._new_widget_state.states
    except AttributeError as error:
        _warn("Fields may begin empty on a slow line", f"SessionState.{error.name}")
        return True


def has_page() -> bool:
    """Return whether this thread runs the script of a page. Streamlit would replace this by a field of `st.context`."""
    return _script_context() is not None


def quiet_thread(name: str) -> None:
    """Suppress Streamlit's log messages about drawing without a page in threads of this name.

    Streamlit would replace this by caches that can be filled without a page.
    """
    try:
        logger = logging.getLogger(_named("", _CONTEXT, "_LOGGER").name)
    except InternalsError:
        _warn("The log has lines about a thread without a page", "script_run_context._LOGGER")
        return
    logger.addFilter(lambda record: record.threadName != name)


def warm_first_element() -> None:
    """Check in advance whether Python runs interactively, as Streamlit does when it draws the first element, which is
    slow.

    Streamlit would replace this by checking when it starts.
    """
    try:
        _named("", "streamlit.env_util", "is_repl")()
    except InternalsError:
        _warn("The first page comes a little later", "env_util.is_repl")


def _script_context() -> Any:
    try:
        return _named("", "streamlit.runtime.scriptrunner", "get_script_run_ctx")(suppress_warning=True)
    except InternalsError:
        _warn("Back, Forward and progress of downloads do not work", "scriptrunner.get_script_run_ctx")
        return None


# ---------------------------------------------------------------- contracts of what guards something


def _cookies_are_signed() -> None:
    """Check that unsigned cookies, and cookies signed for another name, are refused, and signed ones are read."""
    make = _named(_SIGN_IN, _UTIL, "create_signed_value")
    name, held, secret = user_cookie(), json.dumps({"email": "a@example.org"}), "a secret of this contract"
    value = make(secret, name, held).decode("latin-1")
    if signed(name, value, secret) != held.encode():
        raise InternalsError(_SIGN_IN, "decode_signed_value reading what create_signed_value signed")
    changed = value[:-2] + ("AA" if value[-2:] != "AA" else "BB")
    for cookie, wrong in ((name, ""), (name, changed), (f"{name}_1", value), (name, held)):
        if signed(cookie, wrong, secret) is not None or signed(name, value, "another secret") is not None:
            raise InternalsError(_SIGN_IN, "decode_signed_value refusing what was not signed")
    if joined(name, {name: value}, secret) != held.encode() or cookies_in(f"{name}={value}") != {name: value}:
        raise InternalsError(_SIGN_IN, "get_cookie_with_chunks or cookie_parser reading a cookie")
    _named(_SIGN_IN, "streamlit.web.server.server_util", "get_cookie_secret")
    for routine in ("_auth_callback", "_auth_logout", "_set_single_cookie", "_clear_single_auth_cookie_and_chunks",
                    "_clear_auth_cookie"):  # fmt: skip
        _named(_SIGN_IN, _AUTH, routine)


def _forgery_is_seen() -> None:
    """Check that a missing or invalid XSRF token is detected, and that hosts can be checked."""
    validate = _named(_FORGERY, _UTIL, "validate_xsrf_token")
    make = _named(_FORGERY, _UTIL, "generate_xsrf_token_string")
    token = make()
    if validate(None, token) or validate("made up", token) or validate(make(), token) or not validate(token, token):
        raise InternalsError(_FORGERY, "validate_xsrf_token refusing a made-up token")
    _named(_FORGERY, _CONFIG, "XSRF_COOKIE_NAME")
    _named(_FORGERY, "streamlit.web.server.server_util", "is_xsrf_enabled")
    is_host_allowed("localhost")


def _uploads_are_kept() -> None:
    """Check that uploads are in a mapping by session and file, with their bytes."""
    manager = _named(_UPLOADS, "streamlit.runtime.memory_uploaded_file_manager", "MemoryUploadedFileManager")
    if not isinstance(getattr(manager("/upload"), "file_storage", None), Mapping):
        raise InternalsError(_UPLOADS, "MemoryUploadedFileManager.file_storage")
    record = _named(_UPLOADS, "streamlit.runtime.uploaded_file_manager", "UploadedFileRec")
    if "data" not in getattr(record, "_fields", ()):
        raise InternalsError(_UPLOADS, "UploadedFileRec.data")


def _options_are_known() -> None:
    """Check that it can be determined whether an option was set."""
    is_set("browser.serverAddress")


GUARDING = (_cookies_are_signed, _forgery_is_seen, _uploads_are_kept, _options_are_known)


# ---------------------------------------------------------------- names in the page

# What page.css and the scripts of components select that has no key of ours, by the reason why not: Streamlit's test
# ids and attributes. tests/pages/test_selectors_browser.py tries each in a browser. Streamlit would replace them by
# documented parts of a page that can be styled. What has a key (`st-key-...`), a role or label for screen readers, or a
# class of vega-embed needs no entry.
SELECTED = {
    "around every container": (
        "stApp", "stHeader", "stHeaderLogo", "stMain", "stMainBlockContainer", "stSidebar", "stSidebarCollapseButton",
        "stSidebarHeader",
    ),
    "takes no key": ("stCaptionContainer", "stColumn", "stElementContainer", "stMetricValue", "stPageLink-NavLink"),
    "one in every page, whatever its key": ("stBidiComponent", "stSkeleton", "stSliderThumbValue"),
    "drawn above the page, outside its containers": ("stDialog", "stPopoverBody", "stSelectboxVirtualDropdown"),
    "state of the page and the sidebar": ("data-collapsed", "data-test-script-state"),
}  # fmt: skip
