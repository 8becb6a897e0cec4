"""Projects: maps that several people label, each by the same number of them; made, paused, closed and archived here."""

from datetime import date

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.patterns.class_sets import class_set_names
from core.store import projects
from core.store.projects import project_counts
from pages.parts.shell import links, resources, url
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.team import making, upkeep
from pages.parts.team.bundled_labels import show_bundled_work
from pages.parts.widgets.tables import show_table

ACTS = {"pause": "Pause", "open": "Open again", "close": "Close", "archive": "Archive"}


def overview(db, all_projects) -> None:
    """All projects, one a row."""
    counts = project_counts(db)
    rows = []
    for project in all_projects:
        count = counts[project.project] if project.state != "archived" else None
        share_labelled = count.counted / (count.maps * project.rules["k"]) if count else None
        rows.append(
            {
                "title": project.title,
                "state": project.state,
                "labelled": share_labelled,
                "annotators per map": project.rules["k"],
                "people so far": count.people if count else None,
                "class set": project.class_set,
                "made by": project.made_by,
                "made": project.made,
            }
        )
    show_table(
        pd.DataFrame(rows),
        column_config={"labelled": st.column_config.ProgressColumn("labelled", min_value=0.0, max_value=1.0)},
    )


def one_project(db, project, by: str) -> None:
    """What can be done with one project, and who may label in it."""
    links.link("annotate", "Label in it", icon=":material/stylus:", project=project.project)
    with clear_errors():
        for column, (kind, label) in zip(st.columns(4), ACTS.items(), strict=True):
            allowed = project.state in projects.FROM[kind]
            if column.button(label, disabled=not allowed, key=f"{kind}_{project.project}", width="stretch"):
                projects.change_project(db, project.project, kind, annotator=by)
                st.rerun()
    st.caption(
        plain(
            f"{project.title}: {project.state} since {project.changed:%d %B %Y %H:%M} UTC"
            + (f", by {project.changed_by}" if project.changed_by else "")
        )
    )
    if project.state != "archived":
        making.people_of(db, project, by)
        making.order_again(db, project, by)
    show_log(db, project)
    with st.expander("Rules and recipe"):
        left, right = st.columns(2)
        left.json(project.rules)
        right.json(project.recipe)


DONE = {
    "pause": "paused the project",
    "open": "opened the project again",
    "close": "closed the project; later changes of labels do not count",
    "archive": "archived the project",
    "admit": "resumed {person}",
    "exclude": "paused {person}",
    "order": "ordered the maps by the classifier",
    "decide": "decided that map {map_id} is {class}",
}


def show_log(db, project) -> None:
    """What admins did in a project and the decisions on its maps, newest first."""
    log = projects.history(db, project.project)
    with st.expander(f"Log: {counted(len(log), 'entries')}"):
        rows = [
            {"when, UTC": entry["stored"], "who": entry["annotator"], "what": DONE[entry["what"]].format(**entry)}
            for entry in log.to_dict("records")
        ]
        if rows:
            show_table(pd.DataFrame(rows))
        else:
            st.caption("This project has not been changed yet, and no decisions have been made on its maps.")


def show(tools: DeltaGenerator) -> None:
    """The view."""
    db = resources.database()
    by = making.admin_name()
    all_projects = projects.projects(db)
    buttons = st.container(horizontal=True)
    with buttons.popover("New project", icon=":material/add:"):
        making.new_project(db, class_set_names(db), by)
    with buttons.popover("Maps from elsewhere", icon=":material/upload:"):
        upkeep.maps_from_elsewhere(db)
    with buttons.popover("Label Studio", icon=":material/swap_horiz:"):
        upkeep.label_studio(db, class_set_names(db))
    with buttons.popover("Erase a person", icon=":material/person_remove:"):
        upkeep.erase_person(db, by)
    if not all_projects:
        st.info(
            "There is no project yet. In a project, every map is labelled by the same number of people. Draw maps on "
            "Annotate > Label, and then create a project with them above.",
            icon=":material/groups:",
        )
        show_bundled_work()
        return
    overview(db, all_projects)
    titles = {project.project: project for project in all_projects}
    chosen = url.pick(st.selectbox, "Project", list(titles), key="project", format_func=lambda name: titles[name].title)
    one_project(db, titles[chosen], by)
    st.caption(
        plain(
            f"{counted(len(all_projects), 'projects')} · {date.today():%d %B %Y} · a label counts only in the "
            f"project in which it was given (docs/how-to/labelling-team.md)"
        )
    )
