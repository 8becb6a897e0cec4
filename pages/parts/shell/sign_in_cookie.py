"""The signed cookie of a sign-in: who it names, with minimal content.

Streamlit signs each chunk of a large cookie separately, so that chunks of two sign-ins can be combined to another
address (docs/explanation/security.md). Here a cookie is one signed value, and values in chunks are invalid. It names a
session, which the server ends at sign-out.
"""

import json
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request

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
