"""Whose labels a page is about: those of a project, or all of a class set."""

import streamlit as st

from core.labelling.snapshot import known_class_set
from core.store import projects
from core.store.database import Database
from pages.parts.label_tools import set_names


def pick(db: Database) -> tuple[str, str | None]:
    """The class set, and the project or None for all labels of the class set."""
    known = {one.project: one for one in projects.projects(db) if one.state != "archived"}
    left, right = st.columns(2)
    chosen = left.selectbox(
        "Labels of",
        [None, *known],
        format_func=lambda name: known[name].title if name else "everybody",
        key="project",
        bind="query-params",
    )
    if chosen:
        right.text_input("Class set", known[chosen].class_set, disabled=True)
        return known[chosen].class_set, chosen
    class_set = right.selectbox(
        "Class set",
        set_names(db),
        format_func=lambda one: known_class_set(db, one).title,
        key="class_set",
        bind="query-params",
    )
    return class_set, None
