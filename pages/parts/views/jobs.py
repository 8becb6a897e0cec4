"""Jobs: what runs, what waits, what stopped; resume, retry, cancel, delete, and rows that a terminal left."""

from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.jobs import api
from core.store import exchange, shipped
from core.store.jobs import jobs
from pages.parts.shell import history, resources
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress

NOTHING = """
No job has run yet. Long work of any page becomes a job: start one there, or in a terminal with

    python -m core study --help
"""


def remove(job: str) -> None:
    """Delete the job; the rows it gave stay in the store as a run."""
    with clear_errors():
        api.delete(resources.database(), job)


def take_in(file: str) -> None:
    """Store the run that a terminal left in `file`, and what its study keeps of it."""
    db = resources.database()
    with clear_errors():
        api.take_in(db, Path(file))
        st.toast("Imported.", icon=":material/check:")


def show_waiting() -> None:
    """Runs that commands left in the folder of runs while this app held the database."""
    waiting = exchange.waiting_runs(resources.database())
    if waiting.empty:
        return
    st.subheader("From the terminal")
    for run in waiting.itertuples():
        said, button = st.columns([5, 2], vertical_alignment="center")
        said.markdown(f"**{plain(run.title)}** · " + (plain(run.error) if run.error else f"{run.rows} rows"))
        if not run.error:
            button.button("Import", key=f"import_{run.file}", on_click=take_in, args=(run.file,), width="stretch")


def table(jobs):
    """All jobs, one a row; returns the id of the one that is chosen, here or by the URL, or None."""
    named = jobs.index[jobs["job"] == st.query_params.get("job")]
    units = jobs["done"].astype(str) + " of " + jobs["units"].astype(str)
    shown = jobs.assign(units=units, error=jobs["error"].fillna(""))
    chosen = st.dataframe(
        shown[["title", "study", "state", "units", "failed", "workers", "retries", "created", "finished", "error"]],
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        selection_default={"selection": {"rows": [jobs.index.get_loc(row) for row in named]}},
        key=history.keyed("jobs_table"),
        column_config={
            "created": st.column_config.DatetimeColumn("created (UTC)", format="D MMM HH:mm"),
            "finished": st.column_config.DatetimeColumn("finished (UTC)", format="D MMM HH:mm"),
        },
    )
    rows = chosen["selection"]["rows"]
    picked = jobs["job"].iloc[rows[0]] if rows and rows[0] < len(jobs) else None
    history.keep({"job": picked})
    return picked


def show_shipped() -> None:
    """What the results that ship took, as jobs of one's own will be listed."""
    timed = shipped.runs()
    if timed.empty:
        return
    st.subheader("What the results that ship took")
    timed = timed[timed["seconds"].notna()].assign(minutes=timed["seconds"] / 60)
    st.dataframe(
        timed[["title", "study", "checkpoint", "rows", "minutes", "created"]],
        hide_index=True,
        column_config={
            "minutes": st.column_config.NumberColumn("minutes of work", format="%.1f"),
            "created": st.column_config.DatetimeColumn("made (UTC)", format="D MMM HH:mm"),
        },
    )


def show(tools: DeltaGenerator) -> None:
    """The view."""
    db = resources.database()
    if db.notice:
        st.warning(plain(db.notice), icon=":material/history:")
    place = api.runner(db).place
    where = f"the cluster {place.cluster}" if place.cluster else f"worker processes of this machine ({place.workers})"
    st.caption(plain(f"Jobs run on {where}; change it with ATLAS_WORKERS or ATLAS_CLUSTER when the app starts."))

    show_waiting()
    known = jobs(db)
    if known.empty:
        st.info(NOTHING, icon=":material/play_circle:")
        show_shipped()
        return

    for job in known.loc[known["state"].isin(["queued", "running"]), "job"]:
        job_progress.show_job(job)

    st.subheader("All jobs")
    st.caption("Choose a row to see the job's rows and errors, resume it or delete it.")
    picked = table(known)
    if picked is not None and known.set_index("job").loc[picked, "state"] not in {"queued", "running"}:
        job_progress.show_job(picked)
        st.button(
            "Delete this job",
            key=f"delete_{picked}",
            on_click=remove,
            args=(picked,),
            icon=":material/delete:",
            help="its units and errors go; the rows of a job that is done stay in the store",
        )
