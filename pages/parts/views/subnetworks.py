"""Subnetworks: how many weights a task needs, and whether some parts of a model are better than others."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.probes.shipped_probes import pick_result
from pages.parts.probes.starting import start_study
from pages.parts.probes.subnetwork_pictures import show_curves, show_networks, warn_of_nothing_to_lose
from pages.parts.shell import url
from pages.parts.shell.messages import clear_errors

VIEWS = {"Weights by magnitude": show_curves, "Good, bad and random": show_networks}


def show(tools: DeltaGenerator) -> None:
    """The view."""
    st.caption(
        "Weights go by magnitude, before or after fine-tuning (Gordon et al. 2020); heads and feed-forward blocks "
        "go by "
        "importance, and what survives is retrained beside what went and beside random parts (Prasanna et al. 2020)."
    )
    with clear_errors():
        result = pick_result("subnetworks", key="pruned")
        if result is not None:
            warn_of_nothing_to_lose(result)
            VIEWS[url.pick_mode(list(VIEWS))](result)
    start_study("subnetworks", view="subnetworks")
