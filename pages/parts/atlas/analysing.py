"""Analyse this model: all studies that can measure the chosen checkpoint, with time and memory, as one job."""

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.models.fetching import can_download
from core.models.present import stamp_of
from core.store.jobs import jobs_of
from core.tasks.glue import TASKS
from pages.parts.shell import context, people, resources
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import pickers
from pages.parts.widgets.tables import show_table

STUDY = "measure-heads"
OPEN, QUICK, ALL, SOME = "_analysis_open", "Quick plan", "All studies", "Selection"
LABEL = "Analyse this model"


def offer_button(tools: DeltaGenerator) -> None:
    """Show the button that opens the plan, for users who may start jobs."""
    if people.person().may("admin"):
        tools.button(LABEL, key="analyse", icon=":material/experiment:", on_click=_toggle,
                     help="Opens a list of all studies that can run on this model. You choose the task and run the "
                          "studies in one job.")  # fmt: skip


def _toggle() -> None:
    st.session_state[OPEN] = not st.session_state.get(OPEN)


def show_analysis(checkpoint: str) -> None:
    """Show the running or stopped analysis of this checkpoint, otherwise the plan if it is open."""
    with clear_errors():
        if not show_running(checkpoint) and st.session_state.get(OPEN):
            with st.container(border=True, key="analysis"):
                _show_plan(checkpoint)


def show_running(checkpoint: str) -> bool:
    """Show the newest unfinished joint job of this checkpoint, and return whether there is one."""
    for job in jobs_of(resources.database(), STUDY, unfinished=True):
        if job["options"].get("checkpoint") == checkpoint:
            from pages.parts.widgets import job_progress  # what runs jobs, which a first visit spares

            job_progress.show_job(str(job["job"]), rows=False)
            return True
    return False


def _show_plan(checkpoint: str) -> None:
    if can_download(checkpoint):
        st.markdown(f"The checkpoint {plain(checkpoint)} is not on this machine. Download it first.")
        return
    from pages.parts.widgets import job_progress  # what runs jobs, which a first visit spares

    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = list(dict.fromkeys([*TASKS, context.chosen().rows or "sst2"]))
        task = st.selectbox("Task", names, index=names.index(context.chosen().rows or "sst2"), key="analysis_task",
                            format_func=pickers.rows_name, width=200)  # fmt: skip
        which = st.segmented_control("Studies", [QUICK, ALL, SOME], default=QUICK, required=True, key="analysis_which")
    plan = _planned(checkpoint, task)
    every = [study.study for study in plan.studies]
    chosen = list(plan.quick) if which == QUICK else every
    if which == SOME:
        chosen = st.multiselect("Selected studies", every, default=list(plan.quick), key=f"analysis_studies_{task}",
                                label_visibility="collapsed")  # fmt: skip
    show_table(_table(plan, chosen), width="stretch", height=min(38 + 35 * len(every), 420))
    unknown = [study.study for study in plan.of(chosen) if study.seconds is None]
    least = max((study.memory for study in plan.of(chosen)), default=0)
    spoken = "1 study" if len(chosen) == 1 else f"{len(chosen)} studies"
    more = f", and {', '.join(unknown)} without an estimate" if unknown else ""
    st.markdown(
        f"**{spoken}: about {job_progress.duration(max(plan.seconds(chosen), 1))}{more}**, and up to "
        f"{least * plan.cores / 1000000000.0:.1f} GB of memory. You can stop and resume the analysis. If the app "
        "restarts, resume it on “Results > Jobs”. The views show its results when it is done."
    )
    if st.button("Run the analysis", type="primary", key="analysis_start", disabled=not chosen):
        with clear_errors():
            job_progress.begin(STUDY, plan.job(chosen), plan.title(chosen))
            st.session_state[OPEN] = False
            st.rerun()


def _planned(checkpoint: str, task: str) -> Any:
    """Return the plan, computed once per checkpoint, task and state of the store."""
    from core.report.analysis import plan_analysis  # every study, which a first visit spares

    key = (checkpoint, task, stamp_of(checkpoint), pickers.data_folder())
    known = st.session_state.get("_analysis_plan")
    if known is None or known[0] != key:
        with st.spinner("Planning the studies ..."):
            known = (key, plan_analysis(resources.database(), checkpoint, task, pickers.data_folder()))
        st.session_state["_analysis_plan"] = known
    return known[1]


def _table(plan: Any, chosen: list[str]) -> list[dict[str, Any]]:
    from pages.parts.widgets.job_progress import duration  # as above

    return [
        {
            "run": study.study in chosen,
            "study": study.study,
            "measures": study.shows,
            "time": "unknown" if study.seconds is None else duration(max(study.seconds / plan.cores, 1)),
            "memory": f"{study.memory / 1e9:.1f} GB",
        }
        for study in plan.studies
    ]
