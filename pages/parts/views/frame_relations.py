"""Frame relations: which heads attend between a word that evokes a frame and its frame elements."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.frames.lookup import offer_examples, show_lookup
from pages.parts.frames.search import show_search
from pages.parts.frames.sets import show_sets
from pages.parts.shell import url

SENTENCE = "One sentence"
VIEWS = {SENTENCE: st.fragment(show_lookup), "A set of sentences": show_sets, "Search FrameNet": show_search}


def show(tools: DeltaGenerator) -> None:
    """The view."""
    with tools:
        mode = url.pick_mode(list(VIEWS))
    if mode == SENTENCE:
        offer_examples()
    VIEWS[mode]()
