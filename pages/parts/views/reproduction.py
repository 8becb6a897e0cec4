"""Reproduction: the papers' figures, tables and claims beside what this app measures, as one report."""

from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.config import settings
from core.jobs import chain
from core.jobs.duration_estimate import estimate_duration
from core.report import report
from core.report.plan import ReportStep
from core.report.records import records_of
from core.report.rendering.words import About
from core.report.report_options import DEFAULTS, PARTS, ReportOptions
from core.store.database import Database
from core.store.runs import one_run
from core.tasks.glue import TASKS
from pages.parts.reports.reproduction_pictures import claims_table, downloads, exhibits, summary
from pages.parts.reports.stored_runs import drawer, pick_run
from pages.parts.shell import resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress, pickers

NO_REPORT = (
    "No report has been made yet: choose checkpoints above and press Make the report, or run `python -m core reproduce "
    "atlas-encoder atlas-decoder` in a terminal. With the sizes above it takes a quarter of an hour on two cores."
)


def chosen_options() -> dict[str, Any] | None:
    """What to report on; None while no checkpoint is chosen."""
    left, right = st.columns([3, 2])
    checkpoints = url.pick_many(
        left.multiselect, "Checkpoints", pickers.checkpoint_names(), key="checkpoints", default=DEFAULTS.checkpoints,
        accept_new_options=True, help=pickers.CHECKPOINT_HELP,
    )  # fmt: skip
    glue = settings().glue
    data_folder = right.text_input(
        "Data",
        str(glue or ""),
        placeholder="a folder; empty for the bundled samples",
        key="data",
        bind="query-params",
        help="GLUE's task folders, the papers' sentence lists and a treebank, in it or in folders inside it.",
    )
    with st.expander("Tasks, parts and sizes"):
        task_column, part_column = st.columns(2)
        tasks = url.pick_many(
            task_column.multiselect,
            "Tasks",
            list(TASKS),
            key="tasks",
            format_func=lambda key: TASKS[key].name,
            placeholder="all there",
        )
        parts = url.pick_many(part_column.multiselect, "Parts", PARTS, key="parts", placeholder="all")
        places = st.columns(5)
        numbers = {
            "limit": places[0].number_input("Rows of maps", 8, 100_000, DEFAULTS.limit, key="limit",
                                            bind="query-params"),
            "sweep_limit": places[1].number_input("Rows of sweeps", 8, 100_000, DEFAULTS.sweep_limit, key="sweep_limit",
                                                  bind="query-params"),
            "train_limit": places[2].number_input("Train rows", 8, None, DEFAULTS.train_limit, key="train_limit",
                                                  bind="query-params"),
            "seeds": places[3].number_input("Seeds", 1, 20, DEFAULTS.seeds, key="seeds", bind="query-params"),
            "folds": places[4].number_input("Folds", 0, 20, DEFAULTS.folds, key="folds", bind="query-params",
                                            help="Parts of RTE's and MRPC's train rows: single heads are tested on "
                                            "all of them, each by a model of the other parts. 0: dev rows only."),
        }  # fmt: skip
    if not checkpoints:
        return None
    return {"checkpoints": checkpoints, "data": data_folder.strip() or None, "tasks": tasks, "parts": parts} | numbers


def start() -> None:
    """Choose, and begin the jobs one after another."""
    options = chosen_options()
    with st.container(horizontal=True):
        begins = st.button("Make the report", type="primary", disabled=options is None)
        asks = st.button("How long will it take?", disabled=options is None)
    if options is None or not (begins or asks):
        return
    with clear_errors():
        db = resources.database()
        with st.spinner("Looking at data and checkpoints ..."):
            plan = report.prepared(db, ReportOptions.read(options))
        if asks:
            st.caption(time_of(db, plan.steps))
            return
        requests = [chain.JobRequest(step.study, step.asked, step.title) for step in plan.steps]
        chain.begin(db, requests, lambda ended: report.finish(db, plan, [(job.run, job.error) for job in ended]))
        st.rerun()


def time_of(db: Database, steps: Sequence[ReportStep]) -> str:
    """How long these steps take together, by the rate of the most similar earlier run of each."""
    estimates = [estimate_duration(db, step.study, step.asked) for step in steps]
    timed = [time.seconds for time in estimates if time is not None]
    new = f"; {len(estimates) - len(timed)} more were never timed" if len(timed) < len(estimates) else ""
    work = f"about {job_progress.duration(max(sum(timed), 1))} of work for {len(timed)} of them{new}"
    return f"{len(steps)} steps: {work}. What was done before is not run again."


@st.fragment(run_every=1.0)
def watch() -> None:
    """The report under way: which step, and that step's job."""
    with clear_errors():
        now = chain.at_work(resources.database())
        if now is None or now.over:
            st.rerun()
            return
        title = plain(now.requests[now.at].title)
        st.progress(now.at / len(now.requests), text=f"Step {now.at + 1} of {len(now.requests)} · {title}")
        if now.job:
            job_progress.show_job(now.job, rows=False)


def results() -> None:
    """A stored report: summary, claims, exhibits."""
    db = resources.database()
    stored = pick_run(
        report.STUDY_NAME,
        NO_REPORT,
        label="report",
        icon=":material/menu_book:",
    )
    if stored is None:
        return
    records, about = records_of(stored.result_rows), About.of(one_run(db, stored.run))
    summary(records, about)
    downloads(records, about)
    claims_table(records)
    exhibits(records)


def show(tools: DeltaGenerator) -> None:
    """The view."""
    st.caption(
        "Every figure, table and claim of Kovaleva et al. 2019 and its GPT-2 replication, and what Michel, Clark and "
        "Brunner et al. measured, beside ours. What is stored is not computed again."
    )
    now = chain.at_work(resources.database())
    if now is not None and not now.over:
        watch()
    else:
        with drawer("Make a report of your own", report.STUDY_NAME):
            start()
        if now is not None and now.error:
            st.error(plain(now.error), icon=":material/info:")
    with clear_errors():
        results()
