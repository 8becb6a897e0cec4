"""The caches of the app: what is opened once and shared by all sessions."""

import gc
import os
import re
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import psutil
import streamlit as st

from core import capture, config, models, studies
from core.atlas import example
from core.attention import AttentionMaps
from core.capture.words import special_positions_of, word_maps
from core.drawing.payload import as_bytes
from core.errors import CheckpointError
from core.models import fetching
from core.models.present import parts_of, stamp_of
from core.scoring.registry import map_scores
from core.store.database import Database
from core.store.people import Person
from core.studies import tagging
from core.studies.ablation import setup
from core.studies.ablation.setup import Opened
from core.tasks.glue import label_order, read_rows, task_of
from pages.parts.shell import people
from pages.parts.shell.messages import plain

if TYPE_CHECKING:
    from core.attention import Head
    from core.capture.constants import Fitted
    from core.capture.interventions import StandInSource
    from core.capture.long_maps import BlockMaps
    from core.models.checkpoint import Checkpoint
    from core.models.encoding import Encoding
    from core.models.opening import HeadKind


NOTES = "checkpoint_notes"  # places of the context bar, by checkpoint, for what opening it noticed
SMALL_MODEL = 30_000_000  # parameters; a sentence through a smaller one is milliseconds of work
READER = Person("", "viewer")
MODELS_SHARE = 0.4  # of the machine's memory, for open models together; the bundled ones take 30 MB each
PIECES_SHOWN = 256  # longer inputs are shown in blocks, or cut: 144 heads of 256 pieces are 19 MB
WINDOW_SHOWN = 256  # most tokens a side of a window of a longer input
REFERENCE_ROWS = 200  # of the samples, for operators that stand in
MAPS_ROOM = 750_000_000  # bytes of captured inputs; 14 MB each at 144 heads and 128 tokens
_REVISION = re.compile(r"^(?P<name>[\w.-]+(?:/[\w.-]+)?)@(?P<revision>[\w./-]+)$")


def checkpoint(name: str, head: "HeadKind" = "none") -> "Checkpoint":
    """Return an opened checkpoint; `name` is a bundled name, a folder, or a hub ID with an optional "@revision".

    Raises CheckpointError, also if it must be downloaded first: a download needs the consent of a user
    (`pages.parts.widgets.checkpoint_chooser`).
    """
    refuse_missing(name)
    plain_name, revision = split_revision(name)
    with st.spinner("Opening the checkpoint ..."):
        wait_for_import()
        placeholder = st.empty()

        def tell(share: float, progress: str) -> None:
            placeholder.caption(plain(progress))

        opened = open_checkpoint(plain_name, revision, head, tell)
        placeholder.empty()
    # One thread for a small model: threads that wait for each other cost it 60 times its work on a busy machine
    import torch  # 1.3 s of start-up

    small = sum(weights.numel() for weights in opened.model.parameters()) < SMALL_MODEL
    torch.set_num_threads(1 if small else os.cpu_count() or 1)
    place = st.session_state.get(NOTES, {}).get(name)
    if place is not None and opened.notes:
        place.caption(f":material/info: {plain(' '.join(opened.notes))}")
    return opened


def opened(name: str) -> "Checkpoint":
    """Return the checkpoint with the head that it was saved with: classifier, language model, or none."""
    refuse_missing(name)
    plain_name, revision = split_revision(name)
    return checkpoint(name, models.opening.saved_head(plain_name, revision=revision))


class Shown(NamedTuple):
    """One input as the maps page shows it. scores: by name, each [layer, head]. weights: packed for the grid.

    first, separators: positions of [CLS] or BOS, and of the separators, among the keys.
    """

    encoding: "Encoding"
    maps: AttentionMaps
    scores: dict[str, Any]
    weights: bytes
    first: int | None
    separators: tuple[int, ...]


def shown(
    name: str, text: str, pair: str | None = None, *, words: bool = False, most: int = PIECES_SHOWN, part: str = ""
) -> Shown:
    """Return all maps of one input, between tokens or words, with scores. `part` is the stack of an encoder-decoder.

    An encoder-decoder reads `pair`, or its own greedy translation. Raises CheckpointError or InputError.
    """
    stored_example = example.stored(name, text, pair)
    if stored_example is None:
        checkpoint(name, _head_of(name))  # its progress bar is drawn here and not in the cached part
    key = (name, text, pair, words, most, stamp_of(name), part)
    with st.spinner("Computing attention ..."):
        return _maps().get(
            key,
            lambda: _captured(*(stored_example or _observed(name, text, pair, most, part)), words=words),
            lambda shown_input: shown_input.maps.weights.nbytes + len(shown_input.weights),
        )


def long_shown(name: str, text: str, pair: str | None = None) -> "BlockMaps":
    """Return block maxima of every head for an input that is too long for whole maps. Raises CheckpointError or
    InputError."""
    model = checkpoint(name)
    key = (name, text, pair, stamp_of(name))
    with st.spinner("Computing attention in blocks of rows ..."):
        return _blocks().get(
            key,
            lambda: capture.long_maps.block_maxima(model, model.encode(text, pair)),
            lambda block_maps: (
                block_maps.maxima.nbytes
                + sum(block_sums.values.nbytes + block_sums.offsets.nbytes for block_sums in block_maps.sums)
            ),
        )


def window_shown(
    name: str, text: str, pair: str | None, head: "Head", queries: tuple[int, int], keys: tuple[int, int]
) -> Any:
    """Return recomputed weights [query, key] of one head in a window. Raises the errors of `long_shown`."""
    model = checkpoint(name)
    with st.spinner("Computing the window ..."):
        return capture.long_maps.window(model, model.encode(text, pair), head, queries, keys)


def open_database() -> None:
    """Open the database in advance. Raises StoreError."""
    _database()


def database() -> "Database":
    """Return the database connection of this process for the current visitor, whose role is checked before each write.

    Use one cursor per thread. Raises StoreError or RightsError.
    """
    return _database().acting_as(people.person())


def database_for(who: "Person") -> "Database":
    """Return the same connection for a person whom a request names."""
    return _database().acting_as(who)


def bundled_labels_database(class_set: str) -> "Database":
    """Return the bundled labels in a read-only database, for pages about labels while there are none."""
    return _bundled_labels(class_set)[0].acting_as(READER)


def pipeline(name: str | None = None) -> Any:
    with st.spinner("Opening the language pipeline ..."):
        wait_for_import()
        return open_pipeline(name)


@st.cache_resource(show_spinner=False, max_entries=2)
def open_pipeline(name: str | None = None) -> Any:
    """Return the same without showing anything, so that it can be opened in advance."""
    opened = tagging.open_pipeline(name)
    _settle()
    return opened


def stand_in(name: str, checkpoint: "Checkpoint", operator: str, *, paired: bool, by: str) -> "StandInSource | None":
    """Return replacement outputs for "mean" and "resample" from 200 train examples of the samples, sentences (SST-2) or
    pairs (MRPC). `by` is what a mean is over."""
    if operator not in ("mean", "resample"):
        return None
    return _stand_in(name, checkpoint.weights_hash, operator, "mrpc" if paired else "sst2", by, checkpoint)


def constants(name: str, checkpoint: "Checkpoint", task: str, heads: frozenset["Head"]) -> "FittedHere":
    """Return the optimal constants of these heads, fitted on train examples of a task.

    Raises CheckpointError if its labels are not those of the checkpoint, and InputError without examples.
    """
    return _constants(name, checkpoint.weights_hash, task, heads, str(config.settings().glue or ""), checkpoint)


class FittedHere(NamedTuple):
    """Constants, with the number of examples and the folder (empty: samples) on which they were fitted."""

    fitted: "Fitted"
    rows: int
    data: str


def input_scores(name: str, texts: "tuple[tuple[str, str | None], ...]", key: str) -> Any:
    """Return one score of every head on these inputs [input, layer, head]. Raises CheckpointError or InputError."""
    opened = checkpoint(name)
    with st.spinner("Scoring every head on every input ..."):
        return _input_scores(name, texts, key, stamp_of(name), opened)


# ---------------------------------------------------------------- behind them


@st.cache_resource(show_spinner=False, max_entries=8)
def _input_scores(name: str, texts: Any, key: str, stamp: int, _checkpoint: "Checkpoint") -> Any:
    encodings = [_checkpoint.encode(text, pair, max_length=PIECES_SHOWN) for text, pair in texts]
    score = studies.lookup.find_score(key)
    return studies.attention.gallery.input_scores(_checkpoint, encodings, score, by_norms=key.startswith("norms/"))


@st.cache_resource(show_spinner="Fitting constants on train examples (once; some seconds per head) ...", max_entries=32)
def _constants(
    name: str, weights: str, task: str, heads: frozenset["Head"], data_folder: str, _checkpoint: "Checkpoint"
) -> FittedHere:
    glue_task = task_of(task)
    opened = Opened(_checkpoint, glue_task, label_order(glue_task, _checkpoint.labels))
    rows = read_rows(task, "train", folder=data_folder or None, limit=setup.FITTED_ROWS, seed=0)
    return FittedHere(setup.fit_constants(opened, rows, heads), len(rows), data_folder)


@st.cache_resource(show_spinner="Running the reference examples ...", max_entries=8)
def _stand_in(name: str, weights: str, operator: str, task: str, by: str, _checkpoint: "Checkpoint") -> "StandInSource":
    rows = read_rows(task, "train", limit=REFERENCE_ROWS, seed=0)
    encodings = [_checkpoint.encode(row.text, row.pair, max_length=PIECES_SHOWN) for row in rows]
    if operator == "mean":
        return capture.outputs.mean_outputs(_checkpoint, encodings, by=by)
    return capture.outputs.Donors(_checkpoint, tuple(encodings))


def hub() -> Any:
    """Return the download module, imported once no other thread imports the model libraries."""
    wait_for_import()
    _ = models.hub.download  # loads it here and not in the thread of a download
    return models.hub


def refuse_missing(name: str) -> None:
    """Raise CheckpointError for a hub name whose weights are not on this machine."""
    if fetching.can_download(name):
        raise CheckpointError(
            hub().without_network(name)
            if config.settings().offline
            else f'"{name}" is not on this machine. Choose it in the list of checkpoints at the top of the page to '
            "download it."
        )


def split_revision(name: str) -> tuple[str, str | None]:
    """Split "owner/model@v2" into hub ID and revision; folders are unchanged."""
    match = _REVISION.match(name.strip())
    if match is None or config.is_folder(name):
        return name.strip(), None
    return match["name"], match["revision"]


@st.cache_resource(show_spinner="Opening the database ...")
def _database() -> "Database":
    return Database(config.settings().database)


@st.cache_resource(show_spinner="Reading the bundled labels ...", max_entries=2)
def _bundled_labels(class_set: str) -> "tuple[Database, tempfile.TemporaryDirectory[str]]":
    """Return the database and its folder, which is deleted when it leaves the cache."""
    from core.patterns import classifier_registry  # 0.05 s of start-up that most pages need not wait for

    folder = tempfile.TemporaryDirectory(prefix="bundled-labels-")
    labels = Database(Path(folder.name) / "labels.duckdb")
    classifier_registry.bundled_labels(labels, class_set)
    return labels, folder


database.clear = _database.clear  # type: ignore[attr-defined]


@st.cache_resource(show_spinner=False)
def _models() -> "SizedCache[Checkpoint]":
    return SizedCache(lambda: int(psutil.virtual_memory().total * MODELS_SHARE))


@st.cache_resource(show_spinner=False)
def _blocks() -> "SizedCache[BlockMaps]":
    return SizedCache(lambda: MAPS_ROOM // 4)


@st.cache_resource(show_spinner=False)
def _maps() -> "SizedCache[Shown]":
    return SizedCache(lambda: MAPS_ROOM)


def open_checkpoint(
    name: str,
    revision: str | None,
    head: "HeadKind",
    on_progress: Callable[[float, str], None] | None = None,
) -> "Checkpoint":
    """Return the checkpoint in its present state, without showing anything, so that it can be opened in advance.

    The least recently used models are closed if all together take more than MODELS_SHARE of the memory.
    """

    def make() -> "Checkpoint":
        _models().make_room(models.opening.weights_taken(name))
        opened = models.opening.open_checkpoint(
            name, revision=revision, head=head, dtype="auto", on_progress=on_progress
        )
        _settle()
        return opened

    return _models().get((name, revision, head, stamp_of(name)), make, lambda opened: opened.size)


def _head_of(name: str) -> "HeadKind":
    """Return the head to open; encoder-decoders need their language head, which generates the input of the decoder."""
    return "none" if parts_of(name) == ("",) else "language"


def _captured(encoding: "Encoding", maps: AttentionMaps, *, words: bool) -> Shown:
    looked_at = encoding.target if maps.part == "decoder" and encoding.target is not None else encoding
    maps = word_maps(maps, encoding) if words else maps
    first, separators = special_positions_of(looked_at, words=words)
    scores = map_scores(maps, first=first, separators=separators)
    return Shown(encoding, maps, scores, as_bytes(maps.weights), first, separators)


def _observed(name: str, text: str, pair: str | None, most: int, part: str) -> tuple["Encoding", AttentionMaps]:
    plain_name, revision = split_revision(name)
    model = open_checkpoint(plain_name, revision, _head_of(name))
    if model.family.translates and pair is None:
        pair = capture.generating.translated(model, text)
    encoding = model.encode(text, pair, max_length=most)
    return encoding, capture.running.capture(model, encoding, part=part)


@st.cache_resource(show_spinner=False)
def settle(page: str) -> None:
    """Freeze objects after the first run of a page, whose imports stay in memory."""
    _settle()


def _settle() -> None:
    """Freeze the objects of large imports, so that garbage collection skips them."""
    gc.collect()
    gc.freeze()


# ---------------------------------------------------------------- a cache that is limited by the total number of bytes


T = TypeVar("T")


class SizedCache(Generic[T]):
    """A cache that removes the least recently used items first, by size.

    `room` returns the current limit in bytes. A single larger item is stored alone.
    """

    def __init__(self, room: Callable[[], int]) -> None:
        self.room = room
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock, self._making = threading.Lock(), {}  # type: ignore[var-annotated]

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        return sum(size for _, size in list(self._kept.values()))

    def get(self, key: Hashable, make: Callable[[], T], size_of: Callable[[T], int]) -> T:
        """Return the value for `key`, created by the first caller; concurrent callers wait for it."""
        with self._lock:
            key_lock = self._making.setdefault(key, threading.Lock())
        with key_lock:
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key][0]
            value = make()
            with self._lock:
                self._kept[key] = (value, size_of(value))
                self._making.pop(key, None)
                self._make_room()
            return value

    def make_room(self, needed: int) -> None:
        """Remove the oldest items until `needed` bytes are free, or nothing is left."""
        with self._lock:
            while self._kept and self.size + needed > self.room():
                self._kept.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    def _make_room(self) -> None:
        while len(self._kept) > 1 and self.size > self.room():
            self._kept.popitem(last=False)


# ---------------------------------------------------------------- import of model libraries: one thread at a time


LONGEST_IMPORT = 120  # seconds
_free = threading.Event()
_free.set()


def begin_import() -> None:
    """Make `wait_for_import` block until `end_import` is called."""
    _free.clear()


def end_import() -> None:
    _free.set()


def is_importing() -> bool:
    """Return whether a thread is importing model libraries."""
    return not _free.is_set()


def wait_for_import() -> None:
    """Wait until no thread is importing model libraries, because two threads cannot import transformers at once."""
    _free.wait(LONGEST_IMPORT)
