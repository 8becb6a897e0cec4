"""Generation: a decoder writes on from a prompt or a chat, and every new token's row of every map is kept."""

import streamlit as st

from core import config
from pages.parts.generation import asking, steps
from pages.parts.shell.messages import clear_errors
from pages.parts.widgets import pickers

with st.container(horizontal=True, vertical_alignment="center", key="bar"):
    st.title("Generation", width="content", anchor=False)
    checkpoint = pickers.pick_checkpoint(key="decoder", width=160, bare=True, default=config.DECODER)
    asked = asking.pick_prompt()
if checkpoint is None:
    st.info("Choose a decoder above.", icon=":material/arrow_upward:")
elif not asked.text.strip():
    st.info("Type a prompt above and press Enter: the model writes on, token by token.", icon=":material/edit:")
else:
    with clear_errors():
        steps.show_steps(checkpoint, asked)
