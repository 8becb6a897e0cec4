"""The parts of the Reproduction page: summary, claims with links to their figures, exhibits, downloads."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
import streamlit as st

from core.atlas.example_grid import example_grids
from core.report.claims.outcomes import FAILS, HOLDS, KNOWN_ERROR, UNDECIDED, UNTESTED
from core.report.claims.registry import claim
from core.report.discoveries import together
from core.report.exhibits import Exhibit
from core.report.exhibits import exhibits as every_exhibit
from core.report.records import ClaimRecord, Records, ValueRecord
from core.report.rendering.charts import chart_of
from core.report.rendering.html import html_of
from core.report.rendering.parquet import parquet_files
from core.report.rendering.words import About, command_of, numbers_of, short
from core.tasks.glue import task_name
from pages.parts.shell.messages import counted, plain
from pages.parts.widgets.files import zipped
from pages.parts.widgets.tables import show_table

COLOURS = {HOLDS: "green", FAILS: "orange", UNDECIDED: "violet", UNTESTED: "gray", KNOWN_ERROR: "gray"}
SAID_OF_MANY: dict[str, str] = {
    HOLDS: "tests that hold", FAILS: "tests that do not hold", UNDECIDED: "undecided tests",
    UNTESTED: "cannot be tested", KNOWN_ERROR: "known errors",
}  # fmt: skip
COLUMNS = [
    "checkpoint", "task", "item", "condition", "published", "ours", "low", "high", "n", "of", "verdict", "why", "note",
    "source", "run",
]  # fmt: skip


def summary(records: Records, about: About) -> None:
    """How many numbers agree, how many claims hold, and the command that makes the report again."""
    verdicts = Counter(value.verdict for value in records.values if value.verdict)
    outcomes = Counter(claimed.outcome for claimed in records.claims)
    columns = st.columns(len(outcomes) or 1)
    for column, (word, count) in zip(columns, outcomes.items(), strict=False):
        column.metric(SAID_OF_MANY.get(word, word), count)
    compared = ", ".join(f"{count} {word}" for word, count in verdicts.items()) or "none"
    failed = [{"title": step.title, "error": step.error} for step in records.steps if step.error]
    st.caption(plain(f"Printed numbers beside ours: {compared} · {len(records.steps)} steps · {about.day}"))
    st.code(command_of(about.options), language=None, wrap_lines=True)
    if failed:
        with st.expander(f"{counted(len(failed), 'steps')} left nothing"):
            show_table(pd.DataFrame(failed))


def downloads(records: Records, about: About) -> None:
    """The report as a page that needs nothing else, and its rows."""

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
    """A line a claim, a column a checkpoint; each sentence leads to its figure on this page."""
    checkpoints = list(dict.fromkeys(claimed.checkpoint for claimed in records.claims))
    st.header("What the sources say, and whether it holds here", anchor="claims")
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
    with st.expander("The numbers behind each outcome"):
        names = ["claim", "checkpoint", "task", "outcome", "numbers", "n", "needed", "run"]
        frame = pd.DataFrame([asdict(claimed) | {"numbers": numbers_of(claimed)} for claimed in records.claims])
        wide = {
            "numbers": st.column_config.TextColumn(width="large"),
            "needed": st.column_config.NumberColumn("rows that would decide it"),
        }
        show_table(frame[names] if len(frame) else frame, column_config=wide)


def _cell(claims: Sequence[ClaimRecord]) -> str:
    parts = []
    for outcome, colour in COLOURS.items():
        outcome_claims = [claimed for claimed in claims if claimed.outcome == outcome]
        if outcome_claims:
            tasks = ", ".join(task_name(claimed.task) for claimed in outcome_claims if claimed.task)
            parts.append(f":{colour}[{outcome}]" + (f" {plain(tasks)}" if tasks else ""))
    return " · ".join(parts) or ":gray[not about it]"


def exhibits(records: Records) -> None:
    """Every figure and table in the sources' order."""
    with st.container(key="exhibits"):  # a picture that is wider than the window shrinks to it
        for exhibit in every_exhibit():
            exhibit_records = records.about(exhibit.id)
            if exhibit_records:
                _exhibit(exhibit, exhibit_records)


def _exhibit(exhibit: Exhibit, records: Records) -> None:
    st.header(exhibit.title, anchor=exhibit.id, divider="gray")
    st.caption(plain(f"{exhibit.source}, {exhibit.section}. Ours: {exhibit.measured}."))
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
        with st.expander(f"{len(printed)} printed numbers without ours"):
            show_table(_table(printed))
    if exhibit.errors:
        st.markdown("Known errors of the sources:\n" + "\n".join(f"- {plain(error)}" for error in exhibit.errors))


def _table(values: Sequence[ValueRecord]) -> pd.DataFrame:
    rows = [
        asdict(value) | {"checkpoint": short(value.checkpoint), "task": task_name(value.task), "ours": value.value}
        for value in values
    ]
    return pd.DataFrame(rows)[COLUMNS]
