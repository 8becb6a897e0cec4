"""Choice of labels: those of a project, or all of a class set."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.store import projects
from core.store.database import Database
from pages.parts.label.label_tools import pick_class_set
from pages.parts.shell import url


def pick(db: Database, places: Sequence[DeltaGenerator] | None = None) -> tuple[str, str | None]:
    """Ask for the class set, and the project (None: all labels of the class set)."""
    open_projects = {project.project: project for project in projects.projects(db) if project.state != "archived"}
    left, right = places or st.columns(2)
    chosen = url.pick(
        left.selectbox,
        "Labels of",
        ["", *open_projects],
        key="project",
        format_func=lambda name: open_projects[name].title if name else "everybody",
    )
    if chosen:
        right.text_input("Class set", open_projects[chosen].class_set, disabled=True)
        return open_projects[chosen].class_set, chosen
    with right:
        return pick_class_set(db), None
