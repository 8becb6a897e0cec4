"""The form of studies that train several models on one task: checkpoint, task, number of models, recipe, data,
settings."""

from dataclasses import dataclass

import streamlit as st

from core.tuning.recipe import PRESET_NOTES, PRESETS, preset_for
from pages.parts.shell import context, url
from pages.parts.tuning.tuning_settings import pick_data, pick_settings
from pages.parts.widgets import job_progress, pickers


@dataclass(frozen=True)
class Count:
    """The number of models: name of the option, and label, bounds, default and help of the input."""

    option: str
    label: str
    least: int
    most: int
    default: int
    told: str


def start_training(study: str, count: Count, *, limit: str, verb: str, title: str) -> None:
    """Ask what is trained, and start the job.

    `limit` is the option for the number of train examples, `verb` is on the button, and `title` begins the title of the
    job.
    """
    checkpoint, task = context.now().checkpoint, str(context.now().rows)
    left, middle, right = st.columns([4, 1, 1], vertical_alignment="bottom")
    preset = url.pick(
        left.selectbox,
        "Recipe",
        list(PRESETS),
        key=f"{study}_preset",
        default=preset_for(str(checkpoint)),
        format_func=lambda name: f"{name}: {PRESET_NOTES[name]}",
    )
    number = middle.number_input(
        count.label, count.least, count.most, count.default, key=count.option, bind="query-params", help=count.told
    )
    with st.expander("Data and settings"):
        data_folder, changed = pick_data(), pick_settings(preset)
    rows = changed.pop("train_limit", None)
    options = {
        "checkpoint": checkpoint, "task": task, count.option: number, "preset": preset, "settings": changed,
        "data": data_folder, limit: rows,
    }  # fmt: skip
    job_progress.offer_start(
        study,
        options if checkpoint else None,
        verb,
        title=lambda: f"{title} {checkpoint} on {pickers.named([task], data_folder)}",
        container=right,
    )
