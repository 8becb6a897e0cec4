"""What every page looks like beyond Streamlit's theme: page.css, the mark, and the sidebar of a narrow window."""

from pathlib import Path

import streamlit as st

FRAME = Path(__file__).resolve().parent
ICON = str(FRAME / "icon.png")  # a file: named icons are fetched from the network
_STYLE = f"<style>{(FRAME / 'page.css').read_text(encoding='utf-8')}</style>"
_window = st.components.v2.component(
    "atlas_window", js=(FRAME / "sidebar.js").read_text(encoding="utf-8"), html="<span></span>\n"
)


def dress() -> None:
    """Put style and mark on the page."""
    st.html(_STYLE)
    st.logo(ICON, size="large")


def watch_window() -> None:
    """Let the sidebar give its room to the page where the window is narrow; the browser says when a page stands.

    It says so to the server's route `painted`, not to this script: a component's message that leaves the browser
    together with what was just typed elsewhere takes that along to its own fragment, and the page does not see it.
    """
    _window(key="window", data=None, height=1)
