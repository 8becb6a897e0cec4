"""What the views Probes and Subnetworks share: the form that starts a study, and the stored result that is shown."""

from typing import Any

import pandas as pd
import streamlit as st

from core.studies.contract import declared
from core.studies.lookup import find_study
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.reports.study_view import shown_result
from pages.parts.shell import context
from pages.parts.shell.messages import plain
from pages.parts.widgets import job_progress, pickers


def start_study(study: str, *, view: str) -> None:
    """Show a folded form with a button, and the active jobs below it. `view` names the widgets."""
    with st.expander("Measure another checkpoint", icon=":material/play_arrow:"):
        name = context.now().checkpoint
        container = st.container()
        of_trees = "treebank" in declared(find_study(study).options)
        study_options = _trees(container) if of_trees else _task(container, study)
        options = {"checkpoint": name} | study_options if name else None
        job_progress.offer_start(study, options, "Measure", title=lambda: f"{study} of {name}", key=f"measure_{view}")
    job_progress.show_jobs(study)


def _trees(container: Any) -> dict[str, Any]:
    folder = container.text_input(
        "Treebank",
        key="treebank",
        bind="query-params",
        placeholder="Leave empty for the bundled treebank, which was annotated automatically",
        help="A folder of a Universal Dependencies treebank with train, dev and test splits in CoNLL-U format.",
    )
    limit = container.number_input(
        "Sentences of each part", 0, 100_000, 2000, help="0 for all", key="tree_limit", bind="query-params"
    )
    return {"treebank": folder or None, "limit": int(limit)}


def _task(container: Any, study: str) -> dict[str, Any]:
    with container:
        task = str(context.now().rows)
        options: dict[str, Any] = {"data": pickers.ask_folder()}
        if study == "representation":
            return options | {"task": task}
        seeds = st.number_input(
            "Seeds",
            1,
            20,
            1,
            key="seeds",
            bind="query-params",
            help="The number of fine-tuning runs for each setting, with different random seeds.",
        )
    return options | {"seeds": list(range(int(seeds)))} | ({"tasks": [task]} if study == "transfer" else {"task": task})


def shown_probing(study: str, *, key: str, answered: bool = True):
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
