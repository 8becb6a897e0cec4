"""Gates and pairs: what heads do together."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.disable.heads_together import show_gates, show_pairs, show_shapley
from pages.parts.shell import bound
from pages.parts.shell.messages import clear_errors

VIEWS = {"Gates": show_gates, "Pairs of heads": show_pairs, "Shapley values": show_shapley}


def show(tools: DeltaGenerator) -> None:
    """One of the three."""
    with tools:
        view = bound.pick(st.segmented_control, "What is measured", list(VIEWS), key="mode", required=True,
                          label_visibility="collapsed")  # fmt: skip
    with clear_errors():
        VIEWS[view]()
