"""What is opened once and shared by all sessions: the only caches of the app."""

import gc
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from core import config

if TYPE_CHECKING:
    from core.attention import AttentionMaps
    from core.models.checkpoint import Checkpoint
    from core.models.encoding import Encoding
    from core.store.database import Database

CHECKPOINTS_KEPT = 6  # open models; the bundled ones take 30 MB each, BERT-base 440 MB
MAPS_KEPT = 32  # captured inputs; 9 MB each at 144 heads and 128 tokens
_REVISION = re.compile(r"^(?P<name>[\w.-]+(?:/[\w.-]+)?)@(?P<revision>[\w./-]+)$")


def checkpoint(name: str, head: str = "none") -> "Checkpoint":
    """An opened checkpoint; `name` is a bundled name, a folder, or a hub id with an optional "@revision".

    Raises CheckpointError. A download shows a progress bar.
    """
    plain_name, revision = split_revision(name)
    _download_first(plain_name, revision)
    return _opened(plain_name, revision, head, _stamp(plain_name))


def maps(
    name: str, text: str, pair: str | None = None, max_length: int | None = None
) -> "tuple[Encoding, AttentionMaps]":
    """One input's pieces and all its maps. Raises CheckpointError and InputError."""
    plain_name, _ = split_revision(name)
    return _captured(name, text, pair, max_length, _stamp(plain_name))


@st.cache_resource(show_spinner="Opening the database ...")
def database() -> "Database":
    """The one connection of this process; take a cursor of it per thread. Raises StoreError."""
    from core.store.database import Database

    return Database(config.settings().database)


@st.cache_resource(show_spinner="Opening the language pipeline ...", max_entries=2)
def pipeline(name: str | None = None) -> Any:
    """A spaCy pipeline; None is the bundled one."""
    from core.tasks.language import open_pipeline

    opened = open_pipeline(name)
    _settle()
    return opened


# ---------------------------------------------------------------- behind them


def split_revision(name: str) -> tuple[str, str | None]:
    """Split "owner/model@v2" into the hub id and its revision; a folder keeps its name."""
    found = _REVISION.match(name.strip())
    if found is None or Path(name).expanduser().exists():
        return name.strip(), None
    return found["name"], found["revision"]


def _stamp(name: str) -> int:
    """When the weights of a local checkpoint last changed, so that a retrained folder is opened again."""
    for folder in (config.BUNDLED_MODELS / name, Path(name).expanduser()):
        try:
            return max((file.stat().st_mtime_ns for file in folder.glob("*.safetensors")), default=0)
        except (OSError, ValueError):
            continue
    return 0


@st.cache_resource(show_spinner=False)
def _downloaded() -> set[tuple[str, str | None]]:
    return set()


def _download_first(name: str, revision: str | None) -> None:
    if (name, revision) in _downloaded() or (config.BUNDLED_MODELS / name).is_dir():
        return
    with st.spinner(f"Looking for {name[:80]} ..."):
        from core.models.opening import locate

        place = st.empty()
        locate(name, revision=revision, on_progress=lambda share, doing: place.progress(min(max(share, 0), 1), doing))
        place.empty()
    _downloaded().add((name, revision))


@st.cache_resource(show_spinner="Opening the checkpoint ...", max_entries=CHECKPOINTS_KEPT)
def _opened(name: str, revision: str | None, head: str, stamp: int) -> "Checkpoint":  # noqa: ARG001 - part of the cache's key
    from core.models.opening import open_checkpoint

    opened = open_checkpoint(name, revision=revision, head=head, device=config.settings().device)  # type: ignore[arg-type]
    _settle()
    return opened


@st.cache_resource(show_spinner=False, max_entries=MAPS_KEPT)
def _captured(
    name: str,
    text: str,
    pair: str | None,
    max_length: int | None,
    stamp: int,  # noqa: ARG001 - part of the cache's key
) -> "tuple[Encoding, AttentionMaps]":
    from core.capture.running import capture

    model = checkpoint(name)
    encoding = model.encode(text, pair, max_length=max_length)
    return encoding, capture(model, encoding)


def _settle() -> None:
    """After large imports: what they made stays, so the collection after every run need not look at it."""
    gc.collect()
    gc.freeze()
