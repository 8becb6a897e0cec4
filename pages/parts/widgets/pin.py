"""Pin a result with a note: the popover that pages show beside it."""

from collections.abc import Callable

import streamlit as st

from core import findings
from pages.parts.shell import links, people, resources
from pages.parts.shell.messages import clear_errors


def offer_pin(pin: Callable[[str, str, str], object], *, key: str) -> None:
    """A popover that asks for a title, a note and a name. pin: keeps them, in this order. key: of this result."""
    with st.popover("Pin", icon=":material/push_pin:", help="Keep this result with a note, under Results, Pinned"):
        title = st.text_input("Title", key=f"{key}_title", placeholder="the result's own", max_chars=200)
        note = st.text_area("Note", key=f"{key}_note", placeholder="what it shows", max_chars=5000)
        who = people.annotator_name(key=f"{key}_who")
        if st.button("Pin it", key=f"{key}_pin", type="primary"):
            with clear_errors():
                pin(title, note, who)
                st.success("Pinned.")
                links.link("results/pinned", icon=":material/push_pin:")


def offer_pin_of_run(run: str, *, key: str) -> None:
    """The same for a stored run."""

    def pin(title: str, note: str, who: str) -> None:
        findings.pinning.pin_run(resources.database(), run, note, annotator=who, title=title)

    offer_pin(pin, key=key)
