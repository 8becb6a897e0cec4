"""One result: question, finding, certainty, provenance, and one menu."""

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
from core.store import shipped_record
from core.store.findings import Finding
from core.store.rows import Row
from core.studies.attention.records import Score
from core.studies.headline import Headline
from core.studies.imports import result_rows
from core.tasks.glue import sampled
from pages.parts.charts.encoding import Shade
from pages.parts.charts.heads import head_picture
from pages.parts.reports import stored_runs
from pages.parts.reports.stored_runs import StoredRun, stored_run
from pages.parts.shell import context, resources
from pages.parts.shell.links import is_missing
from pages.parts.shell.messages import clear_errors, plain, short_names
from pages.parts.widgets import job_progress
from pages.parts.widgets.files import exported, together
from pages.parts.widgets.pickers import task_name
from pages.parts.widgets.result_actions import ask_pin_of_run, delete_run

# ---------------------------------------------------------------- the answer


def show_answer(stored: StoredRun, *, key: str, question: str = "") -> None:
    """Show the question, what the result is about, the finding in one sentence, its certainty, and one menu."""
    headline = stored_runs.headline_of(stored.run, rows=context.now().rows)
    show_own_answer(
        question,
        about(stored, headline, context.now().rows),
        headline.sentence,
        support(headline),
        key=key,
        stored=stored,
    )


def show_own_answer(
    question: str, about_it: Sequence[str], sentence: str, sure: str, *, key: str, stored: StoredRun | None = None
) -> None:
    """Show the same for an answer that the view formulates itself."""
    with st.container(key=f"result_{key}", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            if question:
                st.subheader(plain(question), anchor=False, width="content")
            else:
                st.caption(plain(" · ".join(about_it)), width="content")
            if stored is not None:
                show_menu(stored, key=key)
        if question:
            st.caption(plain(" · ".join(about_it)))
        with st.container(key=f"answer_{key}", gap=None):
            st.markdown(f"**{plain(sentence)}**")
            if sure:
                st.caption(plain(sure))


def about(stored: StoredRun, headline: Headline, rows: str | None = None) -> list[str]:
    """Return model, task, n, date and origin of a result, as far as known. `rows` is the task of the headline, if there
    are several."""
    several = (stored.task or "").split(", ")
    task = task_name(rows) if rows and rows in several else ""
    tasks = sampled(task) if stored.sampled else task
    compared = stored.told.get("compare")
    beside = f" compared with {short_names([compared])[compared]}" if isinstance(compared, str) and compared else ""
    parts = [
        stored.checkpoint_said + (beside if str(compared) not in str(stored.checkpoint) else ""),
        tasks or stored.task_said,
        f"n = {headline.n:,} {headline.of}" if headline.n else "",
    ]
    if " (stopped: " in stored.title:
        parts.append("partial: " + stored.title.rpartition(" (stopped: ")[2].rstrip(")"))
    parts += [
        stored.date,
        stored.origin,
        # a checkpoint that no longer exists on this machine; the numbers remain
        "the weights of its checkpoint are not on this machine" if any(map(is_missing, stored.checkpoints)) else "",
    ]
    return [part for part in parts if part]


def support(headline: Headline) -> str:
    """Return the interval and the baseline of a finding as sentences; "" without them."""
    parts = (headline.interval, headline.baseline)
    return " ".join(f"{part.removesuffix('.')}." for part in parts if part)


def show_menu(stored: StoredRun, *, key: str) -> None:
    """Show one menu: files, citation, pin, rerun, and deletion of results that are not bundled."""
    note = (shipped_record.about() or {}).get("note") if stored.source == "shipped" else None
    menu = st.popover("Save or cite", icon=":material/ios_share:", key=f"menu_{key}", on_change="rerun",
                      help="Save this result as files, cite it with BibTeX, copy its command, pin it, or run it "
                           "again.")  # fmt: skip
    with menu:
        with st.container(horizontal=True):
            offer_files(stored.run, key=key)
        if menu.open:
            _show_citation(stored, key)
        with st.container(horizontal=True):
            st.button("Run again", icon=":material/replay:", key=f"again_{key}", on_click=_again, args=(stored.run,),
                      help="Starts a new job with the same study and the same settings.")  # fmt: skip
            if stored.source != "shipped":
                st.button("Delete", icon=":material/delete:", key=f"delete_{key}", on_click=delete_run,
                          args=(stored.run,))  # fmt: skip
        ask_pin_of_run(stored.run, key=f"pin_{key}")
        if note:
            st.caption(plain(note))


def offer_citation(stored: StoredRun, *, key: str) -> None:
    """Show a popover with the command, the BibTeX entry and the figures, which are created when it is opened."""
    cited = st.popover("Cite", icon=":material/format_quote:", key=key, on_change="rerun",
                       help="Save the figure as SVG, cite the result with BibTeX, or copy the command that "
                            "reproduces it.")  # fmt: skip
    if cited.open:
        with cited:
            _show_citation(stored, key)


def _show_citation(stored: StoredRun, key: str) -> None:
    """Show the command, the BibTeX entry and the figures of a result."""
    with clear_errors():
        finding = show_reference(stored)
        for name, picture in export.svgs([finding]).items():
            label = f"Figure (SVG) {plain(name)}"
            st.download_button(label, picture, name, on_click="ignore", icon=":material/download:",
                               key=f"{key}_{name}")  # fmt: skip


def show_reference(stored: StoredRun) -> Finding:
    """Show the command and the BibTeX entry of a result; return the result as a finding."""
    finding = finding_of_run(resources.database(), stored.run)
    finding = replace(finding, stored=stored.created, finding=stored.run[:12])
    if finding.command:
        st.code(finding.command, language="sh", wrap_lines=True)
    st.code(export.bibtex([finding]), language="bibtex", wrap_lines=True)
    return finding


def show_line(stored: StoredRun, *, key: str, chosen: str) -> None:
    """Show the headline of another result with a button that opens it. `chosen` is the key of the open result."""
    headline = stored_runs.headline_of(stored.run)
    text, button = st.columns([6, 1], vertical_alignment="center")
    text.markdown(plain(headline.sentence))
    text.caption(plain(" · ".join(facts(headline, stored))))
    button.button("Open", key=f"open_{key}_{stored.run}", on_click=_open, args=(chosen, stored.run), width="stretch")


def facts(headline: Headline, stored: StoredRun) -> list[str]:
    """Return all known facts about a result in a list: its certainty, and what it is about."""
    return [fact for fact in (support(headline).removesuffix("."), *about(stored, headline)) if fact]


# ---------------------------------------------------------------- what the buttons do


def _open(chosen: str, run: str) -> None:
    st.session_state[chosen] = run


def _again(run: str) -> None:
    with clear_errors():
        stored = stored_run(run)
        job_progress.begin(stored.study, stored.told, stored.title)


def offer_files(run: str, *, key: str) -> None:
    """Show one download button for each format of a result. A file is created when its button is pressed."""

    def rows() -> list[Row]:
        return result_rows(resources.database(), run)

    downloads: list[tuple[str, Any]] = [("csv", lambda: csv_text(pd.DataFrame(rows())))]
    if stored_runs.has_picture(run):
        study = stored_run(run).study
        downloads += [(kind, lambda kind=kind: exported(picture(study, rows()), kind)) for kind in ("svg", "png")]
    downloads.append(("html", lambda: findings.export.result_page(resources.database(), run)))
    for kind, make in downloads:
        st.download_button(kind.upper(), make, f"{key}-{run[:8]}.{kind}", on_click="ignore", key=f"{kind}_{key}",
                           icon=":material/download:")  # fmt: skip


def picture(study: str, rows: Sequence[Row]) -> Any:
    """Show heatmaps of the first statistic of a run, one per checkpoint and task; for other studies, its largest
    numbers."""
    scores = stored_runs.heads_of(rows)
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
