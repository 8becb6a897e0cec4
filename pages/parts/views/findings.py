"""Findings: results that were pinned with a note, and their export."""

import shlex
from contextlib import suppress
from dataclasses import asdict

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import StoreError
from core.findings import export
from core.findings.pinning import finding_of_run
from core.report.headlines import has_headline
from core.store import runs, shipped_record
from core.store.findings import Finding, findings
from pages.parts.reports.result_list import open_link
from pages.parts.reports.stored_runs import headline_of, known_runs, stored_run
from pages.parts.reports.study_view import details
from pages.parts.shell import links, resources
from pages.parts.shell.links import say_missing
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets.files import zipped
from pages.parts.widgets.result_actions import offer_pin_of_run, offer_undo, take_away
from pages.parts.widgets.tables import show_table

MOST_OFFERED = 4  # results to pin, while none is pinned


def markdown_files(chosen: list[Finding]) -> bytes:
    """Return findings.md and its figures in one ZIP."""
    pictures = {f"findings-pictures/{name}": picture for name, picture in export.svgs(chosen).items()}
    return zipped({"findings.md": export.markdown(chosen, "findings-pictures")} | pictures)


def downloads(chosen: list[Finding]) -> None:
    """Offer all findings as one HTML page, as Markdown with figures, and as BibTeX."""
    files = (
        ("Page (HTML)", "findings.html", lambda: export.html(chosen)),
        ("Markdown and pictures", "findings.zip", lambda: markdown_files(chosen)),
        ("BibTeX", "findings.bib", lambda: export.bibtex(chosen)),
    )
    with st.popover("Save all pinned results", icon=":material/ios_share:"), st.container(horizontal=True):
        for label, name, make in files:
            st.download_button(label, make, name, on_click="ignore", icon=":material/download:", key=name)


def card(finding: Finding) -> None:
    """Show one finding: its note, figures, numbers, and the command that reproduces it."""
    with st.container(border=True):
        st.subheader(plain(finding.title), anchor=False)
        if finding.note:
            st.text(finding.note)
        for number, picture in enumerate(finding.pictures):
            st.vega_lite_chart(picture, width="content", key=f"picture|{finding.finding}|{number}")
        st.caption(
            plain(f"{finding.about} · pinned by {finding.annotator or 'an unknown person'}, {finding.stored:%d %B %Y}")
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            _open_again(finding)
            st.button("Unpin", key=f"unpin|{finding.finding}", on_click=_unpin, args=(finding.finding,),
                      icon=":material/delete:")  # fmt: skip
        with details("Numbers and command"):
            if finding.numbers:
                show_table(pd.DataFrame([asdict(number) for number in finding.numbers]))
            if finding.weights_hash:
                st.caption(f"weights {plain(finding.weights_hash)}")
            if finding.command:
                st.code(finding.command, language="sh", wrap_lines=True)


def _open_again(finding: Finding) -> None:
    """Link to the view of the result: a run in its view, maps with their checkpoint."""
    if finding.run:
        with suppress(StoreError):  # the run was deleted; the finding stays
            open_link(stored_run(finding.run), "Open the live view")
    elif finding.kind == "maps" and finding.checkpoint and not say_missing(finding.checkpoint):
        words = shlex.split(finding.command)
        text, pair = (words[words.index(flag) + 1] if flag in words else None for flag in ("--text", "--pair"))
        links.link("maps", "Open the live view", icon=":material/open_in_new:", checkpoint=finding.checkpoint,
                   text=text, pair=pair)  # fmt: skip


def _unpin(finding: str) -> None:
    take_away(lambda db: runs.remove_finding(db, finding))


def ready_to_pin() -> None:
    """Show the newest results of some studies as cards, with a button that pins each of them."""
    studies = shipped_record.runs()["study"].drop_duplicates()
    newest = [stored_runs[0] for study in studies if has_headline(study) and (stored_runs := known_runs(study))]
    if not newest:
        return
    st.subheader("Examples", anchor=False)
    places = [column for _ in range(0, MOST_OFFERED, 2) for column in st.columns(2)]
    for place, stored in zip(places, newest, strict=False):
        headline = headline_of(stored.run)
        with place.container(border=True, height="stretch"):
            st.markdown(f"**{plain(headline.sentence.partition('. ')[0].removesuffix('.'))}.**")
            st.caption(plain(" · ".join(fact for fact in (
                stored.checkpoint_said, stored.task_said, f"n = {headline.n:,} {headline.of}" if headline.n else ""
            ) if fact)))  # fmt: skip
            for picture in finding_of_run(resources.database(), stored.run).pictures[:1]:
                st.vega_lite_chart(picture, width="content", key=f"example|{stored.run}")
            with st.container(horizontal=True, vertical_alignment="center"):
                open_link(stored, "Open")
                offer_pin_of_run(stored.run, key=f"ready_{stored.study}")
    links.link("results", "All results")


def show(tools: DeltaGenerator) -> None:
    with clear_errors():
        offer_undo()
        pinned = findings(resources.database())
        if not pinned:
            st.info(
                "No result has been pinned yet. Press *Pin* next to a stored result or under the maps of a sentence.",
                icon=":material/push_pin:",
            )
            ready_to_pin()
        else:
            downloads(pinned)
            for finding in pinned:
                card(finding)
