"""Beyond weights: norms |alpha f(x)|, rollout, flow and value zeroing of one input."""

import streamlit as st

from core.atlas import example
from pages.parts.atlas import beyond
from pages.parts.shell import bound
from pages.parts.shell.messages import clear_errors
from pages.parts.widgets import pickers

SHOWN = {
    "norms": beyond.show_norms,
    "rollout": beyond.show_rollout,
    "flow": beyond.show_flow,
    "value zeroing": beyond.show_zeroing,
}

st.title("Beyond weights")
with clear_errors():
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = pickers.pick_checkpoint()
        kind = bound.pick(st.segmented_control, "View", list(SHOWN), key="view", required=True)
        wanted = bound.switch(st.toggle, "Compute", key="compute", default=True, help="Runs the checkpoint once")
    places = st.columns([3, 2])
    with places[0]:
        text = pickers.pick_text("Sentence", default=example.TEXT)
    with places[1]:
        pair = pickers.pick_text("Second sentence, optional", key="pair")
    st.caption(beyond.MEANING[kind])
    if name and text.strip() and wanted:
        SHOWN[kind](name, text, pair.strip() or None)
    else:
        st.info("Type a sentence, and switch on “Compute”.", icon=":material/play_circle:")
