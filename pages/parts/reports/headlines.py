"""What results say, computed once: rows of a stored run do not change."""

import streamlit as st

from core.report.headlines import Headline, headline
from core.store import runs
from pages.parts.frame import resources


def headline_of(run: str) -> Headline:
    """A stored run in one sentence."""
    return _headline(run, resources.database().id)


def has_heads(run: str) -> bool:
    """Whether a stored run has a number for each head."""
    return _has_heads(run, resources.database().id)


@st.cache_resource(show_spinner=False, max_entries=400)
def _headline(run: str, database_id: str) -> Headline:
    db = resources.database()
    return headline(runs.one_run(db, run)["study"], runs.run_rows(db, run))


@st.cache_resource(show_spinner=False, max_entries=400)
def _has_heads(run: str, database_id: str) -> bool:
    from pages.parts.reports import result_card

    return len(result_card.heads_of(runs.run_rows(resources.database(), run))) > 0
