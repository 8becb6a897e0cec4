"""Disable heads: what a checkpoint says without some of its heads, on one sentence and on a task's rows."""

import streamlit as st

from pages.parts.disable_live import show_live
from pages.parts.disable_sweeps import show_sweeps

VIEWS = {"One sentence": show_live, "A task's rows": show_sweeps}

st.title("Disable heads")
st.caption(
    "Disabled, a head looks at every visible token alike (Kovaleva et al. 2019, section 4.6); zeroed, it says nothing "
    "(Michel et al. 2019); fixed, it looks at the previous, current, next or first token (Raganato et al. 2020)."
)
view = st.segmented_control("View", list(VIEWS), default="One sentence", required=True, key="view", bind="query-params",
                            label_visibility="collapsed")  # fmt: skip
VIEWS[view or "One sentence"]()
