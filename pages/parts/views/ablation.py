"""Ablation: predictions and scores without some heads, for one sentence, on a task, and in training."""

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
    job_progress.show_jobs("disable")
    with clear_errors():
        show_results()
    with drawer("Run with other settings", "disable"):
        start_sweep()


VIEWS = {
    "One sentence": show_live,
    "A task's rows": show_sweeps,
    "All train rows": show_crossed,
    "Operators": show_operators,
    "Training without": show_training,
}
TITLES = {
    "One sentence": "One sentence",
    "A task's rows": "On a task",
    "All train rows": "Cross-fitted",
    "Operators": "Ablation methods",
    "Training without": "Fixed patterns",
}


def show(tools: DeltaGenerator) -> None:
    with tools:
        mode = url.pick(st.segmented_control, "Mode", TITLES, key="mode", required=True, label_visibility="collapsed")
    VIEWS[mode]()
