"""Forms of fine-tuning: settings and data of a run, and the form of studies that train several models on one task."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.config import settings
from core.models.encoding import POOLINGS
from core.tuning.recipe import PRESET_NOTES, PRESETS, preset_for
from pages.parts.shell import context, url
from pages.parts.widgets import job_progress, pickers

SOURCES = ("bundled samples", "a folder with the GLUE tasks", "the hub")
POOLING_NAMES = {"auto": "[CLS], or the last token of a decoder", "cls": "[CLS]", "sep": "[SEP]", "mean": "the mean",
                 "last": "the last token"}  # fmt: skip

NUMBERS: tuple[tuple[Any, ...], ...] = (  # setting, its name in the URL, label, least, most, and what else is told
    ("learning_rate", "rate", "Learning rate", 1e-7, 1.0, {"format": "%.2e"}),
    ("epochs", "epochs", "Epochs", 1, 100, {}),
    ("batch", "batch", "Batch", 1, 512, {}),
    ("max_length", "length", "Tokens per example, at most", 8, 512, {}),
    ("train_limit", "train_rows", "Train examples, at most", 1, None, {"placeholder": "all"}),
    ("dev_limit", "dev_rows", "Dev examples, at most", 1, None, {"placeholder": "all"}),
    ("train_last", "last", "Train only the last N layers", 0, None, {"placeholder": "all layers"}),
    ("reset_last", "afresh", "Reinitialise the last N layers", 0, 100, {}),
)


def pick_data() -> str | None:
    """Ask for the data: None for the bundled samples, "hub", or a folder."""
    glue = settings().glue
    source = url.pick(
        st.segmented_control,
        "Rows from",
        SOURCES,
        key="rows_from",
        default=SOURCES[1] if glue else SOURCES[0],
        required=True,
    )
    if source == SOURCES[1]:
        return st.text_input("Folder", str(glue or ""), key="data", bind="query-params",
                             placeholder="Folder with the GLUE tasks (SST-2, MRPC, ...)") or None  # fmt: skip
    return "hub" if source == SOURCES[2] else None


def pick_recipe(container: Any, checkpoint: str | None, *, key: str) -> str:
    """Ask for a recipe; by default, that of the checkpoint."""
    return url.pick(
        container.selectbox,
        "Recipe",
        list(PRESETS),
        key=key,
        default=preset_for(str(checkpoint)),
        format_func=lambda name: f"{name}: {PRESET_NOTES[name]}",
    )


def pick_settings(preset: str) -> dict[str, Any]:
    """Ask for settings, and return those that differ from the preset."""
    base = PRESETS[preset]
    places = st.columns(4)
    chosen: dict[str, Any] = {
        name: places[number % 4].number_input(
            label, least, most, getattr(base, name), key=f"{key}_{preset}", bind="query-params", **bounds
        )
        for number, (name, key, label, least, most, bounds) in enumerate(NUMBERS)
    }
    chosen["pooling"] = url.pick(
        places[0].selectbox,
        "Classify from",
        POOLINGS,
        key=f"pooling_{preset}",
        default=base.pooling,
        format_func=POOLING_NAMES.__getitem__,
    )
    chosen["keep"] = places[1].selectbox(
        "Epoch from which the weights are taken", ["last", "best"], key=f"keep_{preset}", bind="query-params"
    )
    return {name: value for name, value in chosen.items() if value != getattr(base, name)}


# ---------------------------------------------------------------- several models on one task


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
    preset = pick_recipe(left, checkpoint, key=f"{study}_preset")
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
