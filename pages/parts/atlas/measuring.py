"""Measuring more scores of a checkpoint: one job a study, on a task's rows."""

import pandas as pd
import streamlit as st

from core.studies.attention import effective, features, norms, redundancy, relations, roles, statistics
from pages.parts.shell import bound
from pages.parts.shell.messages import clear_errors
from pages.parts.widgets import job_progress, pickers

MEASURED = [module.STUDY for module in (statistics, roles, norms, features, relations, redundancy, effective)]
STUDIES = {study.name: study.gives for study in MEASURED}
EFFECTS = "Effects, importance and change need a classifier: Ablation, Pruning and Change in attention measure them."


def offer_to_measure(checkpoint: str, *, known: pd.DataFrame) -> None:
    """Studies to choose from, and how those that were started go on."""
    with st.expander("Measure more of this checkpoint", expanded=known.empty, icon=":material/play_circle:"):
        if known.empty:
            st.info("Nothing is stored of this checkpoint: measure it here.", icon=":material/database:")
        places = st.columns(2)
        with places[0]:
            chosen = bound.pick_many(
                st.multiselect, "Scores", list(STUDIES), key="measure_studies", default=list(STUDIES)[:2],
                format_func=lambda name: f"{name}: {STUDIES[name]}",
            )  # fmt: skip
        with places[1]:
            tasks = pickers.pick_tasks("sst2", key="measure_tasks")
        st.caption(EFFECTS)
        for study in chosen if tasks else ():
            st.markdown(f"**{study}**")
            job_progress.say_time(study, {"checkpoint": checkpoint, "tasks": tasks})
        if st.button("Measure", key="measure_start", disabled=not (chosen and tasks)):
            with clear_errors():
                for study in chosen:
                    title = f"{study} of {checkpoint} on {pickers.named(tasks)}"
                    wanted = {"checkpoint": checkpoint, "tasks": tasks}
                    started = job_progress.begin(study, wanted, title)
                    st.session_state.setdefault("atlas_jobs", []).append(started)
                st.rerun()
        for job in st.session_state.get("atlas_jobs", [])[-len(STUDIES) :]:
            job_progress.show_job(job, rows=False)


def offer_missing(checkpoint: str, task: str | None, *, known: pd.DataFrame) -> None:
    """One button for every study of which nothing is stored here, with how long each takes; nothing where all are."""
    have = set(known["score"].str.partition("/")[0])
    missing = [name for name in STUDIES if name not in have]
    wanted = {"checkpoint": checkpoint, "tasks": [task or "sst2"]}
    if missing:
        st.markdown(f"Not measured yet: {', '.join(STUDIES[name] for name in missing)}.")
        for name in missing:
            job_progress.say_time(name, wanted)
        if st.button("Measure what is missing", key="measure_missing", icon=":material/play_circle:"):
            with clear_errors():
                started = [job_progress.begin(name, wanted, f"{name} of {checkpoint}") for name in missing]
                st.session_state.setdefault("atlas_jobs", []).extend(started)
                st.rerun()
    for job in st.session_state.get("atlas_jobs", [])[-len(STUDIES) :]:
        job_progress.show_job(job, rows=False)
