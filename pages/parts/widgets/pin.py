"""Pinning of results with a note."""

from collections.abc import Callable

import streamlit as st

from core import findings
from pages.parts.shell import links, people, resources
from pages.parts.shell.messages import clear_errors


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
