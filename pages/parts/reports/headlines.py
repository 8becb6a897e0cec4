"""What results say, computed once: rows of a stored run do not change."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.report.headlines import Headline, headline
from core.store import runs
from core.store.rows import Row
from pages.parts.frame import resources


def headline_of(run: str) -> Headline:
    """A stored run in one sentence."""
    return _headline(run, resources.database().id)


def has_heads(run: str) -> bool:
    """Whether a stored run has a number for each head."""
    return _has_heads(run, resources.database().id)


def heads_of(rows: Sequence[Row]) -> pd.DataFrame:
    """The rows that are one number a head, of the first statistic and feature."""
    kept = [row for row in rows if {"statistic", "layer", "head", "value"} <= row.keys() and row["head"] is not None]
    kept = [row for row in kept if row["layer"] is not None and row["value"] is not None]
    if not kept:
        return pd.DataFrame()
    first = (kept[0]["statistic"], kept[0].get("feature"))
    frame = pd.DataFrame([row for row in kept if (row["statistic"], row.get("feature")) == first])
    return frame.reindex(columns=list(dict.fromkeys([*frame.columns, "checkpoint", "task"])))


@st.cache_resource(show_spinner=False, max_entries=400)
def _headline(run: str, database_id: str) -> Headline:
    db = resources.database()
    return headline(runs.one_run(db, run)["study"], runs.run_rows(db, run))


@st.cache_resource(show_spinner=False, max_entries=400)
def _has_heads(run: str, database_id: str) -> bool:
    return len(heads_of(runs.run_rows(resources.database(), run))) > 0
