"""Disable heads: what a checkpoint says without some of its heads: one sentence, a task's rows, learning without."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.disable.cross_fitting import show_crossed
from pages.parts.disable.live import show_live
from pages.parts.disable.operators import show_operators
from pages.parts.disable.results import show_results
from pages.parts.disable.sweeps import start_sweep
from pages.parts.disable.training import show_training
from pages.parts.reports.study_view import drawer
from pages.parts.shell import url
from pages.parts.shell.messages import clear_errors
from pages.parts.widgets import job_progress


def show_sweeps() -> None:
    """Start a sweep; see what is running; look at results."""
    with drawer("Sweep another checkpoint or task", "disable"):
        start_sweep()
    job_progress.show_jobs("disable")
    with clear_errors():
        show_results()


VIEWS = {
    "One sentence": show_live,
    "A task's rows": show_sweeps,
    "All train rows": show_crossed,
    "Operators": show_operators,
    "Training without": show_training,
}


def show(tools: DeltaGenerator) -> None:
    """The view."""
    st.caption(
        "Disabled, a head looks at every visible token alike (Kovaleva et al. 2019, section 4.6); zeroed, it says "
        "nothing "
        "(Michel et al. 2019); fixed, it looks at the previous, current, next or first token (Raganato et al. 2020)."
    )
    VIEWS[url.pick_mode(list(VIEWS), "What is run")]()
