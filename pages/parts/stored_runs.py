"""Choosing among the stored runs of a study."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from core.store.runs import runs
from pages.parts.frame import resources
from pages.parts.pin import offer_pin_of_run


def title_of(about: pd.Series) -> str:
    """A run as pickers name it."""
    return f"{about['title']} · {about['checkpoint']} · {about['created']:%d %B %Y %H:%M}"


def pick_run(
    study: str,
    empty: str,
    key: str = "run",
    *,
    label: str = "Results of",
    icon: str = ":material/block:",
    said: Callable[[pd.Series], str] = title_of,
) -> tuple[str, pd.Series] | None:
    """One of the stored runs of a study and what is known of it; without any, None and a hint what to do first."""
    known = runs(resources.database(), study)
    if known.empty:
        st.info(empty, icon=icon)
        return None
    about = known.set_index("run")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        run = st.selectbox(
            label, list(about.index), format_func=lambda one: said(about.loc[one]), key=key, bind="query-params"
        )
        offer_pin_of_run(run, key=f"pin_{key}")
    return run, about.loc[run]
