"""Why one head looks where it looks, on one input, with a way to where every sentence can be taken apart."""

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core import capture
from core.attention import Head
from pages.parts.atlas.head_pictures import ordered_inputs
from pages.parts.maps.score_decomposition import show_cells
from pages.parts.shell import context, links, resources, url

if TYPE_CHECKING:
    from core.models.checkpoint import Checkpoint

AT_ONCE = 48  # heads of a checkpoint whose scores are taken apart unasked: larger ones take seconds


def show_why(name: str, head: Head, scores: pd.DataFrame, task: str | None) -> None:
    """The chosen sentence, else the input where its strongest role is strongest: a click takes a cell apart."""
    checkpoint = resources.checkpoint(name)
    view_context = context.now()
    text, pair = (
        (view_context.text, view_context.pair_or_none) if view_context.text else _strongest(name, head, scores, task)
    )
    if text is None or not capture.reach.is_interceptable(checkpoint):
        return
    if url.switch(st.toggle, "Explain its scores", key="why", default=_is_small(checkpoint)):
        show_cells(name, text, pair, head)
        links.link("maps/why", checkpoint=name, head=str(head), text=text, pair=pair)


def _strongest(name: str, head: Head, scores: pd.DataFrame, task: str | None) -> tuple[str | None, str | None]:
    ordered = ordered_inputs(name, head, scores, task).inputs
    return ordered[0] if ordered else (None, None)


def _is_small(checkpoint: "Checkpoint") -> bool:
    return checkpoint.layers * checkpoint.heads <= AT_ONCE
