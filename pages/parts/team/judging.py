"""Truths are computed once for the labels they are of."""

import pandas as pd
import streamlit as st

from core.patterns.truth import Method, Truth, truth


@st.cache_data(show_spinner="Aggregating the labels ...", max_entries=12)
def judged(labelled: pd.DataFrame, names: tuple[str, ...], method: Method) -> Truth:
    """The truth of these labels."""
    return truth(labelled, names, method)
