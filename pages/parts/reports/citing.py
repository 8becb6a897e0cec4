"""A result as a figure and a citation: what a reader puts into a paper."""

from dataclasses import replace

import streamlit as st

from core.findings import export
from core.findings.pinning import finding_of_run
from pages.parts.reports.provenance import StoredRun
from pages.parts.shell import resources
from pages.parts.shell.messages import clear_errors, plain


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
