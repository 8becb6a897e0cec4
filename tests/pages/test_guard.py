"""What stands before every request: origin, host, who uploads, how much, how long a body and a stranger may take."""

import asyncio
import contextlib
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit import config as server
from streamlit.web.server import server_util
from streamlit.web.server.starlette import starlette_websocket
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value, generate_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from core.sign_in import SignIn
from pages.parts.shell import guard, people
from pages.parts.shell.connections import limits_for
from pages.parts.shell.guard import RefusedError, check_source
from tests.event_loops import finished
from tests.pages.spliced import spliced

HOST = "localhost:8501"
ORIGIN = f"http://{HOST}"
SECRET = "only-for-this-test-0123456789abcdef"
ADA, EVE = "ada@example.org", "eve@example.org"
MEGABYTE = 1 << 20
BOUNDS = SimpleNamespace(now=limits_for(20_000))
STREAM = f"ws://{HOST}/_stcore/stream"  # a test client has a host of its own for websockets


@pytest.fixture(autouse=True)
def own_database(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))


@pytest.fixture
def sign_in(monkeypatch):
    known = SignIn(required=True, roles={"annotator": [ADA], "viewer": [EVE]})
    monkeypatch.setattr(people, "configured", lambda: known)
    for module in (server_util, starlette_websocket):
        monkeypatch.setattr(module, "get_cookie_secret", lambda: SECRET)


def options(monkeypatch, **chosen):
    before = server.get_option
    for module in (server, st):
        monkeypatch.setattr(module, "get_option", lambda name: chosen.get(name.split(".")[1], before(name)))


# ---------------------------------------------------------------- where a request comes from


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3000",  # another server of this machine: Streamlit lets it in
        "http://127.0.0.1:9999",
        "http://0.0.0.0:8501",
        "http://localhost",
        "https://localhost:8502",
        "http://localhost:8501.evil.example",
        "http://localhost:8501@evil.example",
        "http://evil.example/localhost:8501",
        "http://evil.example",
        "null",
        "",
        "file://",
        "localhost:8501",
        "http://localhost:85010",
        "http://localhost:notaport",
        "http://[::1",
        "chrome-extension://abc",
    ],
)
def test_a_page_of_another_server_asks_for_nothing(origin):
    with pytest.raises(RefusedError):
        check_source(Headers({"host": HOST, "origin": origin}))


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        (HOST, ORIGIN),
        (HOST, None),
        ("127.0.0.1:8501", "http://127.0.0.1:8501"),
        ("[::1]:8501", "http://[::1]:8501"),
        ("LOCALHOST", "http://localhost"),
        ("atlas.localhost:80", "http://atlas.localhost"),
        (HOST, "http://LOCALHOST:8501/"),
    ],
)
def test_a_page_of_this_app_asks(host, origin):
    asked = {"host": host} | ({"origin": origin} if origin else {})
    check_source(Headers(asked))
    with pytest.raises(RefusedError):  # the same, from elsewhere
        check_source(Headers(asked | {"origin": "http://evil.example"}))


@pytest.mark.parametrize(
    "host", ["evil.example:8501", "", "localhost.evil.example", "10.0.0.7:8501", "a b", "x:y", "@"]
)
def test_a_name_that_was_made_to_lead_to_this_machine_opens_nothing(host, monkeypatch):
    for origin in (f"http://{host}", None):
        with pytest.raises(RefusedError, match="host name that is not allowed"):
            check_source(Headers({"host": host} | ({"origin": origin} if origin else {})))


def test_a_name_is_this_apps_where_others_reach_it_or_it_is_configured(monkeypatch):
    headers = Headers({"host": "atlas.example.org", "origin": "https://atlas.example.org"})
    with pytest.raises(RefusedError):
        check_source(headers)
    monkeypatch.setenv("ATLAS_VISITORS", "viewer")
    check_source(headers)
    monkeypatch.delenv("ATLAS_VISITORS")
    options(monkeypatch, allowedHosts=["*.example.org"])
    check_source(headers)
    with pytest.raises(RefusedError):
        check_source(Headers({"host": "atlas.example.com"}))


def test_another_origin_may_ask_where_it_is_configured(monkeypatch):
    headers = Headers({"host": HOST, "origin": "https://lab.example.org"})
    with pytest.raises(RefusedError):
        check_source(headers)
    options(monkeypatch, corsAllowedOrigins=["https://lab.example.org"])
    check_source(headers)
    options(monkeypatch, enableCORS=False)
    check_source(Headers({"host": HOST, "origin": "http://elsewhere.example"}))


def test_no_one_on_the_network_is_asked_for_our_address(monkeypatch):
    """Streamlit asks a public server for this machine's address when an unknown origin comes."""
    monkeypatch.setattr("streamlit.net_util.get_external_ip", lambda: pytest.fail("asked the network"))
    with pytest.raises(RefusedError):
        check_source(Headers({"host": HOST, "origin": "http://evil.example"}))


# ---------------------------------------------------------------- uploads


class File:
    def __init__(self, size):
        self.data = b"x" * size


async def take(request: Request) -> Response:
    return JSONResponse({"bytes": len(await request.body())})


async def say_cookies(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_json(dict(websocket.cookies))
    with contextlib.suppress(WebSocketDisconnect):
        await websocket.receive_text()


@pytest.fixture
def kept():
    return {}


@pytest.fixture
def browser(kept):
    routes = [
        Route("/{base:path}_stcore/upload_file/{session}/{file}", take, methods=["PUT", "DELETE", "OPTIONS"]),
        Route("/painted", take, methods=["POST", "GET"]),
        Route("/maps", take, methods=["GET"]),
        WebSocketRoute("/_stcore/stream", say_cookies),
    ]
    app = guard.Guard(Starlette(routes=routes), lambda: kept, lambda: BOUNDS.now)
    with TestClient(app, base_url=ORIGIN) as client:
        token = generate_xsrf_token_string()
        client.cookies.set("_streamlit_xsrf", token)
        client.headers.update({"x-xsrftoken": token, "origin": ORIGIN})
        yield client


def signed_in(client, mail):
    about = {"email": mail, "email_verified": True, "origin": ORIGIN, "is_logged_in": True}
    value = json.dumps(about | {"session": people.begin_session(about)})
    client.cookies.set(USER_COOKIE_NAME, create_signed_value(SECRET, USER_COOKIE_NAME, value).decode())


def put(client, *, session="s", size=10, **more):
    return client.put(f"/_stcore/upload_file/{session}/f", content=b"x" * size, **more)


def test_whoever_sits_at_this_machine_uploads(browser):
    assert put(browser).json() == {"bytes": 10}


@pytest.mark.parametrize("path", ["/_stcore/upload_file/s/f", "/atlas/_stcore/upload_file/s/f"])
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_uploads_ask_for_a_sign_in_and_a_role(browser, sign_in, path, method):
    assert "the role none" in browser.request(method, path).json()["refused"]
    signed_in(browser, EVE)
    assert "role annotator is required" in browser.request(method, path).json()["refused"]
    signed_in(browser, ADA)
    assert browser.request(method, path, content=b"x").json() == {"bytes": 1}


@pytest.mark.parametrize(
    "headers",
    [{"x-xsrftoken": ""}, {"x-xsrftoken": "2|00|00|1"}, {"origin": "http://localhost:3000"}, {"host": "evil.example"}],
)
def test_an_upload_from_elsewhere_is_refused(browser, headers):
    answer = put(browser, headers=headers)
    assert answer.status_code == 403
    assert "own pages only" in answer.json()["refused"]


def test_an_upload_with_spliced_chunks_is_nobodys(browser, sign_in):
    for name, value in spliced(ADA, EVE, ORIGIN, SECRET).items():
        browser.cookies.set(name, value)
    assert put(browser).status_code == 403


def test_a_session_holds_so_much_and_all_together_so_much(browser, kept, monkeypatch):
    options(monkeypatch, maxUploadSize=1)
    kept["s"] = {"a": File(MEGABYTE), "b": File(MEGABYTE - 100)}
    assert put(browser, size=100).status_code == 200
    answer = put(browser, size=101)
    assert answer.status_code == 413
    assert "must not exceed 2 MB" in answer.json()["refused"]
    assert put(browser, session="t", size=101).status_code == 200
    kept.update({f"s{k}": {"a": File(2 * MEGABYTE)} for k in range(3)})
    assert put(browser, session="t", size=101).status_code == 413
    assert browser.delete("/_stcore/upload_file/s/f").status_code == 200  # what makes room is taken


def test_uploads_on_their_way_count(monkeypatch):
    options(monkeypatch, maxUploadSize=1)
    uploads = guard.Uploads(dict)
    scope = {"method": "PUT", "headers": [(b"content-length", str(2 * MEGABYTE).encode())]}
    with uploads.room("s", scope), pytest.raises(guard.TooMuchError), uploads.room("s", scope):
        pass
    with uploads.room("s", scope):
        assert uploads._coming["s"] == 2 * MEGABYTE
    assert not uploads._coming


@pytest.mark.parametrize(
    "length",
    [
        "",
        "-1",
        "1e9",
        "ten",
        "٣",
        "9" * 40,
        "9" * 4400,
        "0" * 12 + "20971520",
        "0" * 11 + "209715200",
        "0" * 30 + "2097153",
        "+5",
        "0x5",
        "5_0",
        "5,5",
        "5 5",
        "5.0",
        "-0",
        "²",
        "5\x00",
        "0b1",
        "Infinity",
        " 5",
        "5 ",
    ],
)
def test_an_upload_says_how_long_it_is(monkeypatch, length):
    options(monkeypatch, maxUploadSize=1)
    scope = {"method": "PUT", "headers": [(b"content-length", length.encode("utf-8"))]}
    with pytest.raises(guard.TooMuchError), guard.Uploads(dict).room("s", scope):
        pass


# ---------------------------------------------------------------- websockets


def greeted(client):
    with client.websocket_connect(STREAM) as socket:
        return socket.receive_json()


def test_a_websocket_is_shown_a_persons_cookie_and_no_other(browser, sign_in):
    for name, value in spliced(ADA, EVE, ORIGIN, SECRET).items():
        browser.cookies.set(name, value)
    assert set(greeted(browser)) == {"_streamlit_xsrf"}
    signed_in(browser, ADA)
    assert set(greeted(browser)) == {"_streamlit_xsrf", USER_COOKIE_NAME}


@pytest.mark.parametrize("headers", [{"origin": "http://localhost:3000"}, {"host": "evil.example:8501"}])
def test_a_websocket_of_another_page_does_not_open(browser, headers):
    with pytest.raises(WebSocketDisconnect) as refused, browser.websocket_connect(STREAM, headers=headers):
        pass
    assert refused.value.code == 1008


def test_so_many_strangers_wait_at_the_door_and_one_who_signed_in_passes_them(browser, sign_in, monkeypatch):
    monkeypatch.setattr(BOUNDS, "now", replace(limits_for(20_000), strangers=1))
    with browser.websocket_connect(STREAM):
        with pytest.raises(WebSocketDisconnect) as refused, browser.websocket_connect(STREAM):
            pass
        assert refused.value.code == 1013
        signed_in(browser, ADA)
        assert USER_COOKIE_NAME in greeted(browser)
    assert greeted(browser)


def opened(client, stack, count):
    """How many of so many pages open; those that do stay open."""
    done = 0
    for _ in range(count):
        with contextlib.suppress(WebSocketDisconnect):
            stack.enter_context(client.websocket_connect(STREAM))
            done += 1
    return done


def test_an_address_opens_so_many_pages_and_is_told_so_in_a_sentence(browser, monkeypatch, caplog):
    monkeypatch.setattr(BOUNDS, "now", replace(limits_for(20_000), address=3))
    asked = {"accept": "text/html"}
    with contextlib.ExitStack() as pages:
        assert opened(browser, pages, 6) == 3
        answer = browser.get("/maps", headers=asked)
        assert answer.status_code == 503
        assert "has 3 pages of this app open" in answer.text
        assert browser.get("/painted").status_code == 200  # what an open page asks for is answered
        assert len([record for record in caplog.records if "refused to open a page" in record.message]) == 1
    assert browser.get("/maps", headers=asked).status_code == 200
    assert greeted(browser)


def test_a_person_opens_so_many_pages_from_anywhere_and_others_still_come(browser, sign_in, monkeypatch):
    monkeypatch.setattr(BOUNDS, "now", replace(limits_for(20_000), person=2, address=2))
    with contextlib.ExitStack() as pages:
        signed_in(browser, ADA)
        assert opened(browser, pages, 5) == 2
        signed_in(browser, EVE)
        assert greeted(browser)


@pytest.mark.parametrize("address", ["2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:0:1::"])
def test_addresses_of_one_network_count_as_one(address):
    assert guard.visitor({"client": (address, 1), "headers": []}).address == "2001:db8::/64"


def test_a_stranger_stays_for_a_while(browser, sign_in, monkeypatch):
    monkeypatch.setattr(guard, "STRANGER_STAYS", 0.05)
    with browser.websocket_connect(STREAM) as socket:
        socket.receive_json()
        with pytest.raises(WebSocketDisconnect) as ended:
            socket.receive_json()
    assert ended.value.code == 1001


# ---------------------------------------------------------------- bodies that stall


async def reads(scope, receive, send):
    await (await take(Request(scope, receive)))(scope, receive, send)


def sent_by(app, *messages):
    """What an app answers to a request whose body comes as these messages and then not at all."""

    async def run():
        coming, answered, never = list(messages), [], asyncio.Event()

        async def receive():
            if not coming:
                await never.wait()
            return coming.pop(0)

        async def send(message):
            answered.append(message)

        headers = [(b"host", HOST.encode())]
        scope = {"type": "http", "method": "POST", "path": "/painted", "headers": headers, "query_string": b""}
        await guard.Guard(app, dict)(scope, receive, send)
        return answered

    return finished(asyncio.wait_for(run(), 10))


def test_a_body_that_stalls_is_answered_and_let_go(monkeypatch):
    monkeypatch.setattr(guard, "BODY_STARTS", 0.05)
    part = {"type": "http.request", "body": b"x", "more_body": True}
    assert [message.get("status") for message in sent_by(reads, part)] == [408, None]
    assert [
        message.get("status")
        for message in sent_by(Starlette(routes=[Route("/painted", take, methods=["POST"])]), part)
    ] == [408, None]


def test_a_body_that_keeps_coming_is_read(monkeypatch):
    monkeypatch.setattr(guard, "BODY_STARTS", 0.0)
    monkeypatch.setattr(guard, "BODY_RATE", 1.0)
    parts = [{"type": "http.request", "body": b"x" * 60, "more_body": more} for more in (True, False)]
    first, second = sent_by(reads, *parts)
    assert first["status"] == 200
    assert second["body"] == b'{"bytes":120}'


def test_an_app_that_fails_by_itself_fails_as_before():
    async def fails(_scope, _receive, _send):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sent_by(fails)
