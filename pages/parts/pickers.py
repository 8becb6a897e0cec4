"""Inputs that several pages ask for in the same way; their state lives in the URL."""

import json
from functools import lru_cache
from pathlib import Path

import streamlit as st

from core import config

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


def pick_text(label: str = "Sentence", *, key: str = "text", default: str = "", placeholder: str | None = None) -> str:
    """One line of text, kept in the URL; Enter applies it."""
    return st.text_input(label, value=default, key=key, bind="query-params", placeholder=placeholder) or ""


# ---------------------------------------------------------------- behind them


def _checkpoints_under(folder: Path) -> list[Path]:
    return sorted(
        file.parent for file in folder.glob("**/config.json") if _names_a_model(file, file.stat().st_mtime_ns)
    )


@lru_cache(maxsize=256)
def _names_a_model(file: Path, modified: int) -> bool:  # noqa: ARG001 - part of the cache's key
    try:
        return "model_type" in json.loads(file.read_text())
    except (OSError, ValueError):
        return False
