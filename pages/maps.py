"""Attention maps: every head of a checkpoint on one sentence or pair."""

import streamlit as st

from pages.parts import pickers

st.title("Attention maps")
name = pickers.pick_checkpoint()
text = pickers.pick_text(placeholder="Type a sentence and press Enter")
if not text:
    st.info("Type a sentence to see what every head attends to.")
    st.stop()
