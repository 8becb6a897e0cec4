"""Gates and pairs: what heads do together."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.disable.heads_together import show_gates, show_pairs, show_shapley
from pages.parts.reports.stored_runs import has_results
from pages.parts.shell import url
from pages.parts.shell.messages import clear_errors

VIEWS = {
    "Gates": ("gates", show_gates),
    "Pairs of heads": ("pairs", show_pairs),
    "Shapley values": ("shapley", show_shapley),
}


def show(tools: DeltaGenerator) -> None:
    """One of the three; the first that was measured, where none was chosen."""
    with clear_errors():
        measured = next((name for name, (study, _) in VIEWS.items() if has_results(study)), None)
        with tools:
            view = url.pick(st.segmented_control, "What is measured", list(VIEWS), key="mode", required=True,
                              default=measured, label_visibility="collapsed")  # fmt: skip
        VIEWS[view][1]()
