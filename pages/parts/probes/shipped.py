"""Results that come with the project, so that a page opens on something: measured by `data.recipes.example_probes`."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd
import streamlit as st

from core import config
from core.store.rows import from_json
from core.store.runs import runs, study_rows
from pages.parts.frame import resources
from pages.parts.frame.messages import plain
from pages.parts.reports.stored_runs import title_of

FILE = config.DATA / "examples" / "probes.json"
SHIPPED = "shipped"


@dataclass(frozen=True)
class Result:
    """Rows of a study, and a caption that says of what and when."""

    rows: pd.DataFrame
    options: dict[str, Any]
    caption: str

    def kind(self, *kinds: str) -> pd.DataFrame:
        """The rows of some kinds, without columns that they do not have."""
        return self.rows[self.rows["kind"].isin(kinds)].dropna(axis=1, how="all")


@lru_cache(maxsize=2)
def _read(modified: int) -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def shipped(study: str) -> Result | None:
    """What the project ships of a study."""
    known = _read(FILE.stat().st_mtime_ns).get(study) if FILE.is_file() else None
    if known is None:
        return None
    options = known["options"]
    return Result(pd.DataFrame(known["rows"]), options, f"{_about(options)} · shipped · {known['created'][:10]}")


def pick_result(study: str, *, key: str) -> Result | None:
    """The newest run of a study, another one that is chosen, or the shipped one; None with a hint without any."""
    known = runs(resources.database(), study).set_index("run")
    ours = shipped(study)
    names = [*known.index, *([SHIPPED] if ours else [])]
    if not names:
        st.info("Nothing has been measured yet: press Measure.", icon=":material/info:")
        return None
    chosen = names[0] if len(names) == 1 else st.selectbox(
        "Results of", names, key=key, bind="query-params",
        format_func=lambda run: "shipped with the project" if run == SHIPPED else title_of(known.loc[run]),
    )  # fmt: skip
    if chosen == SHIPPED:
        return ours
    about = known.loc[chosen]
    options = from_json(about["options"]) or {}
    caption = f"{_about(options)} · {about['created']:%d %B %Y}"
    return Result(study_rows(resources.database(), chosen), options, caption)


def _about(options: dict[str, Any]) -> str:
    """The checkpoint, and what it was asked about."""
    words = [str(options.get("checkpoint", ""))]
    if "treebank" in options:
        words.append(str(options["treebank"] or "the bundled treebank, parsed by machine"))
    words += [str(options[name]) for name in ("task",) if options.get(name)]
    words += [", ".join(options["tasks"])] if options.get("tasks") else []
    return " · ".join(words)


def say(text: str) -> None:
    """A caption whose text stays text."""
    st.caption(plain(text))
