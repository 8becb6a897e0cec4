"""Generation: a decoder writes on from a prompt or a chat, and every new token's row of every map is kept."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.generation import asking, steps
from pages.parts.shell import context
from pages.parts.shell.messages import clear_errors


def show(tools: DeltaGenerator) -> None:
    """The prompt written on."""
    view_context = context.now()
    with tools:
        prompt = asking.pick_prompt(view_context.text or "")
    if not prompt.text.strip():
        st.info("Type a prompt above and press Enter: the model writes on, token by token.", icon=":material/edit:")
        return
    with clear_errors():
        steps.show_steps(str(view_context.checkpoint), prompt)
