"""Copies of loaded models, the map workbench as a widget, and circuits as data frames and graphs."""

import atexit
import copy
import hashlib
import json
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import networkx as nx
import numpy as np
import pandas as pd
import torch
import traitlets
from torch import nn

from .. import models
from ..attention import AttentionMaps
from ..drawing import theme
from ..drawing.page import MapsSource, maps_page
from ..drawing.panes import Pane, header_of, scored_pane, telling_head
from ..drawing.payload import packed, workbench_script, workbench_style
from ..errors import CheckpointError, InputError
from ..models.checkpoint import Checkpoint
from ..models.classifier import POOLING_KEY
from ..models.encoding import Encoding
from ..reading import open_file, read_text
from ..studies.circuits.records import CircuitEdge
from ..writing import write_whole

# ---------------------------------------------------------------- loaded models


_SAVING = threading.Lock()


def checkpoint_of(model: Any, tokenizer: Any = None) -> Checkpoint:
    """Create a checkpoint in eval mode from a copy of a model that transformers loaded with `from_pretrained`.

    The copy shares the weights and has its own modes and attention function, so that other threads may use the model.
    Raises CheckpointError if `model` is no text Transformer of transformers, some of its weights are not in memory, or
    its tokenizer is missing or has tokens without an embedding.
    """
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        model = model.module
    kind = getattr(getattr(model, "config", None), "model_type", None)
    if not kind or not hasattr(model, "set_attn_implementation"):
        raise CheckpointError(
            "model must be a model of the transformers library, or a checkpoint name; got "
            f"{type(model).__name__}. Give the object that from_pretrained returned."
        )
    if tokenizer is None or not hasattr(tokenizer, "convert_ids_to_tokens"):
        raise CheckpointError(
            f"A loaded model needs a tokenizer object; got {type(tokenizer).__name__}. Use open(model, tokenizer)."
        )
    name = str(getattr(model.config, "_name_or_path", "") or kind)
    models.opening.refuse_no_text(model.config, name)
    models.opening.refuse_other_vocabulary(model, tokenizer, name)
    if absent := next((weight for weight, tensor in model.named_parameters() if tensor.is_meta), None):
        raise CheckpointError(
            f'All weights must be in memory; {absent} of {name} is on the device "meta", which stores no values. Load '
            "the model with from_pretrained, and without offloading to the disk or the CPU."
        )
    shared = _sharing_weights(model, name).eval()
    if hasattr(shared.config, POOLING_KEY):  # saved by the Atlas: heads of transformers do not read it
        delattr(shared.config, POOLING_KEY)
    return Checkpoint(name, shared, tokenizer)


def _sharing_weights(model: Any, name: str) -> Any:
    """A copy of a model that has the same tensors, not copies of them. Raises CheckpointError."""
    tensors = [tensor for module in model.modules() for tensor in _tensors_of(module)]
    try:
        return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})
    except (TypeError, RuntimeError) as error:
        raise CheckpointError(
            f"A model must be copied before it is run, so that the original stays unchanged; copying {name} failed "
            f"({str(error)[:120]}). Save the model with save_pretrained, and open its folder."
        ) from error


def _tensors_of(module: nn.Module) -> Iterator[torch.Tensor]:
    yield from module.parameters(recurse=False)
    yield from module.buffers(recurse=False)
    yield from (value for value in vars(module).values() if isinstance(value, torch.Tensor))


@cache
def _saved_models() -> Path:
    """A temporary folder of this process, removed at its end."""
    folder = Path(tempfile.mkdtemp(prefix="attention-atlas-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def saved_copy(model: Any, tokenizer: Any) -> Path:
    """Return the folder with a saved copy of a loaded model. A copy with the same weights is reused."""
    checkpoint = checkpoint_of(model, tokenizer)
    digest = hashlib.sha256(checkpoint.model.config.to_json_string().encode())
    for name, tensor in checkpoint.model.state_dict().items():
        raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(name.encode() + raw.numpy().tobytes())
    folder = _saved_models() / f"{Path(checkpoint.name).name}-{digest.hexdigest()[:12]}"
    with _SAVING:
        if not (folder / "config.json").is_file():
            part = folder.with_name(folder.name + ".part")
            try:
                checkpoint.model.save_pretrained(part)
                tokenizer.save_pretrained(part)
            except Exception as error:  # each family and tokenizer raises its own classes
                shutil.rmtree(part, ignore_errors=True)
                raise CheckpointError(
                    f"To run a study, a copy of {checkpoint.name} must be saved; saving failed "
                    f"({str(error)[:120]}). Save the model with save_pretrained, and open its folder."
                ) from error
            part.rename(folder)
    return folder


def encode(checkpoint: Checkpoint, text: str, pair: str | None = None, *, most: int | None = None) -> Encoding:
    """Tokenize a text or pair of texts. Tokens are assigned to words only if the tokenizer has character offsets.

    `most` is the largest number of tokens (None: that of the model). Raises InputError for an empty text.
    """
    if not isinstance(text, str) or not isinstance(pair, str | None):
        wrong = text if not isinstance(text, str) else pair
        raise InputError(f"text must be a string, and pair a string or None; got {type(wrong).__name__}. Pass strings.")
    if checkpoint.tokenizer.is_fast:
        return checkpoint.encode(text, pair, max_length=most)
    if not text.strip() or (pair is not None and not pair.strip()):
        raise InputError(
            "A sentence must have at least one visible character; got none. Pass a text that is not empty."
        )
    # Encode with a slow tokenizer; offsets of ordinary tokens are empty spans
    tokenizer = checkpoint.tokenizer
    whole = tokenizer(text, pair, truncation=False, verbose=False)["input_ids"]
    limit = min(most or checkpoint.max_length, checkpoint.max_length)
    given = tokenizer(text, pair, truncation="longest_first", max_length=limit, return_special_tokens_mask=True,
                      return_token_type_ids=True, verbose=False)  # fmt: skip
    ids, special = given["input_ids"], given["special_tokens_mask"]
    segments = given.get("token_type_ids") or [0] * len(ids)
    mark = getattr(tokenizer, "sep_token_id", None)
    mark = tokenizer.eos_token_id if mark is None else mark
    encoding = Encoding(
        text=text,
        pair=pair,
        ids=tuple(ids),
        segments=tuple(segments),
        tokens=tuple(str(token) for token in tokenizer.convert_ids_to_tokens(ids)),
        offsets=tuple(None if out else (0, 0) for out in special),
        sentence=tuple(None if out else segment for out, segment in zip(special, segments, strict=True)),
        first=0 if ids and special[0] else None,
        separators=tuple(k for k, token_id in enumerate(ids) if special[k] and token_id == mark),
        cut=len(whole) - len(ids),
    )
    return checkpoint.fitted(encoding)


def must_have_words(checkpoint: Checkpoint) -> None:
    """Raise CheckpointError if the tokenizer has no character offsets. Attention maps between words require them."""
    if not checkpoint.tokenizer.is_fast:
        raise CheckpointError(
            f"Maps between words need a tokenizer with character offsets; {type(checkpoint.tokenizer).__name__} "
            "has none. Use words=False, or load the fast tokenizer."
        )


HERE = Path(__file__).resolve().parent


class MapsWidget(anywidget.AnyWidget):
    """A notebook widget that shows attention maps. `view` reads or sets the selection, such as {"head": "L2H3"}."""

    payload = traitlets.Bytes(b"").tag(sync=True)
    view = traitlets.Dict().tag(sync=True)
    height = traitlets.Int(560).tag(sync=True)

    def __init__(self, panes: Sequence[Pane], source: MapsSource, *, head: str, note: str = "", height: int = 560):
        self.panes, self.source, self.head, self.note = tuple(panes), source, head, note
        header = header_of(panes, caption=source.input[:200], head=head, note=note)
        payload = packed(header, [pane.weights for pane in panes])
        super().__init__(payload=payload, height=height, _esm=script_text())

    def save(self, file: str | Path, *, megabytes: float = 2) -> Path:
        """Save the maps as one self-contained HTML file, with map data of at most `megabytes`. If the weights do not
        fit, the file states what is omitted."""
        page = maps_page(
            self.panes, self.source, head=self.head, opened=self.view, note=self.note, most=int(megabytes * 1e6)
        )
        write_whole(file, page)
        return Path(file)


SHAPES = "(layer, head, query, key), or (head, query, key) for one layer"


def show_maps(
    weights: Any,
    tokens: Sequence[Any] | None = None,
    *,
    key_tokens: Sequence[Any] | None = None,
    causal: bool | None = None,
    title: str = "arrays",
    height: int = 560,
) -> MapsWidget:
    """Show attention weights from any source, such as NumPy arrays, in an interactive widget.

    Args:
        weights: of NumPy or torch; the attentions that a model of transformers returns for one input; or the NPZ file
            of the command `maps`, which includes tokens. Each row sums to 1.
        tokens: a label for each query.
        key_tokens: a label for each key, if keys are not the queries.
        causal: whether queries see no later key; None: determined from the weights.

    Raises:
        InputError: shapes, numbers of tokens or sums of rows are wrong.
    """
    if isinstance(weights, str | Path):
        weights, tokens, key_tokens = _of_file(Path(weights), tokens, key_tokens)
    array = _as_array(weights)
    array = array[None] if array.ndim == 3 else array
    queries = [str(token) for token in (() if tokens is None else tokens)]
    keys = None if key_tokens is None else [str(token) for token in key_tokens]
    square = keys is None or keys == queries
    sizes = (len(queries), len(queries) if square else len(keys or ()))
    if array.ndim != 4 or array.size == 0 or array.shape[2:] != sizes:
        shape = tuple(weights.shape) if hasattr(weights, "shape") else array.shape
        of_keys = "" if square else f" for queries, and {sizes[1]} for keys"
        raise InputError(
            f"Attention weights must be an array of the shape {SHAPES}, with one token for each query and one for each "
            f"key; got the shape {shape} and {sizes[0]} tokens{of_keys}. Pass the maps of one input without padding, "
            "and pass key_tokens if the keys are not the queries."
        )
    later = np.triu(np.ones(array.shape[2:], dtype=bool), 1)
    decoder = causal if causal is not None else bool(square and array.shape[2] > 1 and not array[..., later].any())
    maps = AttentionMaps(array, tuple(queries), (0,) * len(queries), decoder, None if square else tuple(keys or ()))
    pane = scored_pane(title, maps, first=None, separators=())
    return MapsWidget([pane], MapsSource(title, " ".join(queries)), head=telling_head(pane.scores or {}), height=height)


def _as_array(weights: Any) -> np.ndarray:
    """Weights as float32. Raises InputError."""
    layers = list(weights) if isinstance(weights, list | tuple) else None
    try:
        if layers is not None:
            return np.stack([array[0] if array.ndim == 4 else array for array in map(_as_array, layers)])
        if hasattr(weights, "detach"):
            weights = weights.detach().cpu().float().numpy()
        array = np.asarray(weights, dtype=np.float32)
    except (ValueError, TypeError, IndexError) as error:
        raise InputError(
            f"Attention weights must be an array of the shape {SHAPES}; got {type(weights).__name__}. Pass a NumPy "
            "array or a torch tensor."
        ) from error
    if array.ndim == 5 and 1 in array.shape[:2]:  # a batch of one input
        array = array[:, 0] if array.shape[1] == 1 else array[0]
    return array


def _of_file(file: Path, tokens: Any, key_tokens: Any) -> tuple[np.ndarray, Any, Any]:
    """Weights and tokens of an NPZ file of the terminal. Raises InputError."""
    try:
        with open_file(file) as stream, np.load(stream, allow_pickle=False) as stored:
            read = {name: stored[name] for name in ("weights", "tokens", "key_tokens") if name in stored}
            return read["weights"], read.get("tokens", tokens), read.get("key_tokens", key_tokens)
    except (OSError, ValueError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        raise InputError(
            f"The file must be an NPZ file that the command `maps` wrote; {file} cannot be read as such a file. Choose "
            "another file."
        ) from error


@cache
def script_text() -> str:
    """Return the JavaScript of the notebook widget, with its styles and colours."""
    colours = {mode: theme.variables(theme.WORKBENCH, mode) for mode in ("light", "dark")}
    data = f"\nconst STYLE = {json.dumps(workbench_style())};\nconst COLOURS = {json.dumps(colours)};\n"
    return workbench_script() + data + (HERE / "in_notebook.js").read_text(encoding="utf-8")


# ---------------------------------------------------------------- circuits


Rows = Sequence[Mapping[str, Any]]


def circuit_edges(rows: Rows | str | Path) -> pd.DataFrame:
    """Return the edges of a circuit as a data frame with one row per edge, starting with the strongest edge.

    `rows` are from `study circuit`, or the file with its `--json` output. Raises InputError without an edge.
    """
    edges = sorted(CircuitEdge.among(_rows(rows)), key=lambda edge: edge.rank)
    if not edges:
        raise InputError(
            "rows must be the output of `study circuit --json`; got rows without an edge. Run `study circuit` first."
        )
    return pd.DataFrame(edges)


def circuit_graph(rows: Rows | str | Path, *, most: int | None = None, verdict: str | None = None) -> nx.MultiDiGraph:
    """Return a circuit as a directed graph with components of the model as nodes and connections as edges.

    Edges are keyed by the receiving input ("q", "k", "v", or "" for MLPs and the output) and have all columns of their
    row. `verdict` selects edges with this verdict, such as "matters".
    """
    frame = circuit_edges(rows)
    frame = frame if verdict is None else frame[frame["verdict"] == verdict]
    graph = nx.MultiDiGraph()
    for edge in frame.head(most if most is not None else len(frame)).to_dict("records"):
        graph.add_edge(edge["sender"], edge["receiver"], key=edge["input"], **edge)
    return graph


def _rows(rows: Rows | str | Path) -> Rows:
    if not isinstance(rows, str | Path):
        return rows
    try:
        return json.loads(read_text(Path(rows).expanduser()))["rows"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"A circuit file must be the output of `study circuit --json`; {rows} could not be read. Run "
            "`study circuit --json` to create such a file."
        ) from error
