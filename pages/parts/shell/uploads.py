"""A place to drop a file, for those whose role may upload: guard.py asks again when the file comes."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.parts.shell import people

MAY_NOT = "To upload files, you need the role annotator. Ask an admin of this app for it."


def ask_file(label: str, types: Sequence[str], *, help: str = "", **settings: Any) -> Any:
    """Streamlit's uploader of one file; for visitors who may only look it stands there and takes nothing."""
    may = people.person().may("annotator")
    return st.file_uploader(label, list(types), help=help if may else MAY_NOT, disabled=not may, **settings)
