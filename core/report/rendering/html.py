"""The report as files: a self-contained HTML page with charts, Markdown, and rows as Parquet.

The page is a Jinja template, which escapes every text. It includes a copy of Vega and makes no network requests.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from ...atlas.example import example_grids
from ...drawing import conversion, theme
from ...drawing.packing import pack_together
from ...drawing.page import GridTabs, as_script_data, colours, controls_style, page_template, policy, scripts_of
from ...drawing.payload import workbench_style
from ...errors import StoreError
from ...tasks.glue import task_name
from ...writing import write_whole
from ..claims import claim
from ..claims.outcomes import UNTESTED, OutcomeWord
from ..headlines import together
from ..published_values import Exhibit, exhibits
from ..records import ClaimRecord, Records, ValueRecord, rows_of
from .charts import chart_of
from .words import About, command_of, numbers_of, short

# ---------------------------------------------------------------- Parquet


FILES = {"value": "values", "claim": "claims", "head": "heads", "step": "steps"}  # by kind of row


def parquet_files(records: Records) -> dict[str, bytes]:
    """Convert the tables of a report (values, claims, heads and steps) to Parquet. Return the bytes by file name."""
    rows, contents = rows_of(records), {}
    for kind, name in FILES.items():
        kind_rows = [
            {
                key: json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value
                for key, value in row.items()
            }
            for row in rows
            if row["kind"] == kind
        ]
        stream = BytesIO()
        pd.DataFrame(kind_rows).to_parquet(stream, index=False)
        contents[f"{name}.parquet"] = stream.getvalue()
    return contents


# -------------------- The report in short, as Markdown for a repository or a mail, and its pictures as SVG


def pictures(records: Records) -> dict[str, str]:
    """Draw the plots of a report as SVG text in the light theme. The keys are IDs of figures and tables."""
    charts = {exhibit.id: chart_of(exhibit, records.about(exhibit.id)) for exhibit in exhibits()}
    drawn = {
        id: chart.to_dict() | {"config": theme.of_saved_charts()} for id, chart in charts.items() if chart is not None
    }
    return dict(zip(drawn, conversion.svgs_of(list(drawn.values())), strict=True))


def markdown(about: About, records: Records) -> str:
    """Return the report as Markdown: counts of agreement with published numbers, and the outcomes of all claims."""
    verdicts = Counter(value.verdict for value in records.values if value.verdict)
    measured_steps = sum(not step.error for step in records.steps)
    counted = ", ".join(f"{count} {word}" for word, count in verdicts.items()) or "none"
    parts = [
        f"{about.day}; {measured_steps} of {len(records.steps)} steps, {records.seconds / 60:.0f} minutes "
        f"in workers. Published numbers compared with ours: {counted}.",
        f"    {command_of(about.options)}",
        _claims(records),
        together(records.claims),
        _numbers(records.claims),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _claims(records: Records) -> str:
    checkpoints = list(dict.fromkeys(outcome.checkpoint for outcome in records.claims))
    lines = [
        "| claim | " + " | ".join(map(short, checkpoints)) + " |",
        "|---" * (len(checkpoints) + 1) + "|",
    ]
    for id, outcomes in records.by_claim().items():
        registered, first = claim(id), outcomes[0]
        error = f" *({first.known_error})*" if first.known_error else ""
        source = f"{registered.source} {registered.section}".strip() if registered else first.source
        cells = [cell([outcome for outcome in outcomes if outcome.checkpoint == name]) for name in checkpoints]
        lines.append(f"| {_plain(first.sentence)} ({source}){error} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(claims: Sequence[ClaimRecord]) -> str:
    """Format the outcomes of a claim on a checkpoint for a table cell, such as "holds: RTE; undecided: SST-2"."""
    parts = []
    for outcome in OutcomeWord:
        outcome_claims = [result for result in claims if result.outcome == outcome]
        if outcome_claims:
            tasks = ", ".join(task_name(result.task) for result in outcome_claims if result.task)
            parts.append(f"{outcome}" + (f": {tasks}" if tasks else ""))
    return "; ".join(parts) or "does not apply"


def _numbers(claims: Sequence[ClaimRecord]) -> str:
    lines = ["| claim | checkpoint | task | outcome | numbers | n |", "|---|---|---|---|---|---|"]
    for outcome in claims:
        if outcome.outcome != UNTESTED:
            cells = (
                outcome.claim,
                short(outcome.checkpoint),
                task_name(outcome.task),
                outcome.outcome,
                numbers_of(outcome),
                outcome.n or "",
            )
            lines.append("| " + " | ".join(_plain(text) for text in cells) + " |")
    return "\n".join(lines)


def _plain(text: object) -> str:
    """Return text for a table cell, escaped so that it cannot end the cell or start a link."""
    return str(text).replace("|", "\\|").replace("[", "\\[").replace("\n", " ")


TEMPLATES = Path(__file__).with_name("templates")
MOST_MAPS = 1_000_000  # bytes of the maps of all checkpoints, beside the pictures
NO_MAPS = GridTabs({})


def write_report(folder: Path, about: About, records: Records, *, figures: bool = False) -> Path:
    """Write a report to a folder as HTML, Markdown, Parquet and optionally SVG. Return the path of report.html."""
    page = folder / "report.html"
    for name, content in parquet_files(records).items():
        write_whole(folder / name, content, StoreError)
    write_whole(page, html_of(about, records, example_grids(about.options.checkpoints)), StoreError)
    write_whole(folder / "report.md", markdown(about, records), StoreError)
    for name, picture in pictures(records).items() if figures else ():
        write_whole(folder / "figures" / f"{name}.svg", picture, StoreError)
    return page


@dataclass(frozen=True)
class _Part:
    """An exhibit on the page. tested: claims; measured, printed: numbers with and without a measured value."""

    exhibit: Exhibit
    tested: dict[str, str]
    measured: Sequence[ValueRecord]
    printed: Sequence[ValueRecord]


def html_of(about: About, records: Records, shelf: GridTabs = NO_MAPS) -> str:
    """Return the report as an HTML page, with the attention maps in `shelf` as interactive heatmaps."""
    shown = [(exhibit, exhibit_records) for exhibit in exhibits() if (exhibit_records := records.about(exhibit.id))]
    charts = {
        exhibit.id: chart
        for exhibit, exhibit_records in shown
        if (chart := chart_of(exhibit, exhibit_records)) is not None
    }
    figures = {"specs": {id: chart.to_dict() for id, chart in charts.items()}, "ranges": theme.ranges()}
    scripts = scripts_of(maps=bool(shelf.grids), charts=True)
    verdicts = Counter(value.verdict for value in records.values if value.verdict)
    light, dark = (
        theme.variables(theme.PAGE, mode) + ";" + theme.variables(theme.WORKBENCH, mode) for mode in ("light", "dark")
    )
    outcomes = (
        "--o0:#00694d;--o1:#a94400;--o2:#7a6200;--o3:#666",
        "--o0:#4cc79f;--o1:#ff9b66;--o2:#e0c04a;--o3:#a0a6ad",
    )
    report_css = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    both = colours(f"{light};{outcomes[0]}", f"{dark};{outcomes[1]}")
    return _template().render(
        title=about.title, names=", ".join(map(short, about.options.checkpoints)),
        data=about.options.data or "the bundled samples", created=about.day,
        minutes=f"{records.seconds / 60:.0f}",
        counted=", ".join(f"{count} {word}" for word, count in verdicts.items()) or "none",
        command=command_of(about.options), order=list(OutcomeWord),
        checkpoints=list(dict.fromkeys(outcome.checkpoint for outcome in records.claims)), by_claim=records.by_claim(),
        together=together(records.claims),
        parts=[_part(exhibit, exhibit_records) for exhibit, exhibit_records in shown],
        drawn=set(charts), steps=records.steps, style=f"{both}\n{report_css}\n{controls_style()}",
        shelf=shelf, maps=[picture.text for picture in pack_together(list(shelf.grids.values()), MOST_MAPS)],
        workbench=workbench_style(),
        figures=as_script_data(figures), scripts=scripts, policy=policy(scripts, charts=True),
    )  # fmt: skip


@cache
def _template() -> Any:
    filters: dict[str, Callable[..., Any]] = {
        "short": short,
        "task_name": task_name,
        "numbers": numbers_of,
        "thousands": lambda n: f"{n:,}",
        "digits": lambda value, digits: f"{value:.{digits}g}",
    }
    return page_template("report.html.j2", TEMPLATES, filters)


def _part(exhibit: Exhibit, records: Records) -> _Part:
    sentences = {outcome.claim: claim(outcome.claim) for outcome in records.claims}
    return _Part(
        exhibit,
        {id: registered.sentence for id, registered in sentences.items() if registered},
        [value for value in records.values if value.value is not None],
        [value for value in records.values if value.value is None],
    )
