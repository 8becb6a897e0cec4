"""Norms, rollout and flow: norms |alpha f(x)|, rollout, flow and value zeroing of one input."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.atlas import beyond
from pages.parts.shell import context, url
from pages.parts.shell.messages import clear_errors

SHOWN = {
    "norms": beyond.show_norms,
    "rollout": beyond.show_rollout,
    "flow": beyond.show_flow,
    "value zeroing": beyond.show_zeroing,
}


def show(tools: DeltaGenerator) -> None:
    """One of the four, of the sentence of the context."""
    view_context = context.now()
    with tools:
        kind = url.pick_mode(list(SHOWN), "Measure")
        is_on = url.switch(st.toggle, "Compute", key="compute", default=True, help="Runs the checkpoint once")
    with clear_errors():
        st.caption(beyond.MEANING[kind])
        text = view_context.text or ""
        if view_context.checkpoint and text.strip() and is_on:
            SHOWN[kind](view_context.checkpoint, text, view_context.pair_or_none)
        else:
            st.info("Type a sentence, and switch on “Compute”.", icon=":material/play_circle:")
