"""Labelling in a project on the Label page: choice of the project, messages, and its sheet."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.labelling import assignment_service
from core.patterns.snapshot import known_class_set
from core.store import projects
from core.store.database import Database
from pages.parts.label import label_tools
from pages.parts.label.label_sheet import send_maps, show_sheet
from pages.parts.shell import people, url
from pages.parts.shell.messages import plain
from pages.parts.team.project_sheet import next_sheet


def open_projects(db: Database) -> dict[str, projects.Project]:
    return {project.project: project for project in projects.projects(db) if project.state in ("open", "paused")}


def pick_project(open_: dict[str, projects.Project]) -> projects.Project | None:
    """Ask for one of these projects (None: labelling outside of projects)."""
    chosen = url.pick(
        st.selectbox,
        "Project",
        ["", *open_],
        key="project",
        format_func=lambda name: open_[name].title if name else "without a project",
        label_visibility="collapsed",
    )
    return open_.get(chosen)


def work(db: Database, project: projects.Project, annotator: str, beside: DeltaGenerator) -> None:
    """Show the messages and the sheet of a project, with its codebook in `beside`. Raises InputError if no map is
    available."""
    db.person.must("annotator", "label")
    classes = known_class_set(db, project.class_set)
    label_tools.codebook(db, classes, beside)
    if project.codebook:
        st.caption(plain(project.codebook))
    key = (project.project, annotator, project.state, classes)
    cached_sheet = st.session_state.get("project_sheet")
    if cached_sheet is None or cached_sheet[0] != key:  # what the browser holds stays as it is until it asks for more
        cached_sheet = (key, next_sheet(db, project.project, annotator))
        st.session_state["project_sheet"] = cached_sheet
    sheet = cached_sheet[1]
    send_maps(sheet.data)
    show_sheet(sheet.name)
    board = assignment_service.board_of(db, project.project)
    st.caption(
        plain(
            f"{project.title} · {board.counted} of {board.needed} labels when this page was opened · "
            f"{board.rules.k} people per map · keys: digits label, Space skips, Backspace undoes"
        )
    )
    if not people.sign_in_configured():
        st.caption("Sign-in is not set up, so names of annotators are not verified. Enter the same name each time.")
