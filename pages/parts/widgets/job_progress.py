"""Progress of a job: bar, throughput, time left, errors, partial rows; cancel and resume.

Both parts are fragments that update themselves while something runs.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import streamlit as st

from core.errors import AtlasError
from core.jobs import api, duration_estimate
from core.jobs.api import JobStatus
from core.store.jobs import by_worker, jobs, one_job, unit_outcomes
from core.studies.lookup import find_study
from pages.parts.shell import resources
from pages.parts.shell.messages import clear_errors, counted, plain, short_titles
from pages.parts.widgets.tables import show_table

UNFINISHED = ("queued", "running", "failed", "cancelled", "interrupted")
STATES = {
    "queued": ("waiting", ":material/schedule:"),
    "running": ("running", ":material/play_circle:"),
    "done": ("done", ":material/check_circle:"),
    "failed": ("failed", ":material/error:"),
    "cancelled": ("cancelled", ":material/cancel:"),
    "interrupted": ("interrupted", ":material/pause_circle:"),
}


def duration(seconds: float) -> str:
    """Return seconds in words: "40 s", "3 min", "2 h 5 min"."""
    rounded = int(seconds + 0.5)
    if rounded < 90:
        return f"{rounded} s"
    hours, minutes = divmod((rounded + 30) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def progress_line(now: JobStatus) -> str:
    """Return units, tokens, throughput and time left, as far as known."""
    if not now.units:
        return "Dividing the work ..." if now.active else "Nothing was started."
    word = api.unit_word(now.study)
    parts = [
        f"{now.done} of {counted(now.units, 'units')}",
        f"{now.size_done:,} of {now.size:,} {word}",
    ]
    if now.active and now.under_way:
        parts.append(f"{now.under_way:,.0f} tokens run in unfinished units")
    if now.active and now.rate:
        parts.append(f"{now.rate:,.0f} {word}/s")
    if now.left is not None:
        parts.append(f"about {duration(now.left)} left")
    return " · ".join(parts)


def jobs_under_way(*studies: str, states: Collection[str] = UNFINISHED) -> list[str]:
    """Return the jobs of these studies in one of these states, newest first."""
    all_jobs = jobs(resources.database()).itertuples()
    return [str(job.job) for job in all_jobs if job.study in studies and job.state in states]


def show_jobs(*studies: str, most: int = 3) -> None:
    """Show the newest running, queued or stopped jobs of these studies."""
    for job in jobs_under_way(*studies)[:most]:
        show_job(job, rows=False)


def options_of(job: str) -> dict[str, Any]:
    """Return the options of a job, with the defaults of its study. Raises JobError for an unknown job."""
    return one_job(resources.database(), job)["options"]


def begin(study: str, options: Any, title: str) -> str:
    """Start a job and return its ID. Raises InputError or RightsError."""
    return api.start(resources.database(), study, options, title)


def offer_start(
    study: str,
    options: Mapping[str, Any] | None,
    label: str,
    *,
    title: Callable[[], str] | None = None,
    container: Any = st,
    keep_as: str = "",
    **button: Any,
) -> None:
    """Show the expected duration of a job, and the button that starts it and redraws the page.

    options: None until everything is chosen. title: of the job (default: that of the study). container, button: where
    the button is, and its other arguments. keep_as: session key for the ID of the job.
    """
    if options is not None:
        say_time(study, options)
    usual: dict[str, Any] = {"type": "primary", "width": "content" if container is st else "stretch"}
    if container.button(label, disabled=options is None, **(usual | button)) and options is not None:
        with clear_errors():
            job = begin(study, options, title() if title else _own_title(study, options))
            if keep_as:
                st.session_state[keep_as] = job
            st.rerun()


def _own_title(study: str, options: Mapping[str, Any]) -> str:
    declared = find_study(study)
    return declared.title(declared.read(options))


def say_time(study: str, options: Any) -> None:
    """Show why a job with these options cannot run, otherwise its expected duration, if known."""
    with clear_errors():
        try:
            api.check_runnable(study, options)
        except AtlasError as error:
            st.caption(f":material/block: {plain(error)}")
            return
        st.caption(time_said(duration_estimate.estimate_duration(resources.database(), study, options)))


def time_said(time: duration_estimate.DurationEstimate | None) -> str:
    """Return an estimate in words, with the measured rate behind it."""
    if time is None:
        return (
            "The time cannot be estimated yet, because no similar job has run. The remaining time is shown while "
            "the job runs."
        )
    rate_source = "here" if time.here else "for the bundled results"
    took = (
        f"about {duration(max(time.seconds, 1))} of computing time, based on the speed measured {rate_source} on "
        f"{time.made:%d %B %Y}"
    )
    counts = time.counts.removesuffix("s") if time.rows == 1 else time.counts
    return f"{time.rows:,} {counts}: {took}" if time.rows else took[:1].upper() + took[1:]


def show_job(job: str, *, rows: bool = True) -> JobStatus:
    """Show a job, update it, and return its status. When it stops, the whole page reruns.

    `rows` also shows the summary so far. Raises JobError for an unknown job.
    """
    now = api.status(resources.database(), job)
    st.fragment(_watch, run_every=1.0 if now.active else None)(job, now.active, rows)
    return now


def _watch(job: str, was_active: bool, rows: bool) -> None:
    with clear_errors():
        db = resources.database()
        now = api.status(db, job)
        if was_active != now.active:
            st.rerun()
        word, icon = STATES[now.state]
        with st.container(border=True):
            heading, buttons = st.columns([5, 2], vertical_alignment="center")
            heading.markdown(f"**{plain(short_titles([now.title])[now.title])}** · {icon} {word}")
            with buttons:
                if now.active:
                    st.button(
                        "Stop",
                        key=f"cancel_{now.job}",
                        icon=":material/stop:",
                        on_click=act,
                        args=(api.cancel, now.job),
                        width="stretch",
                    )
                elif now.state != "done":
                    label = "Retry failed units" if now.failed else "Resume"
                    st.button(label, key=f"resume_{now.job}", on_click=act, args=(api.resume, now.job), width="stretch")
                    if now.done:
                        st.button("Keep partial result", key=f"part_{now.job}", on_click=act, width="stretch",
                                  args=(duration_estimate.keep_partial, now.job),
                                  help="Stores the finished part of the job as a partial result, with a "
                                       "smaller n.")  # fmt: skip
                    st.button("Dismiss", key=f"dismiss_{now.job}", on_click=act, width="stretch",
                              args=(api.delete, now.job),
                              help="Deletes the job and its unfinished results. A stored result is kept.")  # fmt: skip
            st.progress(min(now.share, 1.0), text=plain(progress_line(now)))
            if now.error:
                st.error(plain(now.error), icon=":material/info:")
            if now.failed:
                failed = unit_outcomes(resources.database(), job).query("state == 'failed'")
                with st.expander(f"{counted(len(failed), 'units')} failed"):
                    show_table(failed[["key", "error", "attempts"]])
            if rows and now.done:
                _partial(job, now)
                # Who did what, and what was tried again
                db = resources.database()
                workers = by_worker(db, job)
                with st.expander(f"{len(workers)} worker processes, {int(workers['retries'].sum())} retries"):
                    show_table(workers, column_config={"seconds": st.column_config.NumberColumn(format="%.1f")})
                    show_table(unit_outcomes(db, job)[["key", "state", "worker", "seconds", "attempts"]])


def act(action: Callable, job: str) -> None:
    """Apply an action to a job, for the callback of a button; an error is shown."""
    with clear_errors():
        action(resources.database(), job)


def _partial(job: str, now: JobStatus) -> None:
    partial = api.partial_rows(resources.database(), job)
    if partial.empty:
        return
    label = "Rows" if now.state == "done" else f"Rows so far, of {plain(now.done)} of {counted(now.units, 'units')}"
    with st.expander(f"{label} ({len(partial)})"):
        show_table(partial)
