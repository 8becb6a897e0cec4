"""Forms that start the studies of the Probes and Subnetworks pages as jobs."""

from typing import Any

import streamlit as st

from core.studies.contract import declared
from core.studies.lookup import find_study
from pages.parts.shell import context
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
            help="The number of times that each fine-tuning run is repeated.",
        )
    return options | {"seeds": list(range(int(seeds)))} | ({"tasks": [task]} if study == "transfer" else {"task": task})
