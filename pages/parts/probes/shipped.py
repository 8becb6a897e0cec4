"""Results that come with the project, so that a page opens on something: measured by `data.recipes.example_probes`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from core import config
from core.results.reading import Result as Kind
from core.results.reading import record_of
from core.store.rows import Row
from core.store.runs import run_rows, runs
from pages.parts.frame import resources
from pages.parts.frame.messages import plain
from pages.parts.reports.provenance import StoredRun
from pages.parts.reports.stored_runs import title_of

FILE = config.DATA / "examples" / "probes.json"
SHIPPED = "shipped"
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


@dataclass(frozen=True)
class Example:
    """What the project ships of a study: its options, the day it was measured (ISO), and its rows."""

    options: Mapping[str, Any]
    created: str
    rows: list[Row]


@lru_cache(maxsize=2)
def _read(modified: int) -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def shipped(study: str) -> Result | None:
    """What the project ships of a study."""
    known = _read(FILE.stat().st_mtime_ns).get(study) if FILE.is_file() else None
    if known is None:
        return None
    example = record_of(Example, known)
    return Result(example.rows, f"{_about(example.options)} · shipped · {example.created[:10]}")


def pick_result(study: str, *, key: str) -> Result | None:
    """The newest run of a study, another one that is chosen, or the shipped one; None with a hint without any."""
    stored = [record_of(StoredRun, row) for row in runs(resources.database(), study).to_dict("records")]
    known, ours = {run.run: run for run in stored}, shipped(study)
    names = [*known, *([SHIPPED] if ours else [])]
    if not names:
        st.info("Nothing has been measured yet: press Measure.", icon=":material/info:")
        return None
    chosen = names[0] if len(names) == 1 else st.selectbox(
        "Results of", names, key=key, bind="query-params",
        format_func=lambda run: "shipped with the project" if run == SHIPPED else title_of(known[run]),
    )  # fmt: skip
    if chosen == SHIPPED:
        return ours
    return Result(run_rows(resources.database(), chosen), f"{_about(known[chosen].told)} · {known[chosen].date}")


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
