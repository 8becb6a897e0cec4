"""Reproduction: published figures, tables and claims compared with measurements, as one report."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.atlas.example import example_grids
from core.config import command_line, settings
from core.jobs import chain
from core.jobs.duration_estimate import estimate_duration
from core.report import report
from core.report.claims import claim
from core.report.claims.outcomes import FAILS, HOLDS, KNOWN_ERROR, UNDECIDED, UNTESTED
from core.report.headlines import together
from core.report.plan import DEFAULTS, PART_STEPS, ReportOptions, ReportStep
from core.report.published_values import Exhibit
from core.report.published_values import exhibits as every_exhibit
from core.report.records import REPORT, ClaimRecord, Records, ValueRecord, records_of
from core.report.rendering.charts import chart_of
from core.report.rendering.html import html_of, parquet_files
from core.report.rendering.words import About, command_of, needed_of, numbers_of, short
from core.store.database import Database
from core.store.runs import one_run
from core.tasks.glue import TASKS, task_name
from pages.parts.reports.study_view import details, drawer, shown_result
from pages.parts.shell import resources, url
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.widgets import checkpoint_chooser, job_progress, pickers
from pages.parts.widgets.files import zipped
from pages.parts.widgets.tables import show_table

# ---------------------------------------------------------------- the parts of the Reproduction page


COLOURS = {HOLDS: "green", FAILS: "orange", UNDECIDED: "gray", UNTESTED: "gray", KNOWN_ERROR: "gray"}
SAID_OF_MANY: dict[str, str] = {
    HOLDS: "tests that hold", FAILS: "tests that do not hold", UNDECIDED: "undecided tests",
    UNTESTED: "cannot be tested", KNOWN_ERROR: "known errors",
}  # fmt: skip
TINTS = {  # readable in both themes
    HOLDS: "rgba(0, 158, 115, 0.25)", FAILS: "rgba(213, 94, 0, 0.25)", UNDECIDED: "rgba(140, 140, 140, 0.25)",
}  # fmt: skip
GRID_HEIGHT = 480
ROW_HEIGHT, CLAIM_WIDTH = 66, 430  # pixels; in rows of this height, Streamlit wraps sentences
MODES = ("Claims", "Document")
COLUMNS = [
    "checkpoint", "task", "item", "condition", "published", "ours", "low", "high", "n", "of", "verdict", "why", "note",
    "source", "run",
]  # fmt: skip


def summary(records: Records, about: About) -> None:
    """Show how many numbers agree, the command of the report, and the steps without results."""
    verdicts = Counter(value.verdict for value in records.values if value.verdict)
    compared = ", ".join(f"{count} {word}" for word, count in verdicts.items()) or "none"
    failed = [{"title": step.title, "error": step.error} for step in records.steps if step.error]
    st.caption(plain(f"Published numbers compared with ours: {compared} · {len(records.steps)} steps · {about.day}"))
    st.code(command_of(about.options), language=None, wrap_lines=True)
    if failed:
        with st.expander(f"{counted(len(failed), 'steps')} of the report failed"):
            show_table(pd.DataFrame(failed))


# ---------------------------------------------------------------- the grid


def grid(records: Records) -> None:
    """Show one row per claim and one column per task with outcomes, filtered by outcome and source."""
    found = Counter(claimed.outcome for claimed in records.claims)
    counts = {word: found[word] for word in dict.fromkeys([*SAID_OF_MANY, *found]) if word in found}
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    labels = {word: f"{plain(SAID_OF_MANY.get(word, word))} ({count})" for word, count in counts.items()}
    outcomes = url.pick_many(left.pills, "Outcome", labels, key="outcomes", selection_mode="multi")
    sources = list(dict.fromkeys(claimed.source for claimed in records.claims))
    source = url.pick(right.selectbox, "Source", ["", *sources], key="source", format_func=lambda name: name or "all")
    claims = [
        claimed
        for claimed in records.claims
        if (not outcomes or claimed.outcome in outcomes) and source in ("", claimed.source)
    ]
    if not claims:
        st.info("No claim matches this selection. Choose another outcome or source.", icon=":material/filter_alt:")
        return
    frame = cells_of(claims)
    styled = frame.style.map(_tinted, subset=[name for name in frame.columns if name != "claim"])
    event = show_table(
        styled, height=GRID_HEIGHT, row_height=ROW_HEIGHT, on_select="rerun", selection_mode="single-row",
        key="claims_grid", column_config={"claim": st.column_config.TextColumn(width=CLAIM_WIDTH)},
    )  # fmt: skip
    sentence = frame["claim"].iloc[(event.selection.rows or [0])[0]]
    _behind([claimed for claimed in records.claims if claimed.sentence == sentence])


def cells_of(claims: Sequence[ClaimRecord]) -> pd.DataFrame:
    """Return one row per claim, one column per checkpoint and task; a cell has the outcome."""
    checkpoints = dict.fromkeys(claimed.checkpoint for claimed in claims)
    rows: dict[str, dict[str, str]] = {}
    for claimed in claims:
        task = task_name(claimed.task) if claimed.task else "all tasks"
        column = task if len(checkpoints) == 1 else f"{short(claimed.checkpoint)}, {task}"
        rows.setdefault(claimed.sentence, {})[column] = claimed.outcome
    columns = sorted(
        {column for cells in rows.values() for column in cells}, key=lambda name: ("all tasks" in name, name)
    )
    return pd.DataFrame([
        {"claim": sentence} | {column: cells.get(column, "") for column in columns} for sentence, cells in rows.items()
    ])  # fmt: skip


def _tinted(cell: str) -> str:
    """Return the colour of a cell by its outcome."""
    tint = next((tint for outcome, tint in TINTS.items() if cell.startswith(outcome)), None)
    return f"background-color: {tint}" if tint else ""


def _behind(claims: Sequence[ClaimRecord]) -> None:
    """Show the numbers of one claim, and its place in the source."""
    first = claims[0]
    st.markdown(f"**{plain(first.sentence)}** {plain(first.source)}, {plain(first.section)}")
    frame = pd.DataFrame([
        {"checkpoint": plain(short(claimed.checkpoint)), "task": plain(task_name(claimed.task or "")) or "all tasks",
         "outcome": claimed.outcome, "measured": plain(claimed.said), "margin": f"{claimed.margin or 0:g}",
         "fine-tuning seeds": str(claimed.seeds or ""), "needed to decide": plain(needed_of(claimed))}
        for claimed in claims
    ])  # fmt: skip
    empty = [name for name in ("margin", "fine-tuning seeds", "needed to decide") if set(frame[name]) <= {"", "0"}]
    alike = ["checkpoint"] if frame["checkpoint"].nunique() == 1 else []
    st.table(frame.drop(columns=[*empty, *alike]), hide_index=True)
    if any(claimed.seeds == 1 for claimed in claims):
        st.caption("With one seed of fine-tuning, the interval does not include the variation between seeds.")
    if any("cosine" in claimed.said for claimed in claims):
        st.caption(
            "A cosine of 1 means that fine-tuning did not change attention. “Change in attention” shows 1 − cosine."
        )
    if first.known_error:
        st.caption(plain(f"Known error of the source: {first.known_error}"))


def downloads(records: Records, about: About) -> None:
    """Offer the report as a self-contained page, and its rows."""

    def page() -> str:
        return html_of(about, records, example_grids(about.options.checkpoints))

    left, right = st.columns([1, 1])
    left.download_button(
        "Report as HTML", page, "report.html", "text/html", icon=":material/download:", on_click="ignore",
        width="stretch",
    )  # fmt: skip
    right.download_button(
        "Rows as Parquet", lambda: zipped(parquet_files(records)), "report-parquet.zip", "application/zip",
        icon=":material/download:", on_click="ignore", width="stretch",
    )  # fmt: skip


def claims_table(records: Records) -> None:
    """Show one line per claim, one column per checkpoint; each sentence links to its figure."""
    checkpoints = list(dict.fromkeys(claimed.checkpoint for claimed in records.claims))
    st.header("Claims and whether they hold for these models", anchor="claims")
    heads = ["claim", "source", *(plain(short(name)) for name in checkpoints)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for claims in records.by_claim().values():
        first = claims[0]
        error = f" :orange[Known error: {plain(first.known_error)}]" if first.known_error else ""
        source = f":gray[{plain(first.source)} {plain(first.section)}]{error}"
        cells = [_cell([claimed for claimed in claims if claimed.checkpoint == name]) for name in checkpoints]
        lines.append("| " + " | ".join([f"[{plain(first.sentence)}](#{first.exhibit})", source, *cells]) + " |")
    st.markdown("\n".join(lines))
    st.caption(plain(together(records.claims)))
    with st.expander("Measured values for each claim"):
        names = ["claim", "checkpoint", "task", "outcome", "numbers", "n", "needed", "run"]
        frame = pd.DataFrame([asdict(claimed) | {"numbers": numbers_of(claimed)} for claimed in records.claims])
        wide = {
            "numbers": st.column_config.TextColumn(width="large"),
            "needed": st.column_config.NumberColumn("examples needed to decide"),
        }
        show_table(frame[names] if len(frame) else frame, column_config=wide)


def _cell(claims: Sequence[ClaimRecord]) -> str:
    parts = []
    for outcome, colour in COLOURS.items():
        outcome_claims = [claimed for claimed in claims if claimed.outcome == outcome]
        if outcome_claims:
            tasks = ", ".join(task_name(claimed.task) for claimed in outcome_claims if claimed.task)
            parts.append(f":{colour}[{outcome}]" + (f" {plain(tasks)}" if tasks else ""))
    return " · ".join(parts) or ":gray[does not apply]"


def exhibits(records: Records) -> None:
    """Show every figure and table in the order of the sources."""
    with st.container(key="exhibits"):  # a picture that is wider than the window shrinks to it
        for exhibit in every_exhibit():
            exhibit_records = records.about(exhibit.id)
            if exhibit_records:
                _exhibit(exhibit, exhibit_records)


def _exhibit(exhibit: Exhibit, records: Records) -> None:
    st.header(exhibit.title, anchor=exhibit.id, divider="gray")
    st.caption(plain(f"{exhibit.source}, {exhibit.section}. How our numbers are measured: {exhibit.measured}"))
    chart: Any = chart_of(exhibit, records)
    if chart is not None:
        st.altair_chart(chart, width="content")
    tested = [
        registered for id in dict.fromkeys(claimed.claim for claimed in records.claims) if (registered := claim(id))
    ]
    if tested:
        st.markdown("Claims: " + " · ".join(f"[{plain(registered.sentence)}](#claims)" for registered in tested))
    measured = [value for value in records.values if value.value is not None]
    printed = [value for value in records.values if value.value is None]
    if measured:
        show_table(_table(measured))
    if printed:
        with st.expander(f"{len(printed)} published numbers that were not measured here"):
            show_table(_table(printed))
    if exhibit.errors:
        st.markdown("Known errors of the sources:\n" + "\n".join(f"- {plain(error)}" for error in exhibit.errors))


def _table(values: Sequence[ValueRecord]) -> pd.DataFrame:
    rows = [
        asdict(value) | {"checkpoint": short(value.checkpoint), "task": task_name(value.task), "ours": value.value}
        for value in values
    ]
    return pd.DataFrame(rows)[COLUMNS]


NO_REPORT = (
    "No report is stored yet. Choose checkpoints above and press “Make the report”, or run "
    f"`{command_line('reproduce', 'atlas-encoder', 'atlas-decoder')}` in a terminal. With the default sample "
    "sizes, a report takes about 15 minutes on two CPU cores."
)


def chosen_options() -> dict[str, Any] | None:
    """Ask what to report on; None while no checkpoint is chosen."""
    left, right = st.columns([3, 2])
    checkpoints = url.pick_many(
        left.multiselect, "Checkpoints", pickers.checkpoint_names(), key="checkpoints", default=DEFAULTS.checkpoints,
        accept_new_options=True, help=checkpoint_chooser.HELP,
    )  # fmt: skip
    glue = settings().glue
    data_folder = right.text_input(
        "Data",
        str(glue or ""),
        placeholder="path of a folder (default: the bundled samples)",
        key="data",
        bind="query-params",
        help="A folder with the GLUE tasks, the frame sentences of Kovaleva et al. 2019 and of the GPT-2 "
        "replication, and a treebank. They may be in subfolders.",
    )
    with st.expander("Tasks, parts of the report and sample sizes"):
        task_column, part_column = st.columns(2)
        tasks = url.pick_many(
            task_column.multiselect,
            "Tasks",
            list(TASKS),
            key="tasks",
            format_func=lambda key: TASKS[key].name,
            placeholder="all there",
        )
        parts = url.pick_many(part_column.multiselect, "Parts", PART_STEPS, key="parts", placeholder="all")
        places = st.columns(5)
        numbers = {
            "limit": places[0].number_input("Examples for maps", 8, 100_000, DEFAULTS.limit, key="limit",
                                            bind="query-params"),
            "sweep_limit": places[1].number_input("Examples for "
                                                  "ablations", 8, 100_000, DEFAULTS.sweep_limit, key="sweep_limit",
                                                  bind="query-params"),
            "train_limit": places[2].number_input("Train rows", 8, None, DEFAULTS.train_limit, key="train_limit",
                                                  bind="query-params"),
            "seeds": places[3].number_input("Seeds", 1, 20, DEFAULTS.seeds, key="seeds", bind="query-params"),
            "folds": places[4].number_input("Folds", 0, 20, DEFAULTS.folds, key="folds", bind="query-params",
                                            help="Tests heads on train examples of RTE and MRPC (as many as "
                                                 "“Train rows”) by cross-fitting with this number of folds. 0 "
                                                 "tests heads on dev examples only."),
        }  # fmt: skip
    if not checkpoints:
        return None
    return {"checkpoints": checkpoints, "data": data_folder.strip() or None, "tasks": tasks, "parts": parts} | numbers


def start() -> None:
    """Ask for options, and start the jobs one after another."""
    options = chosen_options()
    with st.container(horizontal=True):
        begins = st.button("Make the report", type="primary", disabled=options is None)
        asks = st.button("Estimate the time", disabled=options is None)
    if options is None or not (begins or asks):
        return
    with clear_errors():
        db = resources.database()
        for name in options["checkpoints"]:
            resources.refuse_missing(name)
        with st.spinner("Looking at data and checkpoints ..."):
            plan = report.prepared(db, ReportOptions.read(options))
        if asks:
            st.caption(time_of(db, plan.steps))
            return
        requests = [chain.JobRequest(step.study, step.asked, step.title) for step in plan.steps]
        chain.begin(db, requests, lambda ended: report.finish(db, plan, [(job.run, job.error) for job in ended]))
        st.rerun()


def time_of(db: Database, steps: Sequence[ReportStep]) -> str:
    """Return how long these steps take together, estimated from the most similar earlier runs."""
    estimates = [estimate_duration(db, step.study, step.asked) for step in steps]
    timed = [time.seconds for time in estimates if time is not None]
    new = f"; {len(estimates) - len(timed)} more have no time estimate" if len(timed) < len(estimates) else ""
    work = f"about {job_progress.duration(max(sum(timed), 1))} of work for {len(timed)} of them{new}"
    return f"{len(steps)} steps: {work}. Steps with stored results are not run again."


@st.fragment(run_every=1.0)
def watch() -> None:
    """Show the running report: its current step, and the job of this step."""
    with clear_errors():
        now = chain.at_work(resources.database())
        if now is None or now.over:
            st.rerun()
            return
        title = plain(now.requests[now.at].title)
        st.progress(now.at / len(now.requests), text=f"Step {now.at + 1} of {len(now.requests)} · {title}")
        if now.job:
            job_progress.show_job(now.job, rows=False)


def results(mode: str) -> None:
    """Show a stored report: its claims as a grid, or the document with all figures and tables."""
    db = resources.database()
    with shown_result(
        REPORT,
        NO_REPORT,
        question="Which published claims hold for the models of this report?",
        label="report",
        icon=":material/menu_book:",
    ) as stored:
        if stored is None:
            return
        records, about = records_of(stored.result_rows), About.of(one_run(db, stored.run))
        if mode == MODES[0]:
            grid(records)
        else:
            claims_table(records)
            exhibits(records)
        with details():
            st.markdown(
                "This report compares our results with every figure, table and claim of Kovaleva et al. 2019 and "
                "of its GPT-2 replication. It also covers measurements by Michel et al., Clark et al. and Brunner "
                "et al."
            )
            summary(records, about)
            downloads(records, about)


def show(tools: DeltaGenerator) -> None:
    with tools:
        mode = url.pick_mode(MODES)
    now = chain.at_work(resources.database())
    if now is not None and not now.over:
        watch()
    elif now is not None and now.error:
        st.error(plain(now.error), icon=":material/info:")
    with clear_errors():
        results(mode)
    if now is None or now.over:
        with drawer("Create a report for your checkpoints", REPORT):
            start()
