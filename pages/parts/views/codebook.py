"""Codebook: each class of maps in words, with two labelled maps."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.patterns.snapshot import known_class_set
from pages.parts.label import label_tools, map_pictures
from pages.parts.shell import resources


def show(tools: DeltaGenerator) -> None:
    db = resources.database()
    with tools:
        class_set = label_tools.pick_class_set(db, bare=True)
    st.subheader("What do the maps of each class look like?", anchor=False)
    st.space("small")
    with st.container(width=760):
        map_pictures.show_codebook(db, known_class_set(db, class_set))
