"""What every page looks like beyond Streamlit's theme: frame.css, the mark, and the sidebar of a narrow window."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

FRAME = Path(__file__).resolve().parent
ICON = str(FRAME / "icon.png")  # a file: named icons are fetched from the network
_STYLE = f"<style>{(FRAME / 'frame.css').read_text()}</style>"
_window = st.components.v2.component("atlas_window", js=(FRAME / "sidebar.js").read_text(), html="<span></span>\n")


def dress() -> None:
    """Put style and mark on the page."""
    st.html(_STYLE)
    st.logo(ICON, size="large")


@st.fragment
def watch_window(on_painted: Callable[[], None]) -> None:
    """Let the sidebar give its room to the page where the window is narrow; call `on_painted` when a page stands."""
    if _window(key="window", data=None, height=1, on_painted_change=lambda: None).painted:
        on_painted()
