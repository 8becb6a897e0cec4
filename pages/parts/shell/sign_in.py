"""Sign-in: the signed cookie with minimal content, and the routes that replace those of Streamlit.

Streamlit signs each chunk of a large cookie separately, so that chunks of two sign-ins can be combined to another
address (docs/explanation/security.md). Here a cookie is one signed value, and values in chunks are invalid. It names a
session, which the server ends at sign-out. No other site can trigger the sign-out.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any

import streamlit as st
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from pages.parts import streamlit_internals
from pages.parts.shell import people
from pages.parts.streamlit_internals import user_cookie

NAMES = ("email", "email_verified", "sub")  # claims that core.store.people.name_of reads
HELD = (*NAMES, "provider", "origin", "is_logged_in", "session")
LARGEST = 3000  # bytes of the claims: a browser keeps 4096 of name, signature and value


def claims_of(cookies: Mapping[str, str]) -> dict[str, Any]:
    """Return the claims of a cookie that this app signed; {} for others, for chunks, and after the session has
    ended."""
    claims = signed_claims(cookies.get(user_cookie()))
    return claims if people.signed_in(claims) else {}


def signed_claims(value: str | None) -> dict[str, Any]:
    """Return the content of a cookie's one signed value; {} if it is not signed by this app, or is a chunk."""
    try:
        signed_value = streamlit_internals.signed(user_cookie(), value or "")
        claims = json.loads(signed_value) if signed_value else None
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) and set(claims) <= set(HELD) else {}


def claims_of_request(request: Request) -> dict[str, Any]:
    """Return the claims in the cookie of a request, with the origin of the sign-in."""
    claims = claims_of(request.cookies)
    return claims if claims.get("origin") == request.headers.get("origin") else {}


def is_chunk(name: str) -> bool:
    """Return whether a cookie of this name is a chunk of a user cookie."""
    before, _, number = name.rpartition("_")
    return before == user_cookie() and number.isdigit()


def without_strangers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request without invalid user cookies and without chunks, which Streamlit would join."""
    values = Headers(raw=headers).getlist("cookie")
    if user_cookie() not in ";".join(values):
        return headers
    cookies: dict[str, str] = {}
    for header in values:
        cookies.update(streamlit_internals.cookies_in(header))
    dropped = {name for name in cookies if is_chunk(name)}
    if not claims_of(cookies):
        dropped |= {name for name in cookies if name == user_cookie()}
    parts = [part for header in values for part in header.split(";") if part.partition("=")[0].strip() not in dropped]
    other_headers = [(name, value) for name, value in headers if name.lower() != b"cookie"]
    return [*other_headers, (b"cookie", ";".join(parts).encode("latin-1"))]


# ---------------------------------------------------------------- routes


log = logging.getLogger("atlas")
ELSEWHERE = (
    "Your identity provider returned a sign-in for another app. Sign in again. If this happens again, ask the "
    "administrator of this app to compare its client_id with the one at the provider."
)
TOO_LARGE = (
    "The name that your identity provider uses for you is too long for a cookie. Ask the administrator of this app "
    "to use another provider."
)
BY_THE_BUTTON = "You are still signed in. To sign out, use the button in the sidebar of the app."


async def came_back(request: Request) -> Response:
    """Handle the answer of the provider (oauth2callback): Streamlit checks it, and the cookie is reduced to what is
    needed."""
    response = await streamlit_internals.answer_callback(request, _base())
    claims = _claims_set(response)
    if claims is None:
        return response
    if not meant_for(claims.get("aud"), people.configured().clients.get(str(claims.get("provider")))):
        log.warning(
            "A sign-in was refused, because its token was issued for another application: %.80r", claims.get("aud")
        )
        return _refused(ELSEWHERE, request)
    people.end_session(signed_claims(request.cookies.get(user_cookie())))
    held_claims = {name: claims[name] for name in HELD if name in claims and name != "session"}
    held_claims["session"] = people.begin_session(held_claims)
    if len(json.dumps(held_claims)) > LARGEST:
        people.end_session(held_claims)
        return _refused(TOO_LARGE, request)
    response.raw_headers = [header for header in response.raw_headers if not _sets_user(header)]
    streamlit_internals.write_user_cookie(response, request, json.dumps(held_claims))
    return response


def meant_for(audience: Any, client: str | None) -> bool:
    """Return whether the `aud` of an ID token names this app (OpenID Connect Core 3.1.3.7); Authlib accepts an empty
    one."""
    listed = audience if isinstance(audience, list) else [audience]
    return bool(client) and all(isinstance(name, str) for name in listed) and client in listed


async def sign_out(request: Request) -> Response:
    """Clear the cookies of a session that the app's button has ended (people.sign_out); valid sessions are unaffected.

    A link or image on another site can open this route with the cookies, but cannot press the button.
    """
    if claims_of(request.cookies):
        return HTMLResponse(f"<!doctype html><title>Attention Atlas</title><p>{BY_THE_BUTTON}</p>", 403)
    return await streamlit_internals.answer_sign_out(request, _base())


def routes() -> list[Route]:
    """Return the routes, to be placed before those of Streamlit."""
    base = _base().strip("/")
    prefix = f"/{base}" if base else ""
    return [
        Route(f"{prefix}/oauth2callback", came_back, methods=["GET"]),
        Route(f"{prefix}/auth/logout", sign_out, methods=["GET"]),
    ]


def _base() -> str:
    return str(st.get_option("server.baseUrlPath") or "")


def _refused(why: str, request: Request) -> Response:
    response = HTMLResponse(f"<!doctype html><title>Attention Atlas</title><p>{why}</p>", 403)
    streamlit_internals.clear_cookies(response, request)
    return response


def _sets_user(header: tuple[bytes, bytes]) -> bool:
    name = header[1].partition(b"=")[0].decode("latin-1").strip()
    return header[0].lower() == b"set-cookie" and (name == user_cookie() or is_chunk(name))


def _claims_set(response: Response) -> dict[str, Any] | None:
    """Return the claims in the user cookie that this answer sets, whole or in chunks, or None."""
    written: dict[str, str] = {}
    for header in filter(_sets_user, response.raw_headers):
        name, _, cookie = header[1].decode("latin-1").partition("=")
        written[name.strip()] = cookie.partition(";")[0].strip()
    values = streamlit_internals.joined(user_cookie(), written)
    claims = json.loads(values) if values else None
    return claims if isinstance(claims, dict) else None
