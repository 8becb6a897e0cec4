"""The settings of a fine-tuning run, and where its rows come from, as inputs."""

from typing import Any

import streamlit as st

from core.config import settings
from core.models.poolings import POOLINGS
from core.tuning.recipe import PRESETS
from pages.parts.shell import url

SOURCES = ("bundled samples", "a folder in GLUE's form", "the hub")
POOLING_NAMES = {"auto": "[CLS], or the last token of a decoder", "cls": "[CLS]", "sep": "[SEP]", "mean": "the mean",
                 "last": "the last token"}  # fmt: skip


def pick_data() -> str | None:
    """None for the bundled samples, "hub", or a folder."""
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
                             placeholder="the folder that holds SST-2, MRPC ...") or None  # fmt: skip
    return "hub" if source == SOURCES[2] else None


def pick_settings(preset: str) -> dict[str, Any]:
    """The settings that differ from the preset's."""
    base = PRESETS[preset]
    left, middle, right, last = st.columns(4)
    chosen: dict[str, Any] = {
        "learning_rate": left.number_input(
            "Learning rate",
            1e-7,
            1.0,
            base.learning_rate,
            format="%.2e",
            key=f"rate_{preset}",
            bind="query-params",
        ),
        "epochs": middle.number_input("Epochs", 1, 100, base.epochs, key=f"epochs_{preset}", bind="query-params"),
        "batch": right.number_input("Batch", 1, 512, base.batch, key=f"batch_{preset}", bind="query-params"),
        "max_length": last.number_input(
            "Most tokens", 8, 512, base.max_length, key=f"length_{preset}", bind="query-params"
        ),
        "train_limit": left.number_input(
            "Train rows at most",
            1,
            None,
            base.train_limit,
            placeholder="all",
            key=f"train_rows_{preset}",
            bind="query-params",
        ),
        "dev_limit": middle.number_input(
            "Dev rows at most",
            1,
            None,
            base.dev_limit,
            placeholder="all",
            key=f"dev_rows_{preset}",
            bind="query-params",
        ),
        "train_last": right.number_input(
            "Train only the last N layers",
            0,
            None,
            base.train_last,
            placeholder="all layers",
            key=f"last_{preset}",
            bind="query-params",
        ),
        "reset_last": last.number_input(
            "Start the last N layers afresh", 0, 100, base.reset_last, key=f"afresh_{preset}", bind="query-params"
        ),
        "pooling": url.pick(
            left.selectbox,
            "Classify from",
            POOLINGS,
            key=f"pooling_{preset}",
            default=base.pooling,
            format_func=POOLING_NAMES.__getitem__,
        ),
        "keep": middle.selectbox("Keep the epoch that is", ["last", "best"], key=f"keep_{preset}", bind="query-params"),
    }
    return {name: value for name, value in chosen.items() if value != getattr(base, name)}
