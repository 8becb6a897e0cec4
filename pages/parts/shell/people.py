"""Who visits: the one signed in (OIDC, `[auth]` in .streamlit/secrets.toml), or whoever sits at this machine.

Roles stand in the `[roles]` of the same file; docs/explanation/security.md shows one. What a role allows is decided in
core.store.people and asked wherever something is written; here it is only shown.
"""

import ipaddress
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from core import config
from core.sign_in import SignIn, SignInSessions, sign_in
from core.store.people import Person, name_of, person_name, role_of
from pages.parts import streamlit_internals
from pages.parts.shell import remembered_choices
from pages.parts.shell.messages import plain


@cache
def configured() -> SignIn:
    """What secrets.toml said when the app started; a change holds from the next start. Errors: ConfigError."""
    files = st.get_option("secrets.files")
    return sign_in(files, chosen=streamlit_internals.is_set("secrets.files"))


def check() -> None:
    """Before the app starts: secrets that can be read, roles of the right form. Errors: ConfigError, RightsError."""
    role_of("", configured().roles)


def sign_in_configured() -> bool:
    """Whether visitors must sign in."""
    return configured().required


def person() -> Person:
    """Who visits now, in page scripts, fragments and callbacks alike. Errors: RightsError for faulty [roles]."""
    return person_of(_claims())


def _claims() -> dict[str, Any]:
    return {**st.user.to_dict(), "is_logged_in": st.user.get("is_logged_in")} if configured().required else {}


def person_of(claims: Mapping[str, Any]) -> Person:
    """Return the person of a sign-in cookie's claims while the session holds; a visitor if nobody signs in."""
    secrets = configured()
    if not secrets.required:
        return Person(role=config.settings().visitors or ("admin" if listens_here_only() else "viewer"))
    name = _name(claims) if signed_in(claims) else ""
    return Person(name, role_of(name, secrets.roles)) if name else Person(role="none")


def _name(claims: Mapping[str, Any]) -> str:
    return name_of(claims, by_subject=len(configured().providers) < 2)


# ---------------------------------------------------------------- sessions


def sessions() -> SignInSessions:
    """The sign-ins that hold, beside the database."""
    return _sessions(config.settings().database.expanduser())


@cache
def _sessions(database: Path) -> SignInSessions:
    return SignInSessions(database.with_name(f"{database.name}.sign-ins"))


def begin_session(claims: Mapping[str, Any]) -> str:
    """Begin a session of whom these claims name; returns its secret, which their cookie holds."""
    return sessions().begin(_name(claims))


def signed_in(claims: Mapping[str, Any]) -> bool:
    """Whether these are the claims of a sign-in whose session nobody ended, also of one without a name that counts."""
    return claims.get("is_logged_in") is True and sessions().holds(claims.get("session"), _name(claims))


def end_session(claims: Mapping[str, Any]) -> None:
    """End the session of these claims, wherever its cookie went."""
    sessions().end(claims.get("session"), _name(claims))


def sign_out() -> None:
    """End the session of whoever pressed the button, here and on the server, and let Streamlit clear the cookies."""
    end_session(_claims())
    st.logout()


def who_may_label() -> list[str] | None:
    """The names whose role lets them label, or None where anybody could come: no sign-in, or a role for everybody."""
    roles = configured().roles
    if not configured().required or Person(role=str(roles.get("default", "none"))).may("annotator"):
        return None
    return sorted({str(name) for role in ("annotator", "admin") for name in roles.get(role, ())})


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


def annotator_name(label: str = "Your name", *, key: str = "annotator", bare: bool = False) -> str:
    """The name that labels carry: of the one signed in, else as typed here (remembered in this browser).

    bare: for a bar, without the label above it.
    """
    signed_in_name = person().name
    shown: Literal["collapsed", "visible"] = "collapsed" if bare else "visible"
    if signed_in_name:
        st.text_input(
            label,
            signed_in_name,
            disabled=True,
            help="Your labels are stored with the name of your sign-in.",
            label_visibility=shown,
        )
        return signed_in_name
    typed = st.text_input(label, str(remembered_choices.recalled().get("name", ""))[:60], key=key, max_chars=60,
                          placeholder="Your name" if bare else "a name for your labels (not verified)",
                          persist_state="session", label_visibility=shown)  # fmt: skip
    name = person_name(unicodedata.normalize("NFC", typed or "").strip())
    if name:
        remembered_choices.remember({"name": name}, key=f"remember_{key}")
    return name


def admitted() -> bool:
    """Whether to run the page; otherwise what to do instead is shown: sign in, or ask for a role."""
    who = person()
    if who.role != "none":
        return True
    st.title("Attention Atlas")
    if not signed_in(_claims()):
        st.write("Sign in to see this app.")
        providers = configured().providers
        for name in providers:
            st.button(f"Sign in with {plain(name)}", on_click=st.login, args=(name,), key=f"sign_in_{name}")
        if not providers:
            st.button("Sign in", on_click=st.login, type="primary", key="sign_in")
        return False
    if who.name:
        st.error(
            f"You are signed in as {plain(who.name)} but have no role in this app. Ask its administrator for a role."
        )
    else:
        st.error(
            "Your sign-in cannot be used, because your e-mail address is not verified or has characters other than "
            "ASCII. Correct this at your identity provider and sign in again."
        )
    st.button("Sign out", on_click=sign_out, key="sign_out")
    return False


def who_is_here() -> None:
    """For the sidebar: the one signed in, their role, and the way out; a word to visitors who may only look."""
    who = person()
    if who.name:
        st.caption(f"{plain(who.name)} · {who.role}")
        st.button("Sign out", on_click=sign_out, key="sign_out")
    elif not who.may("annotator"):
        st.caption("You have the role viewer: you can see everything, but change nothing.")
