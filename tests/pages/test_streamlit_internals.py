"""Contract tests: the private names of Streamlit, Starlette and uvicorn that the app relies on do what it needs, and no
other module uses any."""

import ast
import logging
import threading
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import streamlit as st
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from streamlit import config
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.runtime.state import session_state
from streamlit.testing.v1 import AppTest
from streamlit.web.server import server_util
from streamlit.web.server.starlette import starlette_app_utils, starlette_auth_routes
from streamlit.web.server.starlette.starlette_app import create_streamlit_routes
from uvicorn.lifespan.on import LifespanOn

from pages.parts import streamlit_internals
from pages.parts.shell.middleware import Closed
from pages.parts.streamlit_internals import OPEN, InternalsError
from tests.event_loops import finished

PROJECT = Path(__file__).resolve().parents[2]
MODULE = PROJECT / "pages" / "parts" / "streamlit_internals.py"
PUBLIC = {  # what other modules may import, by documented module
    "streamlit": {""},
    "streamlit.delta_generator": {"DeltaGenerator"},  # what st.container returns, for annotations
    "starlette.concurrency": {"run_in_threadpool"},
    "starlette.datastructures": {"Headers"},
    "starlette.middleware": {"Middleware"},
    "starlette.requests": {"Request"},
    "starlette.responses": {"HTMLResponse", "Response"},
    "starlette.routing": {"Route"},
}
MODULES_OF_ST = {"column_config", "components", "errors", "testing"}  # documented; other modules of st are private
CLOSED = {"/_stcore/metrics", "/component/{path:path}", "/_stcore/agent/interact", "/_stcore/agent/openapi.json",
          "/_stcore/agent/mcp"}  # fmt: skip


# ---------------------------------------------------------------- no other module


def private_names(text: str) -> list[str]:
    """Private names of Streamlit, Starlette and uvicorn in the code of a module."""
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                found += [one.name for one in names if one.name.split(".")[0] in ("starlette", "uvicorn")]
                found += [one.name for one in names if one.name.startswith("streamlit.")]
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] in (
                "streamlit", "starlette", "uvicorn",
            ):  # fmt: skip
                found += [f"{module}.{one.name}" for one in names if one.name not in PUBLIC.get(module, ())]
            case ast.Attribute(value=ast.Name(id="st"), attr=name):
                inner = getattr(st, name, None)
                if name.startswith("_") or (isinstance(inner, type(st)) and name not in MODULES_OF_ST):
                    found.append(f"st.{name}")
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name) if name.startswith("_") and not name.startswith("__"):
                found.append(name)
            case ast.Call(func=ast.Name(id="getattr" | "setattr" | "hasattr"), args=[_, ast.Constant(str(name)), *_]):
                found += [name] if name.startswith("_") or name in FIELDS else []
            case ast.Constant(str(words)) if words.startswith(("streamlit.", "/_stcore", "_streamlit", "uvicorn.")):
                found.append(words)
    return found


FIELDS = {"is_history_navigation", "file_storage", "config"}  # private by being undocumented


@pytest.mark.thorough
@pytest.mark.parametrize(
    "file", [PROJECT / "app.py", *(PROJECT / "pages").rglob("*.py")], ids=lambda file: str(file.relative_to(PROJECT))
)
def test_no_other_module_uses_a_private_name(file):
    if file != MODULE:
        assert private_names(file.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "code",
    [
        "import uvicorn",
        "from streamlit.runtime.scriptrunner import get_script_run_ctx",
        "from starlette.requests import cookie_parser",
        "import streamlit as st\nst.runtime.get_instance()",
        "import streamlit as st\nst._config",
        "run.session_state._state",
        "getattr(run, 'is_history_navigation', False)",
        "logging.getLogger('streamlit.runtime')",
        "path = '/_stcore/metrics'",
    ],
)
def test_the_scan_finds_private_names(code):
    assert private_names(code)


# ---------------------------------------------------------------- when the app starts


def test_all_names_are_there_and_nothing_is_logged(caplog):
    caplog.set_level("INFO", "atlas")
    streamlit_internals.check()
    assert caplog.records == []


@pytest.mark.parametrize("package", list(streamlit_internals.TRIED))
def test_a_version_that_was_not_tried_is_one_warning(package, monkeypatch, caplog):
    before = streamlit_internals.version
    monkeypatch.setattr(streamlit_internals, "version", lambda name: "99.1.0" if name == package else before(name))
    streamlit_internals.check()
    (record,) = caplog.records
    assert f"{package} 99.1.0" in record.getMessage()


def test_the_versions_that_were_tried_are_the_pinned_ones():
    pinned = (PROJECT / "requirements.txt").read_text("utf-8")
    assert all(f"{package}=={known}." in pinned for package, known in streamlit_internals.TRIED.items())


GUARDS = [
    (starlette_app_utils, "decode_signed_value"),
    (starlette_app_utils, "validate_xsrf_token"),
    (server_util, "get_cookie_secret"),
    (server_util, "is_xsrf_enabled"),
    (starlette_auth_routes, "_auth_callback"),
    (starlette_auth_routes, "_auth_logout"),
    (starlette_auth_routes, "_set_single_cookie"),
    (starlette_auth_routes, "_clear_single_auth_cookie_and_chunks"),
    (starlette_auth_routes, "_clear_auth_cookie"),
    (session_state, "parse_url_param"),
]


@pytest.mark.parametrize(("module", "name"), GUARDS, ids=[name for _, name in GUARDS])
def test_a_missing_name_that_guards_something_stops_the_start(module, name, monkeypatch):
    monkeypatch.delattr(module, name)
    with pytest.raises(InternalsError, match=rf"does not start because .*{name}.*requirements\.txt"):
        streamlit_internals.check()


@pytest.mark.parametrize(
    ("module", "name", "wrong", "what"),
    [
        (starlette_app_utils, "decode_signed_value", lambda _secret, _name, value: value, "sign-ins"),
        (starlette_app_utils, "decode_signed_value", lambda *_: None, "sign-ins"),
        (starlette_app_utils, "validate_xsrf_token", lambda *_: True, "other sites"),
        (starlette_app_utils, "validate_xsrf_token", lambda *_: False, "other sites"),
    ],
)
def test_a_name_that_no_longer_guards_stops_the_start(module, name, wrong, what, monkeypatch):
    monkeypatch.setattr(module, name, wrong)
    with pytest.raises(InternalsError, match=what):
        streamlit_internals.check()


@pytest.mark.parametrize(
    ("module", "name", "what"),
    [
        ("streamlit.file_util", "get_static_dir", "Scripts of pages are answered more slowly"),
        (script_run_context.__name__, "_LOGGER", "The log has lines"),
    ],
)
def test_a_missing_name_that_guards_nothing_is_one_warning(module, name, what, monkeypatch, caplog):
    streamlit_internals._warn.cache_clear()
    monkeypatch.delattr(f"{module}.{name}")
    for _ in range(2):
        streamlit_internals.check()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert what in record.getMessage()


# ---------------------------------------------------------------- server and routes


def test_the_lifespan_of_uvicorn_leads_to_its_settings():
    config = uvicorn.Config(app=lambda *_: None)
    config.load()
    assert streamlit_internals.server_settings(LifespanOn(config).receive) is config


def test_another_server_stops_the_start():
    with pytest.raises(InternalsError, match=r"limit on connections.*requirements\.txt"):
        streamlit_internals.server_settings(SimpleNamespace())


def test_uploads_are_kept_by_session_and_file(monkeypatch):
    files = MemoryUploadedFileManager("/upload")
    monkeypatch.setattr(streamlit_internals.runtime, "exists", lambda: True)
    monkeypatch.setattr(streamlit_internals.runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=files))
    assert dict(streamlit_internals.uploaded_files()) == {}
    files.file_storage["session"]["file"] = "what was uploaded"
    assert streamlit_internals.uploaded_files()["session"]["file"] == "what was uploaded"


def test_a_store_of_uploads_without_its_files_is_an_error(monkeypatch):
    monkeypatch.setattr(streamlit_internals.runtime, "exists", lambda: True)
    monkeypatch.setattr(
        streamlit_internals.runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=object())
    )
    with pytest.raises(InternalsError, match="limit on uploads"):
        streamlit_internals.uploaded_files()


def test_an_infinite_number_of_an_address_is_no_value_and_others_stay(monkeypatch):
    monkeypatch.setattr(session_state, "parse_url_param", session_state.parse_url_param)
    streamlit_internals.refuse_infinite_numbers()
    streamlit_internals.refuse_infinite_numbers()  # each run of a page asks for it
    for text in ("1e999", "-inf"):
        with pytest.raises(ValueError, match="finite"):
            session_state.parse_url_param(text, "double_value")
    assert session_state.parse_url_param("1.5", "double_value") == 1.5
    assert session_state.parse_url_param("inf", "string_value") == "inf"


def test_an_address_without_its_check_stops_the_start(monkeypatch):
    monkeypatch.delattr(session_state, "parse_url_param")
    with pytest.raises(InternalsError, match="numbers in addresses"):
        streamlit_internals.refuse_infinite_numbers()


# ---------------------------------------------------------------- connections


def loaded(**settings):
    config = uvicorn.Config(app=lambda *_: None, **settings)
    config.load()
    return config


async def checked(settings):
    streamlit_internals.check_protocol(settings)
    return settings


def test_a_connection_of_uvicorn_has_what_its_limit_reads():
    settings = loaded()
    assert finished(checked(settings)) is settings


@pytest.mark.parametrize("name", ["connections", "cycle", "loop", "transport"])
def test_a_connection_without_it_stops_the_start(name):
    settings = loaded()

    class Changed(settings.http_protocol_class):
        def __init__(self, **given):
            super().__init__(**given)
            delattr(self, name)

    settings.http_protocol_class = Changed
    with pytest.raises(InternalsError, match=f"limit on connections.*{name}"):
        finished(checked(settings))


def test_a_server_without_websockets_stops_the_start():
    with pytest.raises(InternalsError, match="websockets"):
        finished(checked(loaded(ws="none")))


# ---------------------------------------------------------------- routes


def streamlit_routes():
    """The routes that the installed Streamlit makes."""
    return create_streamlit_routes(MagicMock())


def served(*extra):
    """An app with Streamlit's routes and others, and its answers in a browser."""

    async def page(request):
        return PlainTextResponse("an answer")

    async def socket(websocket):
        await websocket.accept()
        await websocket.close()

    known = [
        Mount("", app=PlainTextResponse("the page")) if path == ""
        else WebSocketRoute(path, socket) if path == streamlit_internals.WEBSOCKET
        else Route(path, page, methods=sorted(methods))
        for path, methods in OPEN.items()
    ]  # fmt: skip
    own = Route("/painted", page, methods=["POST"])
    added = [Route(path, page, methods=methods) for path, methods in extra]
    return Starlette(routes=[own, *added, *known]), own


def test_the_routes_of_the_installed_streamlit_are_known():
    paths = {route.path for route in streamlit_routes()}
    assert paths == OPEN.keys() | CLOSED
    for route in streamlit_routes():
        if route.path in OPEN:
            assert (getattr(route, "methods", None) or set()) <= OPEN[route.path]


def test_a_route_that_is_not_known_is_closed(caplog):
    caplog.set_level("INFO", "atlas")
    app, own = served(("/_stcore/agent/new", ["GET", "POST"]), ("/new", ["GET"]), ("/_stcore/health", ["POST"]))
    app.add_middleware(Closed, own=[own])
    with TestClient(app) as browser:
        assert browser.get("/_stcore/agent/new").status_code == 404
        assert browser.post("/_stcore/agent/new").status_code == 404
        assert browser.get("/new").status_code == 404
        assert browser.post("/_stcore/health").status_code == 404
        assert browser.get("/_stcore/other").status_code == 404
        assert browser.get("/_stcore/health").text == "an answer"
        assert browser.post("/painted").text == "an answer"
        assert browser.get("/heads").text == "the page"
    (line,) = [record.getMessage() for record in caplog.records if "Closed routes" in record.getMessage()]
    assert line == "Closed routes: /_stcore/agent/new, /new, /_stcore/health"


def test_a_websocket_that_is_not_known_is_closed():
    reached = []

    async def socket(websocket):
        reached.append(websocket)

    app, own = served()
    app.router.routes.insert(0, WebSocketRoute("/_stcore/other", socket))
    app.add_middleware(Closed, own=[own])
    with TestClient(app) as browser, pytest.raises(WebSocketDisconnect), browser.websocket_connect("/_stcore/other"):
        pass
    assert reached == []


@pytest.mark.parametrize("path", list(OPEN))
def test_a_route_of_streamlit_that_is_gone_stops_the_start(path):
    app, own = served()
    app.router.routes[:] = [route for route in app.router.routes if route.path != path]
    with pytest.raises(InternalsError, match=r"list of open routes relies on Streamlit's route"):
        streamlit_internals.close_routes(app, "", [own])


@pytest.mark.parametrize("refuses", ["closes", "fails"])
def test_a_websocket_that_does_not_open_stops_the_start(refuses):
    async def socket(websocket):
        if refuses == "fails":
            raise ValueError("no websocket")
        await websocket.close()

    app, own = served()
    app.router.routes[:] = [
        WebSocketRoute(route.path, socket) if route.path == streamlit_internals.WEBSOCKET else route
        for route in app.router.routes
    ]
    said = []

    async def receive():
        return {"type": "lifespan.startup"}

    async def send(message):
        said.append(message)

    app.add_middleware(Closed, own=[own])
    scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
    finished(started(app, scope, receive, send))
    assert said[0]["type"] == "lifespan.startup.failed"
    assert "its own websocket was refused" in said[0]["message"]


async def started(app, scope, receive, send):
    await app(scope, receive, send)


def test_uploads_are_found_by_their_route():
    path = streamlit_internals.UPLOAD.format(session_id="a", file_id="b")
    uploads = [route for route in streamlit_routes() if "PUT" in (getattr(route, "methods", None) or ())]
    assert path in {route.path.format(session_id="a", file_id="b") for route in uploads}
    assert streamlit_internals.session_of_upload(path) == "a"
    assert streamlit_internals.session_of_upload(f"/below/a/base{path}") == "a"
    assert streamlit_internals.session_of_upload("/heads") is None


def test_the_files_of_pages_are_where_streamlit_says():
    folder, age = streamlit_internals.static_files()
    assert (folder / "index.html").is_file()
    assert age > 86_400


# ---------------------------------------------------------------- forgery and sign-in


def test_a_token_against_forgery_is_asked_for_where_it_is_on(monkeypatch):
    token = starlette_app_utils.generate_xsrf_token_string()
    monkeypatch.setattr(server_util, "is_xsrf_enabled", lambda: True)
    assert streamlit_internals.forged(None, {"_streamlit_xsrf": token})
    assert streamlit_internals.forged(token, {})
    assert not streamlit_internals.forged(token, {"_streamlit_xsrf": token})
    monkeypatch.setattr(server_util, "is_xsrf_enabled", lambda: False)
    assert not streamlit_internals.forged(None, {})


def test_a_cookie_is_written_as_one_value_and_cleared(monkeypatch):
    monkeypatch.setattr(server_util, "get_cookie_secret", lambda: "a secret of this test")
    monkeypatch.setattr(starlette_auth_routes, "get_cookie_secret", lambda: "a secret of this test")
    request = Request({"type": "http", "headers": [(b"cookie", b"_streamlit_user=chunks-2; _streamlit_user_1=a")]})
    response = Response()
    streamlit_internals.write_user_cookie(response, request, "held")
    sent = [value.decode() for name, value in response.raw_headers if name == b"set-cookie"]
    kept = [one for one in sent if one.startswith("_streamlit_user=") and "Max-Age=0" not in one]
    (value,) = [one.partition(";")[0].partition("=")[2] for one in kept]
    assert streamlit_internals.signed("_streamlit_user", value.strip('"')) == b"held"
    assert any(one.startswith("_streamlit_user_1=") and "Max-Age=0" in one for one in sent)
    response = Response()
    streamlit_internals.clear_cookies(response, request)
    assert any(value.startswith(b"_streamlit_user=") for name, value in response.raw_headers if name == b"set-cookie")


def test_options_that_were_set_are_told_apart():
    assert streamlit_internals.is_set("server.fileWatcherType")  # in .streamlit/config.toml
    assert not streamlit_internals.is_set("global.e2eTest")


def test_options_of_the_environment_are_those_that_streamlit_run_reads(monkeypatch):
    for name, text in (("SERVER_PORT", "8765"), ("SERVER_HEADLESS", "false"), ("SERVER_ALLOWED_HOSTS", "a.x b.x")):
        monkeypatch.setenv(f"STREAMLIT_{name}", text)
    monkeypatch.setenv("STREAMLIT_SERVER_COOKIE_SECRET", "x")  # secret: Streamlit reads it itself
    found = streamlit_internals.options_in_environment()
    assert found == {"server.port": 8765, "server.headless": False, "server.allowedHosts": ["a.x", "b.x"]}
    monkeypatch.setenv("STREAMLIT_SERVER_PORT", "x")
    with pytest.raises(ValueError, match="STREAMLIT_SERVER_PORT must be a number; got 'x'"):
        streamlit_internals.options_in_environment()


def test_the_hosts_that_are_allowed_are_asked_for(monkeypatch):
    before = config.get_option
    chosen = {"server.allowedHosts": ["a.example"]}
    monkeypatch.setattr(config, "get_option", lambda name: chosen.get(name) or before(name))
    assert streamlit_internals.is_host_allowed("a.example:80")
    assert not streamlit_internals.is_host_allowed("b.example")


# ---------------------------------------------------------------- runs of pages


def script():
    import streamlit as st

    from pages.parts import streamlit_internals

    drawn = streamlit_internals.drawn("field")
    st.text_input("a field", key="field")
    said = streamlit_internals.has_page(), streamlit_internals.went_back(), drawn
    st.text(" ".join(map(str, said)))


def test_a_run_of_a_page_says_what_made_it():
    app = AppTest.from_function(script, default_timeout=60).run()
    assert app.text[0].value.split() == ["True", "False", "False"]
    app.text_input[0].set_value("typed").run()
    assert app.text[0].value.split() == ["True", "False", "True"]
    assert not streamlit_internals.has_page()


def test_a_run_after_back_says_so(monkeypatch):
    context = SimpleNamespace(is_history_navigation=True)
    monkeypatch.setattr(streamlit_internals, "_script_context", lambda: context)
    assert streamlit_internals.went_back()
    assert "is_history_navigation" in script_run_context.ScriptRunContext.__annotations__


def test_a_run_that_does_not_say_so_is_one_warning(monkeypatch, caplog):
    streamlit_internals._warn.cache_clear()
    monkeypatch.setattr(streamlit_internals, "_script_context", SimpleNamespace)
    assert [streamlit_internals.went_back() for _ in range(2)] == [False, False]
    assert [streamlit_internals.drawn("a") for _ in range(2)] == [True, True]
    assert len(caplog.records) == 2


def test_what_the_first_element_asks_is_asked_beforehand(monkeypatch, caplog):
    asked = []
    monkeypatch.setattr("streamlit.env_util.is_repl", lambda: asked.append(True))
    streamlit_internals.warm_first_element()
    assert asked
    streamlit_internals._warn.cache_clear()
    monkeypatch.delattr("streamlit.env_util.is_repl")
    streamlit_internals.warm_first_element()
    assert "The first page comes a little later" in caplog.records[0].getMessage()


def test_a_thread_without_a_page_logs_nothing():
    logger = logging.getLogger(script_run_context.__name__)
    before = list(logger.filters)
    try:
        streamlit_internals.quiet_thread("prepares")
        record = logger.makeRecord("", logging.WARNING, "", 0, "missing ScriptRunContext", (), None)
        record.threadName = "prepares"
        assert not logger.filter(record)
        record.threadName = threading.current_thread().name
        assert logger.filter(record)
    finally:
        logger.filters[:] = before
