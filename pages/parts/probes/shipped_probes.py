"""The result that the Probes and Subnetworks pages show: one's own, or one that ships (data.recipes.example_probes)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from core.store.rows import Row
from core.studies.records import Result as Kind
from pages.parts.reports.stored_runs import pick_run
from pages.parts.shell.messages import plain

K = TypeVar("K", bound=Kind)


@dataclass(frozen=True)
class Result:
    """Rows of a study, and a caption that says of what and when."""

    rows: list[Row]
    caption: str

    def of(self, kind: type[K]) -> list[K]:
        """Its rows of one kind. Raises StoreError where one lacks a column."""
        return kind.among(self.rows)

    def table(self, *kinds: str) -> pd.DataFrame:
        """The rows of some kinds (of all without any) for a file, without columns that none of them has."""
        rows = [row for row in self.rows if not kinds or row.get("kind") in kinds]
        return pd.DataFrame(rows).dropna(axis=1, how="all")


def pick_result(study: str, *, key: str) -> Result | None:
    """A result of a study as a card, one's own before the one that ships; None with a hint without any."""
    stored = pick_run(study, "Nothing has been measured yet: press Measure.", key, icon=":material/info:")
    if stored is None:
        return None
    return Result(stored.result_rows, f"{_about(stored.told)} · {stored.date}")


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
