"""What a sign-in's cookie may say: one signed value of a session that holds; no chunks, no other app's token."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.testclient import TestClient
from streamlit.web.server import server_util
from streamlit.web.server.starlette import starlette_auth_routes, starlette_websocket
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from core.sign_in import SignIn
from core.store.people import Person
from pages.parts.shell import people, sign_in
from pages.parts.shell.middleware import Headers as Answers
from tests.pages.spliced import claims, cookies_of, filler, spliced

ORIGIN = "http://testserver"
SECRET = "only-for-this-test-0123456789abcdef"
ADA, EVE = "ada@example.org", "eve@example.org"


@pytest.fixture(autouse=True)
def guarded(monkeypatch, tmp_path):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    roles = {"admin": [ADA], "viewer": [EVE]}
    known = SignIn(required=True, roles=roles, clients={"default": "atlas"})
    monkeypatch.setattr(people, "configured", lambda: known)
    for module in (server_util, starlette_websocket, starlette_auth_routes):
        monkeypatch.setattr(module, "get_cookie_secret", lambda: SECRET)


def held(mail, **other):
    about = {"email": mail, "email_verified": True, "origin": ORIGIN, "is_logged_in": True} | other
    return about | {"session": other.get("session") or people.begin_session(about)}


def cookie(about, name=USER_COOKIE_NAME, secret=SECRET):
    return {name: create_signed_value(secret, name, json.dumps(about)).decode()}


def who(cookies):
    return people.person_of(sign_in.claims_of(cookies))


def test_a_cookie_of_a_session_that_holds_names_its_person():
    assert who(cookie(held(ADA))) == Person(ADA, "admin")


def test_chunks_of_two_honest_sign_ins_are_nobody():
    cookies = spliced(ADA, EVE, ORIGIN, SECRET)
    joined = starlette_websocket._get_signed_cookie_with_chunks(cookies, USER_COOKIE_NAME)
    assert json.loads(joined)["email"] == ADA  # Streamlit's fault (docs/explanation/security.md)
    assert who(cookies).role == "none"


def test_streamlit_is_shown_no_chunks_and_no_cookie_of_nobody():
    chunks = spliced(ADA, EVE, ORIGIN, SECRET) | {"_streamlit_xsrf": "2|a|b|1"}
    assert seen_by_streamlit(chunks) == {"_streamlit_xsrf": "2|a|b|1"}
    mine = cookie(held(ADA))
    assert seen_by_streamlit({**chunks, **mine}) == {**mine, "_streamlit_xsrf": "2|a|b|1"}
    assert seen_by_streamlit(cookie(claims(ADA, ORIGIN))) == {}  # from before sessions


def seen_by_streamlit(cookies):
    text = "; ".join(f"{name}={value}" for name, value in cookies.items())
    shown = sign_in.without_strangers([(b"host", b"testserver"), (b"cookie", text.encode())])
    assert Headers(raw=shown)["host"] == "testserver"
    return TestRequest(shown).cookies


class TestRequest(sign_in.Request):
    __test__ = False

    def __init__(self, headers):
        super().__init__({"type": "http", "headers": headers, "method": "GET", "path": "/"})


@pytest.mark.parametrize(
    "other",
    [
        {"session": "invented"},
        {"session": 7},
        {"session": ["a"]},
        {"is_logged_in": "true"},
        {"is_logged_in": False},
        {"name": "more than is held"},
        {"email": EVE},  # a session of somebody else
        {"email_verified": False},
    ],
)
def test_a_cookie_that_says_anything_else_is_nobody(other):
    assert who(cookie(held(ADA) | other)).role == "none"


@pytest.mark.parametrize("value", ["", "x", "a.b.c", "chunks-1", "é", "\xff" * 50])
def test_a_cookie_that_is_not_signed_here_is_nobody(value):
    assert who({USER_COOKIE_NAME: value}).role == "none"
    assert who(cookie(held(ADA), secret="another-secret-0123456789")).role == "none"
    assert who({USER_COOKIE_NAME: cookie(held(ADA), name="_streamlit_user_1")["_streamlit_user_1"]}).role == "none"


@pytest.mark.parametrize("text", ["[]", "7", "null", '"chunks-2"', "{", "[" * 100_000, "chunks-2"])
def test_a_signed_value_that_is_no_claims_is_nobody(text):
    assert who({USER_COOKIE_NAME: create_signed_value(SECRET, USER_COOKIE_NAME, text).decode()}).role == "none"


# ---------------------------------------------------------------- over HTTP


class Provider:
    """What Streamlit asks its OAuth library for, once the browser came back."""

    def __init__(self, **about):
        self.about, self.client_id = about, "atlas"

    async def authorize_access_token(self, _request):
        return {"userinfo": self.about, "id_token": "a.b.c"}

    async def load_server_metadata(self):
        return {}


@pytest.fixture
def browser(monkeypatch):
    monkeypatch.setattr(starlette_auth_routes, "_get_provider_by_state", lambda *_: "default")
    monkeypatch.setattr(starlette_auth_routes, "_get_origin_from_secrets", lambda: ORIGIN)
    routes = sign_in.routes()
    app = Starlette(routes=routes, middleware=[Middleware(SessionMiddleware, secret_key=SECRET)])
    with TestClient(app, base_url=ORIGIN, follow_redirects=False) as client:
        client.comes_back = lambda **about: come_back(client, monkeypatch, about)
        yield client


def come_back(client, monkeypatch, about):
    said = {"sub": "7", "aud": "atlas", "email": ADA, "email_verified": True} | about
    monkeypatch.setattr(starlette_auth_routes, "_create_oauth_client", lambda _: (Provider(**said), "/"))
    return client.get("/oauth2callback?state=s&code=c")


def test_a_sign_in_keeps_a_name_and_a_session_and_no_more(browser):
    about = {"name": filler(5000), "picture": filler(5001), "address": {"street": "s"}}
    assert browser.comes_back(**about).status_code == 302
    names = {name for name in browser.cookies if name.startswith(USER_COOKIE_NAME) and "tokens" not in name}
    assert names == {USER_COOKIE_NAME}
    known = sign_in.claims_of(dict(browser.cookies))
    assert set(known) == set(sign_in.HELD)
    assert people.person_of(known) == Person(ADA, "admin")


def test_every_cookie_of_a_sign_in_over_https_is_for_https_alone(browser, monkeypatch):
    """Those that are set, those that are cleared, and that of the state of the sign-in; no script reads the user's."""
    known = replace(people.configured(), https=True)
    monkeypatch.setattr(people, "configured", lambda: known)
    with TestClient(Answers(browser.app), base_url=ORIGIN, follow_redirects=False) as secured:
        secured.cookies.set(f"{USER_COOKIE_NAME}_1", "chunk")
        given = come_back(secured, monkeypatch, {}).headers.get_list("set-cookie")
    assert {one.split("=")[0] for one in given} >= {USER_COOKIE_NAME, f"{USER_COOKIE_NAME}_1"}
    for one in given:
        flags = {part.strip().lower() for part in one.split(";")[1:]}
        assert "secure" in flags, one
        if one.startswith(f"{USER_COOKIE_NAME}=") and "max-age=0" not in flags:
            assert {"httponly", "samesite=lax"} <= flags, one


def test_chunks_of_before_are_cleared_by_a_sign_in(browser):
    for name, value in cookies_of(claims(EVE, ORIGIN, name=filler(5000)), SECRET).items():
        browser.cookies.set(name, value, domain="testserver.local", path="/")
    browser.comes_back()
    assert {name for name in browser.cookies if sign_in.is_chunk(name)} == set()
    assert who(dict(browser.cookies)).name == ADA


@pytest.mark.parametrize(
    "audience", ["", None, [], [""], "another-app", ["another-app"], ["atlas", 7], {"atlas": 1}, 7, "atlas "]
)
def test_a_token_for_another_app_signs_nobody_in(browser, audience):
    answer = browser.comes_back(aud=audience)
    assert answer.status_code == 403
    assert "another app" in answer.text
    assert who(dict(browser.cookies)).role == "none"


@pytest.mark.parametrize("audience", ["atlas", ["atlas"], ["another", "atlas"]])
def test_a_token_for_this_app_signs_in(browser, audience):
    assert browser.comes_back(aud=audience).status_code == 302
    assert who(dict(browser.cookies)).name == ADA


def test_a_name_too_long_for_a_cookie_signs_nobody_in(browser):
    answer = browser.comes_back(sub=filler(4000))
    assert answer.status_code == 403
    assert "too long for a cookie" in answer.text
    assert who(dict(browser.cookies)).role == "none"


def test_a_sign_in_that_fails_sets_no_cookie(browser, monkeypatch):
    monkeypatch.setattr(starlette_auth_routes, "_get_provider_by_state", lambda *_: None)
    assert browser.get("/oauth2callback?state=s").status_code == 302
    assert USER_COOKIE_NAME not in browser.cookies


def test_a_link_of_another_site_signs_nobody_out(browser):
    browser.comes_back()
    answer = browser.get("/auth/logout")
    assert answer.status_code == 403
    assert "use the button" in answer.text
    assert who(dict(browser.cookies)).name == ADA
    assert browser.post("/auth/logout").status_code == 405


def test_the_button_ends_the_session_wherever_its_cookie_went(browser, monkeypatch):
    browser.comes_back()
    stolen = dict(browser.cookies)
    user = SimpleNamespace(to_dict=lambda: sign_in.claims_of(stolen), get=lambda _: True)
    left = []
    monkeypatch.setattr(people, "st", SimpleNamespace(user=user, logout=lambda: left.append(True)))
    assert people.person().name == ADA
    people.sign_out()
    assert left == [True]
    assert people.person().role == "none"  # an open page of that session, too
    assert browser.get("/auth/logout").status_code == 302
    assert USER_COOKIE_NAME not in browser.cookies
    assert who(stolen).role == "none"


def test_a_new_sign_in_ends_the_one_before_it_in_this_browser(browser):
    browser.comes_back()
    before = dict(browser.cookies)
    browser.comes_back()
    assert who(before).role == "none"
    assert who(dict(browser.cookies)).name == ADA
