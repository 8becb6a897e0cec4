"""Jobs: running, queued and stopped jobs; resume, retry, cancel, delete, and import of runs from the terminal."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.config import command_line
from core.errors import StoreError
from core.jobs import api
from core.store import exchange, shipped_record
from core.store.jobs import jobs
from pages.parts.reports.result_list import open_link
from pages.parts.reports.stored_runs import stored_run
from pages.parts.shell import resources, url
from pages.parts.shell.messages import clear_errors, counted, plain, short_titles
from pages.parts.widgets import job_progress
from pages.parts.widgets.tables import show_table

SHOWN = 30  # jobs that stopped
NOTHING = f"""
No job has been started yet. Long computations run as jobs. Start one on any page, or in a terminal with

    {command_line("study", "--help")}
"""


def take_in(file: str) -> None:
    """Import the run in `file`, with everything that its study stores."""
    db = resources.database()
    with clear_errors():
        api.take_in(db, Path(file))
        st.toast("Imported.", icon=":material/check:")


def show_waiting() -> None:
    """Show runs that commands wrote while this app held the database."""
    waiting = exchange.waiting_runs(resources.database())
    if waiting.empty:
        return
    st.subheader("From the terminal")
    for run in waiting.itertuples():
        text_column, button = st.columns([5, 2], vertical_alignment="center")
        text_column.markdown(
            f"**{plain(run.title)}** · " + (plain(run.error) if run.error else counted(run.rows, "rows"))
        )
        if not run.error:
            button.button("Import", key=f"import_{run.file}", on_click=take_in, args=(run.file,), width="stretch")


def show_line(job: Any, title: str) -> None:
    """Show one job with a short title, its status and actions; a finished job links to its result."""
    word, icon = job_progress.STATES[job.state]
    with st.container(border=True, key=f"job_{job.job}", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center"):
            failed = f" · {job.failed} failed" if job.failed else ""
            progress = f"{job.done} of {counted(job.units, 'units')}{failed}"
            st.markdown(
                f"**{plain(title)}** · {icon} {word} · {progress} · {job.created:%d %b %H:%M} UTC", width="stretch"
            )
            if job.run and isinstance(job.run, str):
                with suppress(StoreError):  # the result was deleted; the job stays
                    open_link(stored_run(job.run), "Open the result")
            elif job.state != "done":
                label = "Retry failed units" if job.failed else "Resume"
                st.button(
                    label,
                    key=f"resume_line_{job.job}",
                    icon=":material/play_arrow:",
                    on_click=job_progress.act,
                    args=(
                        api.resume,
                        job.job,
                    ),
                )
            st.button("Details", key=f"details_{job.job}", icon=":material/expand_more:", type="tertiary",
                      on_click=open_details, args=(job.job,))  # fmt: skip
            st.button("Delete", key=f"delete_{job.job}", icon=":material/delete:", type="tertiary",
                      on_click=job_progress.act, args=(api.delete, job.job),
                      help="Deletes the job, its partial results and its errors. The result of a finished job is "
                           "kept.")  # fmt: skip
        if job.error and isinstance(job.error, str):
            st.caption(plain(job.error))
        if st.query_params.get("job") == job.job:
            job_progress.show_job(job.job)


def open_details(job: str) -> None:
    """Show or hide the rows and errors of a job; the URL names the open one."""
    url.keep({"job": None if st.query_params.get("job") == job else job})


def title_beside(title: str, checkpoint: str) -> str:
    """Return a title without its checkpoint, which is in the next column."""
    return re.sub(rf" (of|in|on) {re.escape(checkpoint)}(?=[,: ]|$)", "", title)


def show_shipped() -> None:
    """Show how long the bundled results took."""
    timed = shipped_record.runs()
    if timed.empty:
        return
    st.subheader("Computing time of the bundled results")
    timed = timed[timed["seconds"].notna()]
    longest = timed.loc[timed["seconds"].idxmax()]
    st.markdown(
        plain(
            f"The {len(timed)} bundled results took {timed['seconds'].sum() / 3600:.1f} hours of computing time "
            f"together. The longest took {longest['seconds'] / 60:.0f} minutes: {longest['title']}."
        )
    )
    st.caption("Results that only combine other results are listed with 0 minutes.")
    timed["title"] = timed["title"].str.slice(0, 1).str.upper() + timed["title"].str.slice(1)
    titles = [title_beside(*about) for about in zip(timed["title"], timed["checkpoint"], strict=True)]
    timed = timed.assign(minutes=timed["seconds"] / 60, title=list(map(short_titles(titles).__getitem__, titles)))
    show_table(
        timed[["title", "study", "checkpoint", "minutes", "rows", "created"]],
        column_config={
            "minutes": st.column_config.NumberColumn("minutes of computing time", format="%.1f"),
            "rows": st.column_config.NumberColumn("rows of the result"),
            "created": st.column_config.DatetimeColumn("made (UTC)", format="D MMM HH:mm"),
        },
    )


def show(tools: DeltaGenerator) -> None:
    db = resources.database()
    if db.notice:
        st.warning(plain(db.notice), icon=":material/history:")
    workplace = api.runner(db).place
    workers = (
        f"the cluster {workplace.cluster}"
        if workplace.cluster
        else f"worker processes of this machine ({workplace.workers})"
    )
    st.caption(
        plain(f"Jobs run on {workers}. To change this, set ATLAS_WORKERS or ATLAS_CLUSTER when you start the app.")
    )

    show_waiting()
    all_jobs = jobs(db)
    if all_jobs.empty:
        st.info(NOTHING, icon=":material/play_circle:")
        show_shipped()
        return

    for job in all_jobs.loc[all_jobs["state"].isin(["queued", "running"]), "job"]:
        job_progress.show_job(job)

    stopped = all_jobs.loc[~all_jobs["state"].isin(["queued", "running"])]
    if len(stopped):
        st.subheader("Earlier jobs", anchor=False)
    titles = short_titles(list(stopped["title"].head(SHOWN)))
    for job in stopped.head(SHOWN).itertuples():
        show_line(job, titles[job.title])
    if len(stopped) > SHOWN:
        st.caption(
            f"{len(stopped) - SHOWN} older jobs are not shown. To list all jobs, run "
            f"{command_line('jobs', 'list')} in a terminal."
        )
