"""Frames: which heads attend between a word and the frame elements that belong to it."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.frames.lookup import show_lookup
from pages.parts.frames.search import show_search
from pages.parts.frames.sets import show_sets
from pages.parts.shell import url

VIEWS = {"One sentence": st.fragment(show_lookup), "A set of sentences": show_sets, "Search FrameNet": show_search}


def show(tools: DeltaGenerator) -> None:
    """The view."""
    st.caption(
        "A word evokes a frame (“agitated”: Emotion_directed) with elements (Experiencer: “he”). Kovaleva et al. 2019 "
        "asked which heads attend between the two (section 4.2, Fig 3)."
    )
    VIEWS[url.pick_mode(list(VIEWS))]()
