"""Prune: which heads matter to the loss, and how many can be removed before the metric falls."""

from dataclasses import asdict

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.disable.prune_pictures import show_curves, show_importance
from pages.parts.disable.sweeps import shared_options
from pages.parts.reports.study_view import drawer
from pages.parts.shell import url
from pages.parts.shell.messages import clear_errors
from pages.parts.widgets import job_progress, pickers

ORDERS = {
    "importance": "importance, once",
    "recomputed": "importance, recomputed at every step",
    "sweep": "effect of zeroing it",
    "random": "random order (baseline)",
}
VIEWS = {"Importance": show_importance, "Curve": show_curves}


def start() -> None:
    shared = shared_options()
    left, middle, right = st.columns([4, 2, 2], vertical_alignment="bottom")
    orders = url.pick_many(
        left.multiselect,
        "Remove heads in the order of",
        ORDERS,
        key="orders",
        default=["importance", "sweep", "random"],
    )
    weigh = middle.button(
        "Measure importance",
        width="stretch",
        disabled=shared is None,
        help="Computes the importance of each head from one backward pass over the examples.",
    )
    prune = right.button("Draw the curve", type="primary", width="stretch", disabled=shared is None or not orders)
    if shared:
        job_progress.say_time("prune", asdict(shared) | {"orders": orders})
    if not shared or not (weigh or prune):
        return
    with clear_errors():
        task = pickers.named([shared.task], shared.data)
        if weigh:
            job_progress.begin("importance", asdict(shared), f"Importance of heads, {task}")
        else:
            job_progress.begin("prune", asdict(shared) | {"orders": orders}, f"Pruning curve, {task}")
        st.rerun()


def show(tools: DeltaGenerator) -> None:
    with tools:
        mode = url.pick_mode(list(VIEWS))
    job_progress.show_jobs("importance", "prune")
    with clear_errors():
        VIEWS[mode]()
    with drawer("Run with other settings", "importance"):
        start()
