"""Checks that a request comes from a page of this app, and who sends it; used by all endpoints."""

import ipaddress
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers
from starlette.requests import Request

from core import config
from core.store.people import Person
from pages.parts import streamlit_internals
from pages.parts.shell import people, sign_in_cookie

PORTS = {"http": 80, "https": 443}


class RefusedError(Exception):
    """Error: a request does not come from a page of this app."""


def who_asks(request: Request) -> Person:
    """Return who sent a request from a page of this app. Raises RefusedError for other requests."""
    check_source(request.headers)
    if streamlit_internals.forged(request.headers.get("x-xsrftoken"), request.cookies):
        raise RefusedError("the XSRF token of the request is missing or wrong")
    return people.person_of(sign_in_cookie.claims_of_request(request) if people.sign_in_configured() else {})


def check_source(headers: Headers) -> None:
    """Raise RefusedError for an unknown host, or the origin of another site.

    Streamlit also accepts origins of other servers on the visitor's machine, and of this machine's addresses.
    """
    origin, host = headers.get("origin"), headers.get("host")
    if not _is_own_host(host):
        raise RefusedError(
            "the request names another host than this machine (add that host to server.allowedHosts to allow it)"
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
