"""The stored result that the views Probes and Subnetworks show."""

import pandas as pd
import streamlit as st

from pages.parts.reports.provenance import StoredRun
from pages.parts.reports.study_view import shown_result
from pages.parts.shell.messages import plain


def shown(study: str, *, key: str, answered: bool = True):
    """The stored result of a study, to draw inside `with`; None, and a hint, without any."""
    return shown_result(
        study, "No result is stored yet. Press Measure.", key, answered=answered, icon=":material/info:"
    )


def caption_of(result: StoredRun) -> str:
    """The checkpoint, what it was asked about, and when the result was made."""
    options = result.told
    words = [str(options.get("checkpoint", ""))]
    if "treebank" in options:
        words.append(str(options.get("treebank") or "the bundled treebank, parsed by machine"))
    tasks = [str(task) for task in options.get("tasks") or [options.get("task")] if task]
    return " · ".join([*words, *([", ".join(tasks)] if tasks else []), result.date])


def table_of(result: StoredRun, *kinds: str) -> pd.DataFrame:
    """The rows of some kinds (of all without any) for a file, without columns that none of them has."""
    rows = [row for row in result.result_rows if not kinds or row.get("kind") in kinds]
    return pd.DataFrame(rows).dropna(axis=1, how="all")


def say(text: str) -> None:
    """A caption whose text stays text."""
    st.caption(plain(text))
