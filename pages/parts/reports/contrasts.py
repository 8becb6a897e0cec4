"""Reasons why two studies of the same model can have different verdicts."""

import streamlit as st

from pages.parts.reports import headlines
from pages.parts.reports.provenance import StoredRun, known_runs
from pages.parts.shell.messages import plain

ONE_BY_ONE = "This study ablates one head at a time, and other heads can take over; gates ablate many heads together"
WHY = {  # study: another study whose verdict seems to contradict it, the name of its view, and why both can be true
    "gates": (
        "sequential-test",
        "Sequential test",
        "That test ablates one head at a time, and other heads can take over; gates ablate many heads together",
    ),
    "sequential-test": ("gates", "Gates and pairs", ONE_BY_ONE),
    "disable": ("gates", "Gates and pairs", ONE_BY_ONE),
    "circuit": (
        "gates",
        "Gates and pairs",
        "A head sends its output through many edges: each edge can be small although the head as a whole is needed",
    ),
}


def explain_difference(stored: StoredRun) -> None:
    """If another study of this model and task has a different verdict, show both and the reason."""
    other_study, view, reason = WHY.get(stored.study, ("", "", ""))
    for other in known_runs(other_study):
        if (other.checkpoint, other.task) == (stored.checkpoint, stored.task):
            finding = headlines.headline_of(other.run).sentence.partition(". ")[0].removesuffix(".")
            st.caption(plain(f"{view} reports for this model: “{finding}.” {reason}, so both can be true."))
            return
