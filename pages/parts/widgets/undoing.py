"""Undo of removals within a session."""

from collections.abc import Callable

import streamlit as st

from core.store.database import Database
from core.store.runs import Removed, put_back
from pages.parts.shell import resources
from pages.parts.shell.messages import clear_errors, plain

_REMOVED = "removed"
MOST = 10  # removals that can be undone, the newest first


def take_away(remove: Callable[[Database], Removed]) -> None:
    """Remove something and remember it; for the callback of a button."""
    with clear_errors():
        gone = remove(resources.database())
        st.session_state[_REMOVED] = [gone, *st.session_state.get(_REMOVED, [])][:MOST]


def offer_undo() -> None:
    """Show the newest removal, and a button that undoes it."""
    gone: list[Removed] = st.session_state.get(_REMOVED, [])
    if not gone:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="undoing"):
        st.caption(plain(f"Deleted: {gone[0].title}"), width="content")
        st.button("Undo", icon=":material/undo:", on_click=_undo, key="undo_removal")


def _undo() -> None:
    with clear_errors():
        put_back(resources.database(), st.session_state[_REMOVED][0])
        st.session_state[_REMOVED].pop(0)
