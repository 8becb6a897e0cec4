"""What stands in the URL, and the browser's Back and Forward.

Streamlit pushes an entry for every message that changes the URL, so what changes together is written together; on
Back it runs the page again with the old URL, and what the page kept for itself must give way to it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.parts.streamlit_internals import went_back

_TURNS, _ASKED = "_history_turns", "_history_asked"


def keyed(name: str) -> str:
    """A key for what holds its choice itself and must forget it when the user goes back or forward."""
    turns = st.session_state.get(_TURNS, 0)
    return f"{name}_{turns}" if turns else name


def count_turn() -> None:
    """The page calls it once in a run, before anything asks for a key."""
    if went_back():
        st.session_state[_TURNS] = st.session_state.get(_TURNS, 0) + 1
        st.session_state[_ASKED] = {name: "\n".join(st.query_params.get_all(name)) for name in st.query_params}


def last_turn() -> dict[str, Any]:
    """When the user last went back or forward: its number, and what the address asked for; {} before the first.

    A component that keeps its own state in the browser knows by it that the page has answered.
    """
    turns = st.session_state.get(_TURNS, 0)
    return {"turn": turns, "asked": st.session_state.get(_ASKED, {})} if turns else {}


def keep(values: Mapping[str, str | Sequence[str] | None]) -> None:
    """Write these parameters into the URL as one entry of the history; None takes a parameter out.

    Several values of one name stand there one after another.
    """
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
