"""The result that the Probes and Subnetworks pages show: one's own, or one that ships (data.recipes.example_probes)."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from pages.parts.reports.provenance import StoredRun
from pages.parts.reports.stored_runs import pick_run
from pages.parts.shell.messages import plain


def pick_result(study: str, *, key: str) -> StoredRun | None:
    """A result of a study as a card, one's own before the one that ships; None with a hint without any."""
    return pick_run(study, "Nothing has been measured yet: press Measure.", key, icon=":material/info:")


def caption_of(result: StoredRun) -> str:
    """Of what it is, and when it was made."""
    return f"{_about(result.told)} · {result.date}"


def table_of(result: StoredRun, *kinds: str) -> pd.DataFrame:
    """The rows of some kinds (of all without any) for a file, without columns that none of them has."""
    rows = [row for row in result.result_rows if not kinds or row.get("kind") in kinds]
    return pd.DataFrame(rows).dropna(axis=1, how="all")


def _about(options: Mapping[str, Any]) -> str:
    """The checkpoint, and what it was asked about."""
    words = [str(options.get("checkpoint", ""))]
    if "treebank" in options:
        words.append(str(options.get("treebank") or "the bundled treebank, parsed by machine"))
    tasks = [str(task) for task in options.get("tasks") or [options.get("task")] if task]
    return " · ".join([*words, *([", ".join(tasks)] if tasks else [])])


def say(text: str) -> None:
    """A caption whose text stays text."""
    st.caption(plain(text))
