"""Who visits: the one signed in (OIDC, `[auth]` in .streamlit/secrets.toml), or whoever sits at this machine.

Roles stand in the `[roles]` of the same file; docs/security.md shows one. What a role allows is decided in
core.store.people and asked wherever something is written; here it is only shown.
"""

import ipaddress
from collections.abc import Mapping
from typing import Any

import streamlit as st

from core import config
from core.store.people import Person, role_of
from pages.parts.shell import plain


def secrets(section: str) -> dict[str, Any]:
    """A section of secrets.toml; empty where there is no such section or file."""
    if not st.secrets.load_if_toml_exists():
        return {}
    found = st.secrets.get(section, {})
    return dict(found) if isinstance(found, Mapping) else {}


def sign_in_configured() -> bool:
    """Whether visitors must sign in."""
    return bool(secrets("auth"))


def person() -> Person:
    """Who visits now, in page scripts, fragments and callbacks alike. Errors: RightsError for faulty [roles]."""
    if not sign_in_configured():
        return Person(role=config.settings().visitors or ("admin" if listens_here_only() else "viewer"))
    if not st.user.get("is_logged_in") or st.user.get("email_verified") is False:
        return Person(role="none")
    name = str(st.user.get("email") or st.user.get("sub") or "").strip().lower()
    return Person(name, role_of(name, secrets("roles"))) if name else Person(role="none")


def shared() -> bool:
    """Whether others than the person at this machine may come."""
    return sign_in_configured() or not listens_here_only()


def listens_here_only() -> bool:
    """Whether the server's address is this machine's own, so that nobody else can come."""
    address = str(st.get_option("server.address") or "").strip("[]")
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def annotator_name(label: str = "Your name", *, key: str = "annotator") -> str:
    """The name that labels carry: of the one signed in, else as typed here (kept for the session)."""
    known = person().name
    if known:
        st.text_input(label, known, disabled=True, help="Labels carry the name you signed in with.")
        return known
    return st.text_input(label, key=key, max_chars=60, placeholder="a name for your labels").strip()


def admitted() -> bool:
    """Whether to run the page; otherwise what to do instead is shown: sign in, or ask for a role."""
    who = person()
    if who.role != "none":
        return True
    st.title("Attention Atlas")
    if not st.user.get("is_logged_in"):
        st.write("Sign in to see this app.")
        _sign_in_buttons()
        return False
    if st.user.get("email_verified") is False:
        st.error("Your provider says that your e-mail address is not verified; verify it there and sign in again.")
    else:
        st.error(f"{plain(who.name)} is signed in but has no role here; ask whoever runs this app for one.")
    st.button("Sign out", on_click=st.logout, key="sign_out")
    return False


def _sign_in_buttons() -> None:
    named = [name for name, part in secrets("auth").items() if isinstance(part, Mapping) and "client_id" in part]
    for name in named:
        st.button(f"Sign in with {plain(name)}", on_click=st.login, args=(name,), key=f"sign_in_{name}")
    if not named:
        st.button("Sign in", on_click=st.login, type="primary", key="sign_in")


def who_is_here() -> None:
    """For the sidebar: the one signed in, their role, and the way out; a word to visitors who may only look."""
    who = person()
    if who.name:
        st.caption(f"{plain(who.name)} · {who.role}")
        st.button("Sign out", on_click=st.logout, key="sign_out")
    elif not who.may("annotator"):
        st.caption("You may look at everything here, and change nothing.")
