"""Headers of every answer: frames, loading from elsewhere, referrers, and cookies over https alone."""

import re

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit import config as streamlit_config

from core.sign_in import SignIn
from pages.parts.shell import middleware, people


async def answer(request):
    made = Response("text", int(request.query_params.get("status", 200)))
    made.set_cookie("_streamlit_user", "value", httponly=True, samesite="lax")
    made.set_cookie("already", "value", secure=True)
    made.delete_cookie("gone")
    return made


@pytest.fixture
def browser(monkeypatch):
    def made(*, https=False, sites=None):
        if sites is not None:
            monkeypatch.setenv("ATLAS_FRAME_ANCESTORS", sites)
        monkeypatch.setattr(people, "configured", lambda: SignIn(required=https, https=https))
        return TestClient(middleware.Headers(Starlette(routes=[Route("/{path:path}", answer)])))

    return made


@pytest.mark.parametrize("status", [200, 204, 307, 403, 404, 500])
def test_another_site_frames_nothing_and_nothing_is_loaded_from_it(browser, status):
    told = browser().get(f"/maps?status={status}", follow_redirects=False).headers
    policy = dict(part.strip().partition(" ")[::2] for part in told["content-security-policy"].split(";"))
    assert policy["frame-ancestors"] == "'self'"
    for kind in ("img-src", "media-src", "font-src", "connect-src"):
        assert re.fullmatch(r"'self'( (data|blob):)+", policy[kind])
    assert policy["object-src"] == "'none'"
    assert told["x-content-type-options"] == "nosniff"
    assert told["referrer-policy"] == "same-origin"
    assert told["x-frame-options"] == "SAMEORIGIN"


def test_a_site_that_was_named_may_frame_the_app(browser):
    told = browser(sites="https://huggingface.co https://*.hf.space").get("/").headers
    assert "frame-ancestors 'self' https://huggingface.co https://*.hf.space;" in told["content-security-policy"]
    assert "x-frame-options" not in told


def test_cookies_are_secure_where_people_sign_in_over_https(browser):
    plain = browser().get("/").headers.get_list("set-cookie")
    secure = browser(https=True).get("/").headers.get_list("set-cookie")
    assert ["Secure" in cookie for cookie in plain] == [False, True, False]
    assert [cookie.lower().count("secure") for cookie in secure] == [1, 1, 1]


@pytest.mark.parametrize(
    ("cookie", "told"),
    [
        (b"a=b", b"a=b; Secure"),
        (b"a=b; Path=/; HttpOnly; SameSite=lax", b"a=b; Path=/; HttpOnly; SameSite=lax; Secure"),
        (b"a=b; SECURE", b"a=b; SECURE"),
        (b"a=b;secure", b"a=b;secure"),
        (b"secure=1; Path=/secure", b"secure=1; Path=/secure; Secure"),
        (b"a=secure", b"a=secure; Secure"),
        (b"a=; secure ; Max-Age=0", b"a=; secure ; Max-Age=0"),
    ],
)
def test_the_flag_of_a_cookie_is_added_once_and_is_no_part_of_its_value(cookie, told):
    assert middleware.secured(cookie) == told


def test_no_other_site_may_send_messages_to_the_app():
    assert streamlit_config.get_option("client.allowedOrigins") == []
