"""What is opened once and shared by all sessions: the only caches of the app."""

import gc
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from core import config
from core.attention import AttentionMaps
from pages.parts import people
from pages.parts.frame import loading
from pages.parts.frame.messages import plain

if TYPE_CHECKING:
    from core.attention import Head
    from core.capture.constants import Fitted
    from core.capture.interventions import Source
    from core.models.checkpoint import Checkpoint
    from core.models.encoding import Encoding
    from core.store.database import Database
    from core.store.people import Person

SMALL_MODEL = 30_000_000  # parameters; a sentence through a smaller one is milliseconds of work
CHECKPOINTS_KEPT = 6  # open models; the bundled ones take 30 MB each, BERT-base 440 MB
PIECES_SHOWN = 256  # longer inputs are cut on the page: 144 heads of 256 pieces are 19 MB
REFERENCE_ROWS = 200  # of the samples, for operators that stand in
MAPS_KEPT = 24  # captured inputs; 9 MB each at 144 heads and 128 tokens
_REVISION = re.compile(r"^(?P<name>[\w.-]+(?:/[\w.-]+)?)@(?P<revision>[\w./-]+)$")


def checkpoint(name: str, head: str = "none") -> "Checkpoint":
    """An opened checkpoint; `name` is a bundled name, a folder, or a hub id with an optional "@revision".

    Raises CheckpointError. A download shows a progress bar.
    """
    plain_name, revision = split_revision(name)
    _download_first(plain_name, revision)
    with st.spinner("Opening the checkpoint ..."):
        loading.wait()
        opened = open_checkpoint(plain_name, revision, head, stamp(plain_name))
    _share_cores(opened)
    return opened


class Shown(NamedTuple):
    """One input as the maps page shows it. scores: by name, each [layer, head]. weights: as the grid reads them.

    first, separators: positions of [CLS] or BOS, and of the separators, among the maps' tokens.
    """

    encoding: "Encoding"
    maps: AttentionMaps
    scores: dict[str, Any]
    weights: bytes
    first: int | None
    separators: tuple[int, ...]


def shown(name: str, text: str, pair: str | None = None, *, words: bool = False, most: int = PIECES_SHOWN) -> Shown:
    """All maps of one input, between pieces or words, with each head's scores. Raises CheckpointError, InputError."""
    from pages.parts.maps import example

    if example.stored(name, text, pair) is None:
        checkpoint(name)  # its progress bar is drawn here and not in the cached part
    with st.spinner("Computing attention ..."):
        return _captured(name, text, pair, words, most, stamp(split_revision(name)[0]))


def database() -> "Database":
    """The one connection of this process, in the hands of whoever visits: their role is asked before each write.

    Take a cursor of it per thread. Raises StoreError, RightsError.
    """
    return _database().acting_as(people.person())


def database_for(who: "Person") -> "Database":
    """The same connection in the hands of somebody whom a request of the browser names."""
    return _database().acting_as(who)


def pipeline(name: str | None = None) -> Any:
    """A spaCy pipeline; None is the bundled one."""
    with st.spinner("Opening the language pipeline ..."):
        loading.wait()
        return open_pipeline(name)


@st.cache_resource(show_spinner=False, max_entries=2)
def open_pipeline(name: str | None = None) -> Any:
    """The same; shows nothing, so that it can be opened before anybody asks."""
    from core.measuring import tagging

    opened = tagging.open_pipeline(name)
    _settle()
    return opened


def stand_in(name: str, checkpoint: "Checkpoint", operator: str, *, paired: bool) -> "Source | None":
    """What stands in under "mean" and "resample": 200 train rows of the samples, sentences (SST-2) or pairs (MRPC)."""
    if operator not in ("mean", "resample"):
        return None
    return _stand_in(name, checkpoint.weights_hash, operator, "mrpc" if paired else "sst2", checkpoint)


def constants(name: str, checkpoint: "Checkpoint", task: str, heads: frozenset["Head"]) -> "FittedHere":
    """These heads' optimal constants, fitted on train rows of a task. Raises CheckpointError where its labels are not
    the checkpoint's, InputError without rows."""
    return _constants(name, checkpoint.weights_hash, task, heads, str(config.settings().glue or ""), checkpoint)


class FittedHere(NamedTuple):
    """Constants, and how many rows of which folder (empty: the samples) fitted them."""

    fitted: "Fitted"
    rows: int
    data: str


# ---------------------------------------------------------------- behind them


@st.cache_resource(show_spinner="Fitting constants on train rows; some seconds a head, once ...", max_entries=32)
def _constants(
    name: str, weights: str, task: str, heads: frozenset["Head"], data: str, _checkpoint: "Checkpoint"
) -> FittedHere:
    from core.measuring import references
    from core.measuring.disabling import Opened
    from core.tasks.glue import read_rows, task_of
    from core.tasks.labels import label_order

    asked = task_of(task)
    opened = Opened(_checkpoint, asked, label_order(asked, _checkpoint.labels))
    rows = read_rows(task, "train", folder=data or None, limit=references.FITTED_ROWS, seed=0)
    return FittedHere(references.fit(opened, rows, heads), len(rows), data)


@st.cache_resource(show_spinner="Running the reference rows ...", max_entries=8)
def _stand_in(name: str, weights: str, operator: str, task: str, _checkpoint: "Checkpoint") -> "Source":
    from core.capture.outputs import Donors, mean_outputs
    from core.tasks.glue import read_rows

    rows = read_rows(task, "train", limit=REFERENCE_ROWS, seed=0)
    encodings = [_checkpoint.encode(row.text, row.pair, max_length=PIECES_SHOWN) for row in rows]
    return mean_outputs(_checkpoint, encodings) if operator == "mean" else Donors(_checkpoint, tuple(encodings))


def split_revision(name: str) -> tuple[str, str | None]:
    """Split "owner/model@v2" into the hub id and its revision; a folder keeps its name."""
    found = _REVISION.match(name.strip())
    if found is None or _exists(name):
        return name.strip(), None
    return found["name"], found["revision"]


def _exists(name: str) -> bool:
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # too long, NUL, or the home of somebody unknown
        return False


def stamp(name: str) -> int:
    """When the weights of a local checkpoint last changed, so that a retrained folder is opened again."""
    try:
        folders = (config.BUNDLED_MODELS / name, Path(name).expanduser())
        return max((file.stat().st_mtime_ns for folder in folders for file in folder.glob("*.safetensors")), default=0)
    except (OSError, ValueError, RuntimeError):  # no such folder, or no such user: opening it says so
        return 0


@st.cache_resource(show_spinner=False)
def _downloaded() -> set[tuple[str, str | None]]:
    return set()


def _download_first(name: str, revision: str | None) -> None:
    loading.wait()
    if (name, revision) in _downloaded() or _exists(str(config.BUNDLED_MODELS / name)):
        return
    with st.spinner(f"Looking for {plain(name[:80])} ..."):
        from core.models.opening import locate

        place = st.empty()

        def show(share: float, doing: str) -> None:
            place.progress(min(max(share, 0), 1), plain(doing))

        locate(name, revision=revision, on_progress=show)
        place.empty()
    _downloaded().add((name, revision))


@st.cache_resource(show_spinner="Opening the database ...")
def _database() -> "Database":
    from core.store.database import Database

    return Database(config.settings().database)


database.clear = _database.clear  # type: ignore[attr-defined]


@st.cache_resource(show_spinner=False, max_entries=CHECKPOINTS_KEPT)
def open_checkpoint(name: str, revision: str | None, head: str, stamp: int) -> "Checkpoint":
    """The checkpoint as it stands on disk now; shows nothing, so that it can be opened before anybody asks."""
    from core.models import opening

    opened = opening.open_checkpoint(name, revision=revision, head=head, device=config.settings().device)  # type: ignore[arg-type]
    _settle()
    return opened


@st.cache_resource(show_spinner=False, max_entries=MAPS_KEPT)
def _captured(name: str, text: str, pair: str | None, words: bool, most: int, stamp: int) -> Shown:
    from core.capture.words import places_of, word_maps
    from core.drawing.payload import as_bytes
    from core.scoring.registry import head_scores

    encoding, maps = _observed(name, text, pair, most)
    if words:
        maps = word_maps(maps, encoding)
    first, separators = places_of(encoding, words=words)
    scores = head_scores(maps.weights, first=first, separators=separators, causal=maps.causal)
    return Shown(encoding, maps, scores, as_bytes(maps.weights), first, separators)


def _observed(name: str, text: str, pair: str | None, most: int) -> tuple["Encoding", AttentionMaps]:
    from pages.parts.maps import example

    if kept := example.stored(name, text, pair):
        return kept.encoding, kept.maps
    from core.capture.running import capture

    plain_name, revision = split_revision(name)
    model = open_checkpoint(plain_name, revision, "none", stamp(plain_name))
    encoding = model.encode(text, pair, max_length=most)
    return encoding, capture(model, encoding)


def _share_cores(opened: "Checkpoint") -> None:
    """One thread for a small model: threads that wait for each other cost it 60 times its work on a busy machine.

    torch keeps the number per thread, and every session's script has its own.
    """
    import torch

    small = sum(one.numel() for one in opened.model.parameters()) < SMALL_MODEL
    torch.set_num_threads(1 if small else os.cpu_count() or 1)


@st.cache_resource(show_spinner=False)
def settle(page: str) -> None:
    """After the first run of a page, whose imports stay."""
    _settle()


def _settle() -> None:
    """After large imports: what they made stays, so the collection after every run need not look at it."""
    gc.collect()
    gc.freeze()
