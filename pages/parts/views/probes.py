"""Probes: how much syntax attention knows, what each layer knows, how alike vectors are, what transfers."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.probes.layers import show_layers, show_representation, show_transfer
from pages.parts.probes.sentence import show_sentence, show_syntax
from pages.parts.probes.starting import start_study
from pages.parts.shell import url
from pages.parts.shell.messages import clear_errors

VIEWS = {
    "One sentence": ("syntax", show_sentence),
    "Syntax in attention": ("syntax", show_syntax),
    "Layers": ("probe", show_layers),
    "Representation": ("representation", show_representation),
    "Transfer": ("transfer", show_transfer),
}


def show(tools: DeltaGenerator) -> None:
    """The view."""
    st.caption(
        "A probe is a small classifier on what a checkpoint computes, whose weights stay as they are. What it finds is "
        "there to be read; whether the checkpoint uses it is another question (Ablation, Patching and perturbation)."
    )
    study, show = VIEWS[url.pick_mode(list(VIEWS))]
    with clear_errors():
        show()
    start_study(study, view=study)
