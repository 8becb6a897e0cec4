"""The visitor: the signed-in user (OIDC, `[auth]` in .streamlit/secrets.toml), or the user of this machine.

Roles are in `[roles]` of the same file (docs/explanation/security.md). core.store.people checks rights where data are
written; pages only show them.
"""

import ipaddress
import json
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import streamlit as st

from core import config
from core.sign_in import SignIn, SignInSessions, sign_in
from core.store.people import Person, name_of, person_name, role_of
from pages.parts import streamlit_internals
from pages.parts.shell.messages import plain


@cache
def configured() -> SignIn:
    """Return the configuration of secrets.toml at the start of the app. Raises ConfigError."""
    files = st.get_option("secrets.files")
    return sign_in(files, chosen=streamlit_internals.is_set("secrets.files"))


def check() -> None:
    """Check the secrets and roles before the app starts. Raises ConfigError or RightsError."""
    role_of("", configured().roles)


def sign_in_configured() -> bool:
    return configured().required


def person() -> Person:
    """Return the current visitor, in page scripts, fragments and callbacks. Raises RightsError for invalid [roles]."""
    return person_of(_claims())


def _claims() -> dict[str, Any]:
    return {**st.user.to_dict(), "is_logged_in": st.user.get("is_logged_in")} if configured().required else {}


def person_of(claims: Mapping[str, Any]) -> Person:
    """Return the person in the claims of a sign-in cookie with a valid session; a visitor if sign-in is not set up."""
    secrets = configured()
    if not secrets.required:
        return Person(role=config.settings().visitors or ("admin" if listens_here_only() else "viewer"))
    name = _name(claims) if signed_in(claims) else ""
    return Person(name, role_of(name, secrets.roles)) if name else Person(role="none")


def _name(claims: Mapping[str, Any]) -> str:
    return name_of(claims, by_subject=len(configured().providers) < 2)


# ---------------------------------------------------------------- sessions


def sessions() -> SignInSessions:
    """Return the active sign-in sessions, stored next to the database."""
    return _sessions(config.settings().database.expanduser())


@cache
def _sessions(database: Path) -> SignInSessions:
    return SignInSessions(database.with_name(f"{database.name}.sign-ins"))


def begin_session(claims: Mapping[str, Any]) -> str:
    """Begin a session for the person in these claims, and return its secret for the cookie."""
    return sessions().begin(_name(claims))


def signed_in(claims: Mapping[str, Any]) -> bool:
    """Return whether these claims belong to an active session."""
    return claims.get("is_logged_in") is True and sessions().holds(claims.get("session"), _name(claims))


def end_session(claims: Mapping[str, Any]) -> None:
    sessions().end(claims.get("session"), _name(claims))


def sign_out() -> None:
    """End the session of the current user, here and on the server, and let Streamlit clear the cookies."""
    end_session(_claims())
    st.logout()


def who_may_label() -> list[str] | None:
    """Return the names whose role allows labelling; None if anybody may come (no sign-in, or a default role)."""
    roles = configured().roles
    if not configured().required or Person(role=str(roles.get("default", "none"))).may("annotator"):
        return None
    return sorted({str(name) for role in ("annotator", "admin") for name in roles.get(role, ())})


def shared() -> bool:
    """Return whether other people than the user of this machine can use the app."""
    return sign_in_configured() or not listens_here_only()


def listens_here_only() -> bool:
    """Return whether the server listens only on this machine's own address."""
    address = str(st.get_option("server.address") or "").strip("[]")
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def annotator_name(label: str = "Your name", *, key: str = "annotator", bare: bool = False) -> str:
    """Return the annotator name: that of the signed-in user, otherwise as typed here (remembered in this browser)."""
    signed_in_name = person().name
    shown: Literal["collapsed", "visible"] = "collapsed" if bare else "visible"
    if signed_in_name:
        st.text_input(
            label,
            signed_in_name,
            disabled=True,
            help="Your labels are stored under the name with which you signed in.",
            label_visibility=shown,
        )
        return signed_in_name
    typed = st.text_input(label, str(recalled().get("name", ""))[:60], key=key, max_chars=60,
                          placeholder="Your name" if bare else "a name for your labels (not verified)",
                          persist_state="session", label_visibility=shown)  # fmt: skip
    name = person_name(unicodedata.normalize("NFC", typed or "").strip())
    if name:
        remember({"name": name}, key=f"remember_{key}")
    return name


def admitted() -> bool:
    """Return whether to run the page; otherwise show what to do instead (sign in, or request a role)."""
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
            "Your sign-in cannot be used, because your e-mail address is missing, is not verified or has characters "
            "other than ASCII. Correct this at your identity provider and sign in again."
        )
    st.button("Sign out", on_click=sign_out, key="sign_out")
    return False


def who_is_here() -> None:
    """Show the signed-in user, the role and *Sign out* in the sidebar; viewers get a notice."""
    who = person()
    if who.name:
        st.caption(f"{plain(who.name)} · {who.role}")
        st.button("Sign out", on_click=sign_out, key="sign_out")
    elif not who.may("annotator"):
        st.caption("Your role is viewer, so you can see everything but change nothing.")


# -------------------- choices that this browser remembers; they grant no rights


COOKIE, LONGEST = "atlas_choices", 3000  # characters; browsers keep cookies of 4 kB
_KEPT = "remembered_choices"
_cookie = st.components.v2.component(
    "atlas_remembered",
    js="export default function ({ data }) {\n"
    f"  document.cookie = `{COOKIE}=${{encodeURIComponent(data.text)}}; path=/; max-age=31536000; SameSite=Lax`;\n}}\n",
    html="<span></span>\n",
)


def recalled() -> dict[str, Any]:
    """Return all remembered choices; empty if the cookie cannot be read."""
    if _KEPT not in st.session_state:
        cookie = st.context.cookies.get(COOKIE)
        try:
            choices = json.loads(unquote(cookie)) if isinstance(cookie, str) else {}
        except ValueError:
            choices = {}
        st.session_state[_KEPT] = choices if isinstance(choices, dict) else {}
    return dict(st.session_state[_KEPT])


def remember(choices: Mapping[str, Any], *, key: str) -> None:
    """Add choices to the remembered ones. `key` is that of the component, one per place on the page."""
    everything = recalled() | dict(choices)
    text = json.dumps(everything)
    if len(text) <= LONGEST:
        st.session_state[_KEPT] = everything
        _cookie(key=key, data={"text": text}, height=1)


# ---------------------------------------------------------------- uploads


MAY_NOT = "To upload files, you need the role annotator. Ask an admin of this app for it."


def ask_file(label: str, types: Sequence[str], *, help: str = "", **settings: Any) -> Any:
    """Show the file uploader of Streamlit; for viewers, it is disabled. The guard checks the role again when the file
    arrives."""
    may = person().may("annotator")
    return st.file_uploader(label, list(types), help=help if may else MAY_NOT, disabled=not may, **settings)
