"""Measuring further scores of a checkpoint: chosen studies, or all missing ones in one job."""

import json
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.codebook.registry import shipped_set
from core.jobs.duration_estimate import foreseen_together
from core.studies.attention import budget, effective, features, norms, redundancy, relations, roles, statistics
from core.studies.hypotheses import measure_heads
from core.studies.hypotheses.measure_heads import gives, missing
from pages.parts.atlas import analysing
from pages.parts.shell import resources, url
from pages.parts.shell.messages import clear_errors
from pages.parts.widgets import job_progress, pickers

MEASURED = [module.STUDY for module in (statistics, budget, roles, norms, features, relations, redundancy, effective)]
STUDIES = {study.name: study.gives for study in MEASURED}
STUDY = measure_heads.STUDY.name
EFFECTS = (
    "Effects of ablation, importance and change with fine-tuning need a fine-tuned classifier. Measure them on "
    "Ablation, Pruning and Change in attention."
)


def offer_to_measure(checkpoint: str, *, scores: pd.DataFrame) -> None:
    """Show studies to choose from, and the progress of those that were started."""
    with st.expander(
        "Measure more scores of the heads in this checkpoint", expanded=scores.empty, icon=":material/play_circle:"
    ):
        if scores.empty:
            st.info(
                "No head scores of this checkpoint are stored yet. Choose scores and press “Measure”.",
                icon=":material/database:",
            )
        places = st.columns(2)
        with places[0]:
            chosen = url.pick_many(
                st.multiselect,
                "Scores",
                list(STUDIES),
                key="measure_studies",
                default=list(STUDIES)[:2],
                format_func=lambda name: f"{name}: {STUDIES[name]}",
            )
        with places[1]:
            tasks = pickers.pick_tasks("sst2", key="measure_tasks")
        st.caption(EFFECTS)
        for study in chosen if tasks else ():
            st.markdown(f"**{study}**")
            job_progress.say_time(study, {"checkpoint": checkpoint, "tasks": tasks, "data": pickers.data_folder()})
        if st.button("Measure", key="measure_start", disabled=not (chosen and tasks)):
            with clear_errors():
                for study in chosen:
                    title = f"{study} of {checkpoint} on {pickers.named(tasks, pickers.data_folder())}"
                    options = {"checkpoint": checkpoint, "tasks": tasks, "data": pickers.data_folder()}
                    started = job_progress.begin(study, options, title)
                    st.session_state.setdefault("_atlas_jobs", []).append(started)
                st.rerun()
        for job in st.session_state.get("_atlas_jobs", [])[-len(STUDIES) :]:
            job_progress.show_job(job, rows=False)


def offer_missing(checkpoint: str, task: str | None, *, task_scores: pd.DataFrame, causal: bool) -> None:
    """Show one button that runs every study without stored results as one job, with its expected time."""
    measured_studies = set(task_scores["score"].str.partition("/")[0])
    class_set, data = shipped_set(causal=causal).name, pickers.data_folder()
    unmeasured = missing(checkpoint, task, measured=measured_studies, class_set=class_set, data=data)
    if unmeasured:
        st.markdown(
            "These scores have not been measured yet: "
            f"{', '.join(gives(measurement.study) for measurement in unmeasured)}."
        )
        st.caption(_time_of(checkpoint, unmeasured))
        if st.button("Measure all missing scores", key="measure_missing", icon=":material/play_circle:"):
            with clear_errors():
                options = measure_heads.MeasureHeadsOptions(checkpoint, tuple(unmeasured))
                job_progress.begin(STUDY, options, measure_heads.STUDY.title(options))
                st.rerun()
    analysing.show_running(checkpoint)


def _time_of(checkpoint: str, unmeasured: Sequence[measure_heads.Asked]) -> str:
    """Return the expected duration of the joint job, in words."""
    options_by_study = {measurement.study: json.loads(measurement.given) for measurement in unmeasured}
    seconds = foreseen_together(resources.database(), checkpoint, options_by_study)
    studies = "1 study" if len(unmeasured) == 1 else f"{len(unmeasured)} studies"
    return f"One job runs {studies} and takes about {job_progress.duration(max(seconds, 1))} of computing time."
