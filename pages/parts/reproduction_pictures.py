"""The parts of the Reproduction page: summary, claims with links to their figures, exhibits, downloads."""

import io
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from core.report.claims.outcomes import FAILS, HOLDS, UNDECIDED, UNTESTED
from core.report.exhibits import EXHIBITS, Exhibit, claim
from core.report.rendering.charts import chart_of, task_name
from core.report.rendering.html import command_of, html_of, parquet_files
from pages.parts.frame.messages import plain

Rows = list[dict[str, Any]]
COLOURS = {HOLDS: "green", FAILS: "orange", UNDECIDED: "violet", UNTESTED: "gray"}


def summary(rows: Rows, of: dict[str, Any]) -> None:
    """How many numbers agree, how many claims hold, and the command that makes the report again."""
    words = Counter(row["verdict"] for row in rows if row["kind"] == "value" and row["verdict"])
    outcomes = Counter(row["outcome"] for row in rows if row["kind"] == "claim")
    places = st.columns(len(outcomes) or 1)
    for place, (word, count) in zip(places, outcomes.items(), strict=False):
        place.metric(f"claims, {word}", count)
    said = ", ".join(f"{count} {word}" for word, count in words.items()) or "none"
    steps = [row for row in rows if row["kind"] == "step"]
    failed = [row for row in steps if row["error"]]
    st.caption(plain(f"Printed numbers beside ours: {said} · {len(steps)} steps · {of['created']:%d %B %Y}"))
    st.code(command_of(of["options"]), language=None, wrap_lines=True)
    if failed:
        with st.expander(f"{len(failed)} steps left nothing"):
            st.dataframe(pd.DataFrame(failed)[["title", "error"]], hide_index=True)


def downloads(rows: Rows, of: dict[str, Any]) -> None:
    """The report as a page that needs nothing else, and its rows."""
    left, right = st.columns([1, 1])
    left.download_button(
        "Report as HTML", lambda: html_of(of, rows), "report.html", "text/html", icon=":material/download:",
        on_click="ignore", width="stretch",
    )  # fmt: skip
    right.download_button(
        "Rows as Parquet", lambda: _zipped(parquet_files(rows)), "report-parquet.zip", "application/zip",
        icon=":material/download:", on_click="ignore", width="stretch",
    )  # fmt: skip


def _zipped(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def claims_table(rows: Rows) -> None:
    """A line a claim, a column a checkpoint; each sentence leads to its figure on this page."""
    found = [row for row in rows if row["kind"] == "claim"]
    checkpoints = list(dict.fromkeys(row["checkpoint"] for row in found))
    st.header("What the sources say, and whether it holds here", anchor="claims")
    heads = ["claim", "source", *(plain(Path(name).name) for name in checkpoints)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for id in dict.fromkeys(row["claim"] for row in found):
        mine = [row for row in found if row["claim"] == id]
        first = mine[0]
        error = f" :orange[Known error: {plain(first['known_error'])}]" if first["known_error"] else ""
        source = f":gray[{plain(first['source'])} {plain(first['section'])}]{error}"
        cells = [_cell([row for row in mine if row["checkpoint"] == name]) for name in checkpoints]
        lines.append("| " + " | ".join([f"[{plain(first['sentence'])}](#{first['exhibit']})", source, *cells]) + " |")
    st.markdown("\n".join(lines))
    with st.expander("The numbers behind each outcome"):
        names = ["claim", "checkpoint", "task", "outcome", "said", "n", "run"]
        st.dataframe(
            pd.DataFrame(found)[names],
            hide_index=True,
            column_config={"said": st.column_config.TextColumn(width="large")},
        )


def _cell(rows: Rows) -> str:
    parts = []
    for outcome, colour in COLOURS.items():
        mine = [row for row in rows if row["outcome"] == outcome]
        if mine:
            tasks = ", ".join(task_name(row["task"]) for row in mine if row["task"])
            parts.append(f":{colour}[{outcome}]" + (f" {plain(tasks)}" if tasks else ""))
    return " · ".join(parts) or ":gray[not about it]"


def exhibits(rows: Rows) -> None:
    """Every figure and table in the sources' order."""
    for item in EXHIBITS:
        mine = [row for row in rows if row.get("exhibit") == item.id]
        if mine:
            _exhibit(item, mine)


def _exhibit(item: Exhibit, rows: Rows) -> None:
    st.header(item.title, anchor=item.id, divider="gray")
    st.caption(plain(f"{item.source}, {item.section}. Ours: {item.measured}."))
    chart = chart_of(item, rows)
    if chart is not None:
        st.altair_chart(chart, width="content")
    tested = [
        known for id in dict.fromkeys(row["claim"] for row in rows if row["kind"] == "claim") if (known := claim(id))
    ]
    if tested:
        st.markdown("Claims: " + " · ".join(f"[{plain(known.sentence)}](#claims)" for known in tested))
    values = pd.DataFrame([row for row in rows if row["kind"] == "value"])
    if len(values):
        measured = values[values["value"].notna()]
        if len(measured):
            st.dataframe(_table(measured), hide_index=True)
        printed = values[values["value"].isna()]
        if len(printed):
            with st.expander(f"{len(printed)} printed numbers without ours"):
                st.dataframe(_table(printed), hide_index=True)
    if item.errors:
        st.markdown("Known errors of the sources:\n" + "\n".join(f"- {plain(error)}" for error in item.errors))


def _table(values: pd.DataFrame) -> pd.DataFrame:
    names = [
        "checkpoint",
        "task",
        "item",
        "condition",
        "published",
        "value",
        "low",
        "high",
        "n",
        "of",
        "verdict",
        "why",
        "note",
        "source",
        "run",
    ]
    shown = values.assign(
        checkpoint=[Path(name).name for name in values["checkpoint"]], task=values["task"].map(task_name)
    )
    return shown[names].rename(columns={"value": "ours"})
