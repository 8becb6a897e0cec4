"""Sign-in routes that replace those of Streamlit: a small cookie with a session for a token meant for this app, and a
sign-out that no other site can trigger."""

import json
import logging
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from pages.parts import streamlit_internals
from pages.parts.shell import people, sign_in_cookie
from pages.parts.streamlit_internals import user_cookie

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
    people.end_session(sign_in_cookie.signed_claims(request.cookies.get(user_cookie())))
    held_claims = {name: claims[name] for name in sign_in_cookie.HELD if name in claims and name != "session"}
    held_claims["session"] = people.begin_session(held_claims)
    if len(json.dumps(held_claims)) > sign_in_cookie.LARGEST:
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
    if sign_in_cookie.claims_of(request.cookies):
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
    return header[0].lower() == b"set-cookie" and (name == user_cookie() or sign_in_cookie.is_chunk(name))


def _claims_set(response: Response) -> dict[str, Any] | None:
    """Return the claims in the user cookie that this answer sets, whole or in chunks, or None."""
    written: dict[str, str] = {}
    for header in filter(_sets_user, response.raw_headers):
        name, _, cookie = header[1].decode("latin-1").partition("=")
        written[name.strip()] = cookie.partition(";")[0].strip()
    values = streamlit_internals.joined(user_cookie(), written)
    claims = json.loads(values) if values else None
    return claims if isinstance(claims, dict) else None
