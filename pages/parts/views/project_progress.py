"""Progress of a project: labels, annotators, agreement over time, and the expected end."""

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.labelling.progress import ProjectProgress, progress
from core.store import projects
from core.store.rows import now
from pages.parts.label.label_tools import show_by_way
from pages.parts.reports.result_card import show_own_answer
from pages.parts.shell import links, resources, url
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.team.bundled_labels import labels_over_time, show_label_progress
from pages.parts.widgets.tables import show_table


def figures(project: projects.Project, advance: ProjectProgress) -> None:
    label_column, complete, pace, ending = st.columns(4)
    share = advance.counted / advance.needed
    label_column.metric(
        "Labels", f"{advance.counted:,} of {advance.needed:,}", f"{share:.1%}", delta_color="off", delta_arrow="off"
    )
    complete.metric("Maps complete", f"{advance.by_labels[-1]:,}", f"of {sum(advance.by_labels):,}", delta_color="off",
               delta_arrow="off")  # fmt: skip
    pace.metric("Labels an hour", f"{advance.hourly:,.0f}", f"{advance.waiting} slots reserved", delta_color="off",
                 delta_arrow="off")  # fmt: skip
    ends = (
        "complete"
        if advance.counted >= advance.needed
        else f"{advance.end:%d %b %H:%M}"
        if advance.end
        else "nobody works"
    )
    ending.metric(
        "Expected end, UTC", ends, f"{advance.surplus} extra annotations", delta_color="off", delta_arrow="off"
    )
    st.progress(min(1.0, share))
    if 0 < len(advance.people) < project.rules["k"]:
        st.warning(
            f"Each map needs labels by {int(project.rules['k'])} different annotators. The number of annotators so "
            f"far is {len(advance.people)}. The project cannot be completed without more annotators.",
            icon=":material/group_add:",
        )


def pictures(advance: ProjectProgress) -> None:
    """Show maps by number of labels, and agreement over time."""
    left, right = st.columns(2)
    maps = pd.DataFrame({"labels": range(len(advance.by_labels)), "maps": advance.by_labels})
    with left:
        st.altair_chart(
            alt.Chart(maps, title="Maps by labels")
            .mark_bar()
            .encode(
                x=alt.X("labels:O", title="number of labels of a map", axis=alt.Axis(labelAngle=0)),
                y="maps:Q",
                tooltip=["labels", "maps"],
            )
        )
    with right:
        curve = advance.curve.dropna()
        if curve.empty:
            st.caption("Agreement can be shown as soon as some maps have two labels and two classes have been used.")
            return
        scale = alt.Scale(domain=[min(0.0, float(curve["alpha"].min())), 1.0])
        st.altair_chart(
            alt.Chart(curve, title="Agreement (Krippendorff's alpha) as more labels are added")
            .mark_line(point=True)
            .encode(
                x=alt.X("labels:Q", title="labels given"),
                y=alt.Y("alpha:Q", scale=scale),
                tooltip=["labels", alt.Tooltip("alpha", format=".3f"), "time"],
            )
        )


@st.fragment(run_every=10.0)
def show_progress(db, project: projects.Project) -> None:
    """Show everything, updated every ten seconds."""
    with clear_errors():
        moment = now()
        advance = progress(db, project.project, moment)
        times = advance.times
        show_own_answer(
            "How far is this project?",
            [project.title, f"class set {project.class_set}", project.state],
            f"{advance.by_labels[-1]:,} of {counted(sum(advance.by_labels), 'maps')} are complete: each needs "
            f"{counted(int(project.rules['k']), 'labels')} by different annotators.",
            f"{advance.counted:,} of {advance.needed:,} labels have been given, by "
            f"{counted(times['annotator'].nunique(), 'annotators')}.",
            key="progress",
        )
        if len(times):
            st.altair_chart(labels_over_time(times.rename(columns={"stored": "time"})), key="labels_over_time")
        figures(project, advance)
        pictures(advance)
        st.subheader("People")
        show_table(advance.people)
        show_by_way(times)
        st.caption(
            plain(
                f"{project.title} · {project.state} · class set {project.class_set} · {moment:%d %B %Y %H:%M} UTC · "
                f"the expected end assumes the pace of the last hour, or the average pace of all hours with labels"
            )
        )


def show(tools: DeltaGenerator) -> None:
    db = resources.database()
    open_ = {project.project: project for project in projects.projects(db) if project.state != "archived"}
    if not open_:
        st.caption("No labelling project exists, or all are archived. Create one on “Projects > Setup”.")
        links.link("projects/setup")
        show_label_progress(db)
        return
    chosen = url.pick(st.selectbox, "Project", list(open_), key="project", format_func=lambda name: open_[name].title)
    show_progress(db, open_[chosen])
