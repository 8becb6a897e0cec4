"""What every page looks like beyond Streamlit's theme: frame.css, the mark, and the sidebar of a narrow window."""

from pathlib import Path

import streamlit as st

FRAME = Path(__file__).resolve().parent
ICON = str(FRAME / "icon.png")  # a file: named icons are fetched from the network
_STYLE = f"<style>{(FRAME / 'frame.css').read_text()}</style>"
_narrow = st.components.v2.component("atlas_narrow", js=(FRAME / "sidebar.js").read_text(), html="<span></span>\n")


def dress() -> None:
    """Put style and mark on the page."""
    st.html(_STYLE)
    st.logo(ICON, size="large")


def fold_when_narrow() -> None:
    """Let the sidebar give its room to the page where the window is narrow."""
    _narrow(key="narrow", data=None, height=1)
