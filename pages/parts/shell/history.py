"""Parameters in the URL, and Back and Forward in the browser.

Streamlit adds a history entry for every message that changes the URL, so related changes are written together. After
Back, the page runs again with the old URL, which must override the state of the page.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.parts.streamlit_internals import went_back

_TURNS, _ASKED = "_history_turns", "_history_asked"


def keyed(name: str) -> str:
    """Return a key for a widget with its own state, which is reset when the user goes back or forward."""
    turns = st.session_state.get(_TURNS, 0)
    return f"{name}_{turns}" if turns else name


def count_turn() -> None:
    """Count a navigation; called once per run, before any call of `keyed`."""
    if went_back():
        st.session_state[_TURNS] = st.session_state.get(_TURNS, 0) + 1
        st.session_state[_ASKED] = {name: "\n".join(st.query_params.get_all(name)) for name in st.query_params}


def last_turn() -> dict[str, Any]:
    """Return the number of the last Back or Forward with the requested parameters; {} before the first.

    Components with state in the browser use it to detect that the page has answered.
    """
    turns = st.session_state.get(_TURNS, 0)
    return {"turn": turns, "asked": st.session_state.get(_ASKED, {})} if turns else {}


def keep(values: Mapping[str, str | Sequence[str] | None]) -> None:
    """Write parameters into the URL as one history entry; None removes a parameter, and several values are repeated."""
    changed = {
        name: value
        for name, value in values.items()
        if value and (st.query_params.get(name) if isinstance(value, str) else st.query_params.get_all(name)) != value
    }
    removed = [name for name, value in values.items() if not value and st.query_params.get(name)]
    if len(removed) == 1 and not changed:
        del st.query_params[removed[0]]
    elif changed or removed:
        st.query_params.update(changed | dict.fromkeys(removed, ""))
