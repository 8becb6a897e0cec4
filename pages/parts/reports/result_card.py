"""One result as a card: its headline, what it rests on, where it comes from, and what can be done with it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core import findings
from core.drawing.csv import csv_text
from core.findings import export, figures
from core.findings.pinning import finding_of_run
from core.store import runs, shipped_record
from core.store.rows import Row
from core.studies.attention.records import Score
from core.studies.headline import Headline
from pages.parts.charts.encoding import Shade
from pages.parts.charts.export import exported, together
from pages.parts.charts.heads import head_picture
from pages.parts.reports import headlines
from pages.parts.reports.provenance import StoredRun, stored_run
from pages.parts.shell import context, resources
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress
from pages.parts.widgets.head_links import is_missing
from pages.parts.widgets.pin import offer_pin_of_run
from pages.parts.widgets.undoing import take_away

# ---------------------------------------------------------------- A result as a figure and a citation


def offer_citation(stored: StoredRun, *, key: str) -> None:
    """A popover with the command, the BibTeX entry and the figures; they are made when it is opened."""
    cited = st.popover("Cite", icon=":material/format_quote:", key=key, on_change="rerun",
                       help="Figure (SVG), BibTeX entry and command")  # fmt: skip
    if cited.open:
        with cited:
            _show(stored, key)


def _show(stored: StoredRun, key: str) -> None:
    """As if it were pinned now."""
    with clear_errors():
        finding = finding_of_run(resources.database(), stored.run)
        finding = replace(finding, stored=stored.created, finding=stored.run[:12])
        if finding.command:
            st.code(finding.command, language="sh", wrap_lines=True)
        st.code(export.bibtex([finding]), language="bibtex", wrap_lines=True)
        for name, picture in export.svgs([finding]).items():
            label = f"Figure (SVG) {plain(name)}"
            st.download_button(label, picture, name, on_click="ignore", icon=":material/download:",
                               key=f"{key}_{name}")  # fmt: skip


def show_card(stored: StoredRun, *, key: str) -> None:
    """The result that is open."""
    run, headline = stored.run, headlines.headline_of(stored.run, rows=context.now().rows)
    with st.container(border=True, key=f"result_{key}"):
        st.markdown(f"**{plain(headline.sentence)}**")
        note = (shipped_record.about() or {}).get("note") if stored.source == "shipped" else None
        st.caption(plain(" · ".join(facts(headline, stored))), help=plain(note) if note else None)
        with st.container(horizontal=True, vertical_alignment="center"):
            _files(run, key)
            st.button("Run again", icon=":material/replay:", key=f"again_{key}", on_click=_again, args=(run,),
                      help="The same study with the same settings, as a job of your own")  # fmt: skip
            offer_citation(stored, key=f"cite_{key}")
            offer_pin_of_run(run, key=f"pin_{key}")
            if stored.source != "shipped":
                st.button("Delete", icon=":material/delete:", key=f"delete_{key}", on_click=_delete, args=(run,))


def show_line(stored: StoredRun, *, key: str, chosen: str) -> None:
    """One of the other results: its headline, and a button that opens it. chosen: the key that says which is open."""
    headline = headlines.headline_of(stored.run, rows=context.now().rows)
    text, button = st.columns([6, 1], vertical_alignment="center")
    text.markdown(plain(headline.sentence))
    text.caption(plain(" · ".join(facts(headline, stored))))
    button.button("Open", key=f"open_{key}_{stored.run}", on_click=_open, args=(chosen, stored.run), width="stretch")


def facts(headline: Headline, stored: StoredRun) -> list[str]:
    """n, interval, baseline, checkpoint, task, date and source, as far as they are known."""
    parts = [
        f"n = {headline.n} {headline.of}" if headline.n else "",
        headline.interval,
        f"beside: {headline.baseline}" if headline.baseline else "",
    ]
    if " (stopped: " in stored.title:
        parts.append("partial: " + stored.title.rpartition(" (stopped: ")[2].rstrip(")"))
    parts += [stored.checkpoint_said, stored.task_said, stored.date, stored.origin]
    return [fact for fact in (*parts, "its weights are not on this machine" if gone(stored) else "") if fact]


def gone(stored: StoredRun) -> bool:
    """Whether a checkpoint that the result is of is not there any more, or never was: its numbers stay."""
    return any(is_missing(name) for part in stored.of.split(" and ") for name in part.split(", "))


# ---------------------------------------------------------------- what the buttons do


def _open(chosen: str, run: str) -> None:
    st.session_state[chosen] = run


def _again(run: str) -> None:
    with clear_errors():
        stored = stored_run(run)
        job_progress.begin(stored.study, stored.told, stored.title)


def _delete(run: str) -> None:
    take_away(lambda db: runs.remove_run(db, run))


def _files(run: str, key: str) -> None:
    def rows() -> list[Row]:
        return runs.run_rows(resources.database(), run)

    downloads: list[tuple[str, Any]] = [("csv", lambda: csv_text(pd.DataFrame(rows())))]
    if headlines.has_picture(run):
        study = stored_run(run).study
        downloads += [(kind, lambda kind=kind: exported(picture(study, rows()), kind)) for kind in ("svg", "png")]
    downloads.append(("html", lambda: _page(run)))
    for kind, make in downloads:
        st.download_button(kind.upper(), make, f"{key}-{run[:8]}.{kind}", on_click="ignore", key=f"{kind}_{key}",
                           icon=":material/download:")  # fmt: skip


def _page(run: str) -> str:
    """The result as a page in one file, with its command, the checkpoint's hash and its heads."""
    return findings.result_page.result_page(resources.database(), run)


def picture(study: str, rows: Sequence[Row]) -> Any:
    """Layer x head pictures of a run's first statistic, one a checkpoint and task; of a study of anything else its
    largest numbers with their intervals."""
    scores = headlines.heads_of(rows)
    if not scores:
        return alt.Chart.from_dict(figures.pictures_of(study, rows)[0])
    groups: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        groups.setdefault(tuple(str(part) for part in (score.checkpoint, score.task) if part), []).append(score)
    return together([_picture(" · ".join(name), scores) for name, scores in groups.items()])


def _picture(title: str, scores: list[Score]) -> Any:
    below = any(score.value is not None and score.value < 0 for score in scores)
    return head_picture(
        pd.DataFrame(scores), Shade("value", label=str(scores[0].statistic), diverging=below), title=title
    )
