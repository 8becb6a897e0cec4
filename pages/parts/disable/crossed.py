"""Cross-fitted sweeps: every head disabled on all train rows, each tested by a model that never saw it."""

from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd
import streamlit as st

from core.results.disabling import SweptVariant
from core.results.seeds import CrossedPart
from core.store.rows import Row
from core.store.runs import run_rows
from core.tuning.recipe import PRESETS
from pages.parts.disable.results import show_results
from pages.parts.disable.sweeps import active_jobs
from pages.parts.frame import bound, resources
from pages.parts.frame.messages import clear_errors, plain
from pages.parts.reports.stored_runs import drawer
from pages.parts.tuning.tuning_settings import pick_data, pick_settings
from pages.parts.widgets import job_progress, pickers


def show_crossed() -> None:
    """Start one; see what is running; look at results."""
    st.caption(
        "A dev set of a few hundred rows leaves most heads undecided. Here a model is fine-tuned on all parts of the "
        "train rows but one and swept on that one, so that every row tests."
    )
    with drawer("Sweep the train rows of another task", "crossed"):
        _start()
    active_jobs("crossed")
    with clear_errors():
        stored = show_results("crossed")
        if stored is not None:
            _parts(run_rows(resources.database(), stored.run))


def _start() -> None:
    left, middle, right, last = st.columns([3, 3, 1, 1], vertical_alignment="bottom")
    with left:
        checkpoint = pickers.pick_checkpoint("Pre-trained checkpoint")
    with middle:
        task = pickers.pick_task(key="crossed_task")
    folds = right.number_input("Parts", 2, 20, 5, key="folds", bind="query-params",
                               help="A model is fine-tuned for each.")  # fmt: skip
    preset = bound.pick(st.selectbox, "Recipe", list(PRESETS), key="crossed_preset", default="small")
    with st.expander("Data and settings"):
        data, changed = pick_data(), pick_settings(preset)
    limit = changed.pop("train_limit", None)
    name, _ = resources.split_revision(checkpoint or "")
    options = {
        "checkpoint": name, "task": task, "folds": folds, "preset": preset, "settings": changed, "data": data,
        "limit": limit,
    }  # fmt: skip
    if checkpoint:
        job_progress.say_time("crossed", options)
    if last.button("Sweep", type="primary", width="stretch", disabled=not checkpoint):
        with clear_errors():
            job_progress.begin("crossed", options, f"Cross-fitted sweep of {name} on {pickers.named([task])}")
            st.rerun()


def _parts(rows: Sequence[Row]) -> None:
    """What each part's model scores on it, and in how many parts each head's change has one sign."""
    parts, variants = CrossedPart.among(rows), SweptVariant.among(rows)
    agree = [variant.name for variant in variants if variant.folds_agree == len(parts)]
    st.subheader("Parts")
    st.dataframe(pd.DataFrame(map(asdict, parts)), hide_index=True)
    st.caption(
        plain(
            f"In all {len(parts)} parts the change has the same sign for {len(agree)} of {len(variants)}: "
            f"{', '.join(agree) or 'none'}. Intervals are over rows, for the models at hand; another fine-tuning may "
            "differ, as the parts do."
        )
    )
