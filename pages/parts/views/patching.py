"""Perturb: two inputs side by side, one patched into the other, edges cut, and the same on a task's rows."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.perturb.cutting import show_cutting
from pages.parts.perturb.patching import show_patching
from pages.parts.perturb.rows import show_rows
from pages.parts.perturb.side_by_side import show_pair
from pages.parts.shell import url

VIEWS = {
    "Two inputs": show_pair,
    "Patching": show_patching,
    "Cut edges": show_cutting,
    "A task's rows": show_rows,
}


def show(tools: DeltaGenerator) -> None:
    """The view."""
    st.caption(
        "Change the input and see what the model makes of it; put what heads, blocks or layers gave on one input "
        "into the "
        "other; or cut edges of attention."
    )
    VIEWS[url.pick_mode(list(VIEWS))]()
