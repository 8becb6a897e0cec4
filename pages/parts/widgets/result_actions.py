"""Actions on results: pinning with a note, and removal that can be undone within a session."""

from collections.abc import Callable

import streamlit as st

from core import findings
from core.store import runs
from core.store.database import Database
from core.store.runs import Removed, put_back
from pages.parts.shell import links, people, resources
from pages.parts.shell.messages import clear_errors, plain


def offer_pin(pin: Callable[[str, str, str], object], *, key: str) -> None:
    """Show a popover for a title, a note and a name; `pin` stores them, in this order."""
    with st.popover(
        "Pin",
        icon=":material/push_pin:",
        help="Stores this result with a note. Results > Pinned lists all pinned results.",
    ):
        ask_pin(pin, key=key)


def ask_pin(pin: Callable[[str, str, str], object], *, key: str) -> None:
    title = st.text_input("Title", key=f"{key}_title", placeholder="title of the pinned result", max_chars=200)
    note = st.text_area("Note", key=f"{key}_note", placeholder="note on what the result shows", max_chars=5000)
    who = people.annotator_name(key=f"{key}_who")
    if st.button("Pin", key=f"{key}_pin", icon=":material/push_pin:", type="primary"):
        with clear_errors():
            pin(title, note, who)
            st.success("Pinned.")
            links.link("results/pinned", icon=":material/push_pin:")


def ask_pin_of_run(run: str, *, key: str) -> None:
    """Show the fields and the button that pin a stored run."""
    ask_pin(_of_run(run), key=key)


def offer_pin_of_run(run: str, *, key: str) -> None:
    offer_pin(_of_run(run), key=key)


def _of_run(run: str) -> Callable[[str, str, str], object]:
    def pin(title: str, note: str, who: str) -> None:
        findings.pinning.pin_run(resources.database(), run, note, annotator=who, title=title)

    return pin


# ---------------------------------------------------------------- removal and undo


_REMOVED = "removed"
MOST = 10  # removals that can be undone, the newest first


def take_away(remove: Callable[[Database], Removed]) -> None:
    """Remove something and remember it; for the callback of a button."""
    with clear_errors():
        gone = remove(resources.database())
        st.session_state[_REMOVED] = [gone, *st.session_state.get(_REMOVED, [])][:MOST]


def delete_run(run: str) -> None:
    """Delete a stored run, which can be undone."""
    take_away(lambda db: runs.remove_run(db, run))


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
