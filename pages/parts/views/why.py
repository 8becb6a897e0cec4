"""Why a head attends where it does: the terms of one cell, by contributions of earlier components."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.attention import Head
from pages.parts.maps.score_decomposition import show_cells
from pages.parts.shell import context
from pages.parts.shell.messages import clear_errors


def show(tools: DeltaGenerator) -> None:
    view_context = context.now()
    with clear_errors():
        if not view_context.checkpoint or not (view_context.text or "").strip() or not view_context.head:
            st.info("Type a sentence and choose a head to see why it attends to a token.", icon=":material/help:")
            return
        show_cells(
            view_context.checkpoint, view_context.text or "", view_context.pair_or_none, Head.parse(view_context.head)
        )
