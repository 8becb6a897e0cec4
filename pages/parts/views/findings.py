"""Findings: results that were pinned with a note, and their export."""

import shlex
from contextlib import suppress
from dataclasses import asdict

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import StoreError
from core.findings import export
from core.report.headlines import has_headline
from core.store import runs, shipped_record
from core.store.findings import Finding, findings
from pages.parts.reports.headlines import headline_of
from pages.parts.reports.provenance import known_runs, stored_run
from pages.parts.reports.result_card import facts
from pages.parts.reports.result_list import open_link
from pages.parts.shell import links, resources
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets.files import zipped
from pages.parts.widgets.head_links import say_missing
from pages.parts.widgets.pin import offer_pin_of_run
from pages.parts.widgets.tables import show_table
from pages.parts.widgets.undoing import offer_undo, take_away

MOST_OFFERED = 6  # results to pin, while none is pinned


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
    with st.container(horizontal=True):
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
        if finding.numbers:
            with st.expander(f"{len(finding.numbers)} numbers"):
                show_table(pd.DataFrame([asdict(number) for number in finding.numbers]))
        st.caption(
            plain(f"{finding.about} · pinned by {finding.annotator or 'an unknown person'}, {finding.stored:%d %B %Y}")
        )
        if finding.weights_hash:
            st.caption(f"weights {plain(finding.weights_hash)}")
        if finding.command:
            st.code(finding.command, language="sh", wrap_lines=True)
        _open_again(finding)
        st.button(
            "Unpin", key=f"unpin|{finding.finding}", on_click=_unpin, args=(finding.finding,), icon=":material/delete:"
        )


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
    """Offer to pin the newest results of some studies."""
    studies = shipped_record.runs()["study"].drop_duplicates()
    newest = [stored_runs[0] for study in studies if has_headline(study) and (stored_runs := known_runs(study))]
    if newest:
        st.subheader("Examples of results that can be pinned")
        st.caption("These are the newest bundled results, one from each study:")
        links.link("results", "All results")
    for stored in newest[:MOST_OFFERED]:
        headline = headline_of(stored.run)
        text, pin = st.columns([6, 1], vertical_alignment="center")
        text.markdown(plain(headline.sentence))
        text.caption(plain(" · ".join(facts(headline, stored))))
        with pin:
            offer_pin_of_run(stored.run, key=f"ready_{stored.study}")


def show(tools: DeltaGenerator) -> None:
    st.caption(
        "This page lists pinned results with their notes. A pinned result remains here even if the "
        "original result is deleted."
    )
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
