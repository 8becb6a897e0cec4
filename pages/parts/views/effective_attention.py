"""Effective attention: what is left of a map when the part that cannot reach the output is taken away."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.maps import effective
from pages.parts.shell import context
from pages.parts.shell.messages import clear_errors


def show(tools: DeltaGenerator) -> None:
    """Raw and effective maps of the context's sentence, then the stored measurements on rows."""
    st.caption(
        "What is left of a map when the part that cannot reach the output is taken away (Brunner et al. 2020); inputs "
        "of no more tokens than a head has dimensions lose nothing."
    )
    view_context = context.now()
    with clear_errors():
        if view_context.checkpoint and (view_context.text or "").strip():
            effective.show_effective(view_context.checkpoint, str(view_context.text), view_context.pair_or_none)
        else:
            st.info(
                "Type a text of about 40 words or more above, to see raw and effective attention side by side.",
                icon=":material/compare:",
            )
        effective.show_stored()
