"""Start: what this is, all heads of a sentence, and four ways in."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.shell import links


def show(tools: DeltaGenerator) -> None:
    """One sentence, and the ways in."""
    st.markdown("Attention Atlas shows what every attention head of a BERT- or GPT-2-like checkpoint looks at.")
    with st.container(horizontal=True):
        links.link("maps", "See a sentence")
        links.link("reproduction", "Reproduce the paper")
        links.link("annotate", "Label maps")
        links.link("projects", "Lead a project")
