"""The signed cookie of a sign-in: who it names, and the little that it holds.

Streamlit signs each chunk of a large cookie alone, so that chunks of two honest sign-ins can be joined into somebody
else's address (docs/explanation/security.md). Here a cookie is a signed value: what the provider says beyond a name is
left out,
and a value in chunks is nobody's. It names a session, which the server ends at sign-out.
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
    """The claims of a cookie that this app signed, {} for any other, for chunks, and where its session was ended."""
    claims = signed_claims(cookies.get(user_cookie()))
    return claims if people.signed_in(claims) else {}


def signed_claims(value: str | None) -> dict[str, Any]:
    """What a cookie's one signed value says; {} where it is not signed here, or is a part of several."""
    try:
        signed_value = streamlit_internals.signed(user_cookie(), value or "")
        claims = json.loads(signed_value) if signed_value else None
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) and set(claims) <= set(HELD) else {}


def claims_of_request(request: Request) -> dict[str, Any]:
    """Whose cookie a request of a page carries: with the origin that signed in, which a page's request always names."""
    claims = claims_of(request.cookies)
    return claims if claims.get("origin") == request.headers.get("origin") else {}


def is_chunk(name: str) -> bool:
    """Whether a cookie of this name is a part of a user cookie in several."""
    before, _, number = name.rpartition("_")
    return before == user_cookie() and number.isdigit()


def without_strangers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """A request's headers, its user cookie left out where it is nobody's, and chunks of one always.

    Streamlit joins chunks before it looks at them; it is to see none.
    """
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
