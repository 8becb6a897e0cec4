"""Whose labels a page is about: those of a project, or all of a class set."""

import streamlit as st

from core.store import projects
from core.store.database import Database
from pages.parts.frame import bound
from pages.parts.label_tools import pick_class_set


def pick(db: Database) -> tuple[str, str | None]:
    """The class set, and the project or None for all labels of the class set."""
    known = {one.project: one for one in projects.projects(db) if one.state != "archived"}
    left, right = st.columns(2)
    chosen = bound.pick(
        left.selectbox,
        "Labels of",
        ["", *known],
        key="project",
        format_func=lambda name: known[name].title if name else "everybody",
    )
    if chosen:
        right.text_input("Class set", known[chosen].class_set, disabled=True)
        return known[chosen].class_set, chosen
    with right:
        return pick_class_set(db), None
