"""Earlier choices on any page, remembered in the session and in a cookie of this browser. They grant no rights."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import streamlit as st

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
