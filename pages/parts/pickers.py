"""Inputs that several pages ask for in the same way; their state lives in the URL."""

import json
from functools import lru_cache
from pathlib import Path

import streamlit as st

from core import config

LINK_CHARACTERS = 1500  # a longer text stays out of the URL, where servers and mail programs would cut it

CHECKPOINT_HELP = (
    "A bundled checkpoint, a folder that holds config.json and safetensors, or a hub id with an optional "
    "revision (owner/name@revision). Type a new one and press Enter."
)


def checkpoint_names() -> list[str]:
    """Bundled checkpoints by name, then the folders of this project's own fine-tuned ones."""
    bundled = [folder.name for folder in _checkpoints_under(config.BUNDLED_MODELS)]
    return bundled + [str(folder.relative_to(config.PROJECT)) for folder in _checkpoints_under(config.DATA / "runs")]


def pick_checkpoint(
    label: str = "Checkpoint",
    *,
    key: str = "checkpoint",
    default: str = config.ENCODER,
    none: str | None = None,
    help: str = CHECKPOINT_HELP,
) -> str | None:
    """A select box over the known checkpoints that takes any other. none: name of an option that picks nothing."""
    names = ([none] if none else []) + checkpoint_names()
    wanted = st.query_params.get(key) or st.session_state.get(key)
    if wanted and wanted not in names:
        names.append(wanted)
    if not names:
        st.info("No checkpoint is bundled here: type a folder or a hub id.")
    start = none or default
    chosen = st.selectbox(
        label,
        names,
        index=names.index(start) if start in names else 0 if names else None,
        key=key,
        accept_new_options=True,
        help=help,
        bind="query-params",
        placeholder="a folder or a hub id",
    )
    return None if chosen in (None, none) else chosen


def pick_text(
    label: str = "Sentence",
    *,
    key: str = "text",
    default: str = "",
    placeholder: str | None = None,
    help: str | None = None,
) -> str:
    """One line of text; Enter applies it. It is kept in the URL as long as it fits into a link."""
    if key not in st.session_state:
        st.session_state[key] = st.query_params.get(key, default)
    text = st.text_input(label, key=key, placeholder=placeholder, help=help) or ""
    if text and len(text) <= LINK_CHARACTERS:
        st.query_params[key] = text
    elif key in st.query_params:
        del st.query_params[key]
    return text


def pick_task_row(*, key: str = "row", text_key: str = "text", pair_key: str = "pair") -> None:
    """A popover with rows of the bundled samples; choosing one fills the fields `text_key` and `pair_key`."""
    from core.tasks.glue import TASKS

    with st.popover("Sample rows", icon=":material/list:", help="Fill in a row of a bundled sample"):
        task = st.selectbox("Task", list(TASKS), format_func=lambda name: TASKS[name].name, key=f"{key}_task")
        split = st.segmented_control("Split", ["dev", "train"], default="dev", required=True, key=f"{key}_split")
        rows = task_rows(task, split or "dev")
        number = st.number_input(f"Row, 1 to {len(rows)}", 1, len(rows), key=f"{key}_number_{task}_{split}")
        row = rows[number - 1]
        st.text(row.text if row.pair is None else f"{row.text}\n{row.pair}")

        def fill() -> None:
            st.session_state[text_key], st.session_state[pair_key] = row.text, row.pair or ""

        st.button("Use this row", on_click=fill, type="primary", key=f"{key}_use")


@lru_cache(maxsize=32)
def task_rows(task: str, split: str) -> list:
    """Rows of a bundled sample, read once."""
    from core.tasks.glue import read_rows

    return read_rows(task, split)


# ---------------------------------------------------------------- behind them


def _checkpoints_under(folder: Path) -> list[Path]:
    return sorted(
        file.parent for file in folder.glob("**/config.json") if _names_a_model(file, file.stat().st_mtime_ns)
    )


@lru_cache(maxsize=256)
def _names_a_model(file: Path, modified: int) -> bool:
    try:
        return "model_type" in json.loads(file.read_text())
    except (OSError, ValueError):
        return False
