"""The stored result that the views Probes and Subnetworks show."""

import pandas as pd
import streamlit as st

from pages.parts.reports.stored_runs import StoredRun
from pages.parts.reports.study_view import shown_result
from pages.parts.shell.messages import plain


def shown(study: str, *, key: str, answered: bool = True):
    """Yield the stored result of a study to draw inside `with`; None, with a hint, if there is none."""
    return shown_result(
        study, "No result is stored yet. Press “Measure”.", key, answered=answered, icon=":material/info:"
    )


def caption_of(result: StoredRun) -> str:
    """Return a caption with the checkpoint, the question, and the date of the result."""
    options = result.told
    words = [str(options.get("checkpoint", ""))]
    if "treebank" in options:
        words.append(str(options.get("treebank") or "the bundled treebank, parsed by machine"))
    tasks = [str(task) for task in options.get("tasks") or [options.get("task")] if task]
    return " · ".join([*words, *([", ".join(tasks)] if tasks else []), result.date])


def table_of(result: StoredRun, *kinds: str) -> pd.DataFrame:
    """Return the rows of some kinds (default: all) for a file, without empty columns."""
    rows = [row for row in result.result_rows if not kinds or row.get("kind") in kinds]
    return pd.DataFrame(rows).dropna(axis=1, how="all")


def say(text: str) -> None:
    """Show a caption as plain text."""
    st.caption(plain(text))
