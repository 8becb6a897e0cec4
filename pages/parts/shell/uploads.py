"""File uploads, for users whose role allows them; guard.py checks the role again when the file arrives."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.parts.shell import people

MAY_NOT = "To upload files, you need the role annotator. Ask an admin of this app for it."


def ask_file(label: str, types: Sequence[str], *, help: str = "", **settings: Any) -> Any:
    """Show the file uploader of Streamlit; for viewers, it is disabled."""
    may = people.person().may("annotator")
    return st.file_uploader(label, list(types), help=help if may else MAY_NOT, disabled=not may, **settings)
