"""The notebook functions: the map workbench as a widget, and data frames of heads, counterparts and circuits."""

import atexit
import copy
import hashlib
import json
import shutil
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import anywidget
import networkx as nx
import numpy as np
import pandas as pd
import torch
import traitlets
from torch import nn
from tqdm.auto import tqdm

from .. import models
from ..atlas import scores as stored_scores
from ..attention import AttentionMaps, Head
from ..capture.running import capture
from ..capture.words import special_positions_of, word_maps
from ..config import settings
from ..drawing import theme
from ..drawing.page import MapsSource, maps_page
from ..drawing.panes import Pane, header_of, scored_pane, telling_head
from ..drawing.payload import as_bytes, packed, workbench_script, workbench_style
from ..errors import CheckpointError, InputError
from ..models.checkpoint import Checkpoint
from ..models.classifier import POOLING_KEY
from ..models.encoding import Encoding
from ..scoring.intervals import Means
from ..scoring.registry import HEAD_SCORES, even_scores, map_scores
from ..store.database import Database
from ..store.recovery import LockedError
from ..store.rows import Row
from ..studies.circuits.records import CircuitEdge
from ..studies.comparison.counterparts import STUDY
from ..studies.comparison.records import Counterpart
from ..studies.contract import Finished
from ..studies.explanation.cell_parts import LayerScores, layer_scores
from ..studies.hypotheses.hypothesis import STUDY as HYPOTHESIS
from ..studies.hypotheses.hypothesis import HypothesisOptions, RowChoice, usual_rows
from ..studies.hypotheses.measure_heads import keep_as_run
from ..studies.hypotheses.records import Criterion
from ..studies.hypotheses.registering import Proposal, batch_of, options_of, register
from ..writing import write_whole

# ---------------------------------------------------------------- head scores


Text = str | tuple[str, str]


def scores_on(checkpoint: Checkpoint, texts: Text | Sequence[Text]) -> pd.DataFrame:
    """Score every head on your texts.

    Args:
        texts: a sentence, a pair (tuple of two), or a list of them.

    Returns:
        One row for each head and score: layer, head (zero-based), name, score, value (mean over texts), low and high
            (95 % CI; NaN for too few texts), baseline (mean under uniform attention), n (texts).

    Raises:
        CheckpointError, InputError: the model cannot be captured; there is no text.
    """
    rows = rows_of(texts)
    names = list(HEAD_SCORES)
    means = Means(checkpoint.layers, checkpoint.heads, len(names))
    evenly = Means(checkpoint.layers, checkpoint.heads, len(names))
    for number, (text, pair) in enumerate(tqdm(rows, desc="texts", leave=False, disable=len(rows) < 2)):
        encoding = encode(checkpoint, text, pair)
        maps = capture(checkpoint, encoding)
        places: dict[str, Any] = {"first": encoding.first, "separators": encoding.separators}
        for kept, scores in ((means, map_scores(maps, **places)), (evenly, even_scores(maps, **places))):
            _take(kept, _stacked(scores, maps), number)
    return _frame(means, evenly, names)


def known_scores(checkpoint: str, *, task: str | None = None, measure: bool = True) -> pd.DataFrame:
    """Return all scores of all heads of a checkpoint: stored, bundled, or measured now.

    If the app holds the database, stored results are omitted with a warning.

    Args:
        task: only scores on this task and those without a task; None for all.
        measure: measure a first set (seconds) if nothing is stored or bundled.

    Returns:
        The columns of `core.atlas.scores.ScoreRow`. For a table of heads, use
        `frame.pivot(index="layer", columns="head", values="value")` on one score.

    Raises:
        CheckpointError, InputError: from measuring.
    """
    path = settings().database.expanduser()
    if not path.is_file():
        return stored_scores.atlas(None, checkpoint=checkpoint, task=task, measure=measure)
    try:
        with Database(path) as db:
            return stored_scores.atlas(db, checkpoint=checkpoint, task=task, measure=measure)
    except LockedError as error:
        warnings.warn(f"The database is held by {error.holder}, so its stored scores are omitted.", stacklevel=2)
        return stored_scores.atlas(None, checkpoint=checkpoint, task=task, measure=measure)


def rows_of(texts: Text | Sequence[Text]) -> list[tuple[str, str | None]]:
    """Return texts as pairs of a text and its second text. Raises InputError."""
    some = [texts] if isinstance(texts, (str, tuple)) else list(texts)
    rows = [(row, None) if isinstance(row, str) else row for row in some]
    if not rows or not all(isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], str) for row in rows):
        raise InputError(
            f"texts must be a sentence, a pair, or a list of them; got {str(texts)[:80]!r}. Give one of these."
        )
    return rows


def _stacked(scores: Mapping[str, np.ndarray], maps: AttentionMaps) -> np.ndarray:
    """Return the scores of one input, [layer, head, score], broadcast to all heads."""
    every = [np.asarray(scores[name], np.float64) for name in HEAD_SCORES]
    shape = (maps.layers, maps.heads)
    return np.stack([np.broadcast_to(score if score.ndim == 2 else score[:, None], shape) for score in every], -1)


def _take(means: Means, values: np.ndarray, number: int) -> None:
    counts = (~np.isnan(values[:, 0])).astype(float)  # an input has a score for all heads or for none
    for layer in range(len(values)):
        means.update(layer, values[layer][None], counts[layer][None], [number])


def _frame(means: Means, evenly: Means, names: Sequence[str]) -> pd.DataFrame:
    estimate, baseline = means.result(), evenly.result().value
    rows = [
        {
            "layer": layer,
            "head": head,
            "name": str(Head(layer, head)),
            "score": name,
            "value": estimate.value[layer, head, place],
            "low": estimate.low[layer, head, place],
            "high": estimate.high[layer, head, place],
            "baseline": baseline[layer, head, place],
            "n": int(estimate.n[place]),
        }
        for layer, head in np.ndindex(estimate.value.shape[:2])
        for place, name in enumerate(names)
    ]
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- loaded models


_SAVING = threading.Lock()


def checkpoint_of(model: Any, tokenizer: Any = None) -> Checkpoint:
    """A checkpoint that runs a copy of a loaded model. The copy shares the weights and has modes and an attention
    function of its own, so that another thread may use the model meanwhile.

    Args:
        model: an object that from_pretrained returned.
        tokenizer: of the model.

    Returns:
        The checkpoint in eval mode; it is named after what the model was loaded from, otherwise after its family.

    Raises:
        CheckpointError: `model` is no Transformer of the transformers library that reads text, or its tokenizer is
            missing or has tokens without an embedding.
    """
    kind = getattr(getattr(model, "config", None), "model_type", None)
    if not kind or not hasattr(model, "set_attn_implementation"):
        raise CheckpointError(
            "model must be a model of the transformers library, or a checkpoint name; got "
            f"{type(model).__name__}. Give the object that from_pretrained returned."
        )
    if tokenizer is None or not hasattr(tokenizer, "convert_ids_to_tokens"):
        raise CheckpointError(
            f"tokenizer must be the tokenizer of the loaded model; got {type(tokenizer).__name__}. Use "
            "open(model, tokenizer)."
        )
    name = str(getattr(model.config, "_name_or_path", "") or kind)
    models.opening.refuse_no_text(model.config, name)
    models.opening.refuse_other_vocabulary(model, tokenizer, name)
    shared = _sharing_weights(model, name).eval()
    if hasattr(shared.config, POOLING_KEY):  # of a folder of ours: a head of transformers does not read it
        delattr(shared.config, POOLING_KEY)
    return Checkpoint(name, shared, tokenizer)


def _sharing_weights(model: Any, name: str) -> Any:
    """A copy of a model that has the same tensors, not copies of them. Raises CheckpointError."""
    tensors = [tensor for module in model.modules() for tensor in _tensors_of(module)]
    try:
        return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})
    except (TypeError, RuntimeError) as error:
        raise CheckpointError(
            f"{name} cannot be copied ({str(error)[:120]}), so it cannot run without being changed. Save it with "
            "save_pretrained, and open the folder."
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
    """The folder of a saved copy of a loaded model as it is now; a model that has not changed is saved once.

    Raises:
        CheckpointError: as `checkpoint_of`, or the model cannot be saved.
    """
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
            except Exception as error:  # each family and tokenizer fails with its own classes
                shutil.rmtree(part, ignore_errors=True)
                raise CheckpointError(
                    f"A study runs on a saved copy of {checkpoint.name}, which could not be written "
                    f"({str(error)[:120]}). Save the model yourself, and open the folder."
                ) from error
            part.rename(folder)
    return folder


def encode(checkpoint: Checkpoint, text: str, pair: str | None = None, *, most: int | None = None) -> Encoding:
    """Encode a text; a tokenizer without character offsets gives an encoding without words.

    Args:
        pair: second text, or None.
        most: tokens including special ones; longer inputs are truncated. None for the model's limit.

    Raises:
        InputError: a text is empty or blank.
    """
    if checkpoint.tokenizer.is_fast:
        return checkpoint.encode(text, pair, max_length=most)
    if not text.strip() or (pair is not None and not pair.strip()):
        raise InputError("A sentence must have at least one visible character; it is empty. Enter a text.")
    return _without_offsets(checkpoint, text, pair, min(most or checkpoint.max_length, checkpoint.max_length))


def _without_offsets(checkpoint: Checkpoint, text: str, pair: str | None, limit: int) -> Encoding:
    """Encode with a slow tokenizer; offsets of ordinary tokens are empty spans."""
    tokenizer = checkpoint.tokenizer
    whole = tokenizer(text, pair, truncation=False, verbose=False)["input_ids"]
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
    """Raise CheckpointError if the tokenizer has no character offsets."""
    if not checkpoint.tokenizer.is_fast:
        raise CheckpointError(
            f"Maps between words need a tokenizer with character offsets; {type(checkpoint.tokenizer).__name__} "
            "has none. Use words=False, or load the fast tokenizer."
        )


# ---------------------------------------------------------------- hypotheses


ROWS = 100


def hypothesis(
    checkpoint: str, head: str, predicate: str, parameters: Mapping[str, str], *, thought: str = "", judged: str = "",
    author: str = "",
) -> pd.DataFrame:  # fmt: skip
    """Register a hypothesis about a head, test it in this process, and store both in your database.

    Args:
        head: such as "L1H1".
        predicate: one of docs/explanation/hypotheses.md, such as "offset".
        parameters: of the predicate, such as {"offset": "first"}.
        thought: examples it was formed on, as task:split:limit:seed; default: SST-2, or what the predicate needs.
        judged: evaluation examples; default: RTE, or what the predicate needs.

    Returns:
        One row for each criterion: hypothesis (its ID), criterion, state, measure, amount, low, high, baseline, n, p,
            adjusted, level, note.

    Raises:
        InputError: the hypothesis cannot be tested with these arguments.
        CheckpointError: the checkpoint cannot be opened.
        LockedError: the app holds the database; use its page, or close it.
    """
    usual = usual_rows(predicate, ROWS)
    rows = [RowChoice.parse(given or other) for given, other in zip((thought, judged), usual, strict=True)]
    said = Proposal(Head.parse(head), predicate, dict(parameters))
    with Database(settings().database) as db:
        batch, _ = register(db, checkpoint, [said], thought=rows[0], judged=rows[1], annotator=author)
        criteria = Criterion.among(_tested(db, options_of(*batch_of(db, batch))))
    names = ("hypothesis", "criterion", "state", "measure", "amount", "low", "high", "baseline", "n", "p", "adjusted",
             "level", "note")  # fmt: skip
    return pd.DataFrame([{name: getattr(criterion, name) for name in names} for criterion in criteria])


def _tested(db: Database, options: HypothesisOptions) -> list[Row]:
    """Run the test, store it like a job, and return its rows."""
    units = [HYPOTHESIS.run(options, unit) for unit in HYPOTHESIS.units(options)]
    rows = HYPOTHESIS.summarize(options, [unit.partial for unit in units])
    run = keep_as_run(db, HYPOTHESIS, options, {"weights_hash": units[0].provenance.weights_hash}, rows)
    title = HYPOTHESIS.title(options)
    HYPOTHESIS.keep(db, Finished(run, title, options, rows, lambda: (unit.partial for unit in units)))
    return rows


HERE = Path(__file__).resolve().parent
PIECES_SHOWN = 256  # longer inputs are truncated: 144 heads of 256 tokens are 19 MB


class MapsWidget(anywidget.AnyWidget):
    """The workbench. view: the user's selection, such as {"head": "L2H3"}, which can be set; height: pixels."""

    payload = traitlets.Bytes(b"").tag(sync=True)
    view = traitlets.Dict().tag(sync=True)
    height = traitlets.Int(560).tag(sync=True)

    def __init__(self, panes: Sequence[Pane], source: MapsSource, *, head: str, note: str = "", height: int = 560):
        self.panes, self.source, self.head, self.note = tuple(panes), source, head, note
        header = header_of(panes, caption=source.input[:200], head=head, note=note)
        payload = packed(header, [pane.weights for pane in panes])
        super().__init__(payload=payload, height=height, _esm=script_text())

    def save(self, file: str | Path, *, megabytes: float = 2) -> Path:
        """Save the maps as one HTML file without a server; the file states what does not fit.

        megabytes: size limit. Raises InputError if the file cannot be written.
        """
        page = maps_page(
            self.panes, self.source, head=self.head, opened=self.view, note=self.note, most=int(megabytes * 1e6)
        )
        write_whole(file, page)
        return Path(file)


def shown(
    checkpoint: Checkpoint,
    text: str,
    pair: str | None = None,
    *,
    words: bool = False,
    height: int = 560,
    most: int = PIECES_SHOWN,
    has_command: bool = False,
) -> MapsWidget:
    """Every head of a checkpoint on a sentence or pair, as the app draws them.

    Args:
        most: tokens; longer inputs are cut, and the widget says so.
        has_command: whether a command of the terminal gives these maps again.

    Raises:
        CheckpointError, InputError: the model cannot be seen into; there is no text.
    """
    if not isinstance(text, str):
        raise InputError(f"text must be a sentence; got {type(text).__name__}. Give a text.")
    if words:
        must_have_words(checkpoint)
    encoding = encode(checkpoint, text, pair, most=most)
    maps = capture(checkpoint, encoding)
    maps = word_maps(maps, encoding) if words else maps
    first, separators = special_positions_of(encoding, words=words)
    pane = scored_pane(checkpoint.name, maps, first=first, separators=separators)
    cut = f"The last {encoding.cut} tokens were truncated; {len(encoding)} are shown." if encoding.cut else ""
    source = MapsSource(checkpoint.name, text, pair, checkpoint.weights_hash, words)
    source = source.with_command() if has_command else source
    return MapsWidget([pane], source, head=telling_head(pane.scores or {}), note=cut, height=height)


SHAPES = (
    "Attention weights must be an array of the shape (layer, head, query, key), or (head, query, key) for one layer, "
    "with as many tokens as queries"
)


def show_maps(
    weights: Any,
    tokens: Sequence[Any] | None = None,
    *,
    key_tokens: Sequence[Any] | None = None,
    causal: bool | None = None,
    title: str = "arrays",
    height: int = 560,
) -> MapsWidget:
    """Attention weights from any source as the app draws them.

    Args:
        weights: of NumPy or torch; the attentions that a model of transformers returns for one input; or the NPZ file
            that the command `maps` writes, which has tokens of its own. Each row sums to 1.
        tokens: a label for each query.
        key_tokens: a label for each key, if keys are not the queries.
        causal: whether queries see no later key; None: if all of these weights are 0.

    Raises:
        InputError: shapes, numbers of tokens or sums of rows do not fit.
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
        raise InputError(
            f"{SHAPES}; got the shape {shape} and {len(queries)} tokens. Give one input without padding, and "
            "key_tokens if keys are not the queries."
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
        raise InputError(f"{SHAPES}; got {type(weights).__name__}. Give numbers of NumPy or torch.") from error
    if array.ndim == 5 and 1 in array.shape[:2]:  # a batch of one input
        array = array[:, 0] if array.shape[1] == 1 else array[0]
    return array


def _of_file(file: Path, tokens: Any, key_tokens: Any) -> tuple[np.ndarray, Any, Any]:
    """Weights and tokens of an NPZ file of the terminal. Raises InputError."""
    try:
        with np.load(file, allow_pickle=False) as stored:
            read = {name: stored[name] for name in ("weights", "tokens", "key_tokens") if name in stored}
            return read["weights"], read.get("tokens", tokens), read.get("key_tokens", key_tokens)
    except (OSError, ValueError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        raise InputError(
            f"Maps are read from an NPZ file that the command `maps` wrote; {file} is none. Name another file."
        ) from error


@cache
def script_text() -> str:
    """Return the widget's script: the shared drawing, its styles and colours, and in_notebook.js."""
    colours = {mode: theme.variables(theme.WORKBENCH, mode) for mode in ("light", "dark")}
    data = f"\nconst STYLE = {json.dumps(workbench_style())};\nconst COLOURS = {json.dumps(colours)};\n"
    return workbench_script() + data + (HERE / "in_notebook.js").read_text(encoding="utf-8")


# ---------------------------------------------------------------- circuits


Rows = Sequence[Mapping[str, Any]]


def circuit_edges(rows: Rows | str | Path) -> pd.DataFrame:
    """Return every edge of a circuit as a row, strongest first.

    rows: from `study circuit`, or the file with its `--json` output. Raises InputError if there is no edge.
    """
    edges = sorted(CircuitEdge.among(_rows(rows)), key=lambda edge: edge.rank)
    if not edges:
        raise InputError("rows must be from `study circuit --json`; these have no edge. Run `study circuit` first.")
    return pd.DataFrame(edges)


def circuit_graph(rows: Rows | str | Path, *, most: int | None = None, verdict: str | None = None) -> nx.MultiDiGraph:
    """Return a circuit as a directed graph: nodes are components, edges are connections.

    Edges are keyed by the receiving input ("q", "k", "v", or "" for MLPs and the output) and have all columns of their
    row.

    verdict: only edges with this verdict, such as "matters".
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
        return json.loads(Path(rows).expanduser().read_text(encoding="utf-8"))["rows"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"A circuit file must be the output of `study circuit --json`; {rows} is not. Run `study circuit "
            "--json` to write it."
        ) from error


# ---------------------------------------------------------------- counterparts


def counterparts(
    checkpoint: str, compare: str, texts: Sequence[str] = (), *, task: str = "sst2", limit: int = 200, draws: int = 99
) -> pd.DataFrame:
    """Find each head's counterpart in another checkpoint, like the study `counterparts`.

    Args:
        texts: sentences; otherwise examples of the task.
        draws: random-weight baselines, at least 99.

    Returns:
        One row for each head of `checkpoint`: layer, head, match_layer, match_head (zero-based), similarity, low, high,
        margin, p, agrees, matched.

    Raises:
        CheckpointError, InputError: a checkpoint cannot be opened, or the two have no words in common.
    """
    inputs = {"texts": list(texts)} if texts else {"tasks": [task]}
    options = STUDY.read({"checkpoint": checkpoint, "compare": compare, "limit": limit, "draws": draws} | inputs)
    partials = [STUDY.run(options, unit).partial for unit in STUDY.units(options)]
    return pd.DataFrame([head.as_row() for head in Counterpart.among(STUDY.summarize(options, partials))])


LARGEST = 5  # terms shown for a cell


def why(checkpoint: Checkpoint, text: str, head: str | Head, *, pair: str | None = None) -> pd.DataFrame:
    """Decompose where a head attends: the largest terms of the score of every token's strongest key.

    Args:
        head: "L2H5", or a Head.
        pair: second text, or None.

    Returns:
        One row for each term: query, key (zero-based), query_token, key_token, weight, score (minus the row's mean; the
            terms sum to it), query_part, key_part, value; the last row of a cell sums all other terms.

    Raises:
        CheckpointError, InputError, InterventionError: the model, head or family cannot be decomposed.
    """
    _, chosen, scores = _taken_apart(checkpoint, text, head, pair)
    rows = []
    for query, token in enumerate(scores.encoding.tokens):
        key = int(scores.inputs.weights[0, chosen.head, query].argmax())
        cell = scores.cell(chosen.head, query, key)
        cell_facts = {"query": query, "key": key, "query_token": token, "key_token": scores.key_encoding.tokens[key]}
        for term in cell.largest(LARGEST):
            rows.append(
                {
                    **cell_facts,
                    "weight": cell.weight,
                    "score": cell.score,
                    "query_part": term.query_part,
                    "key_part": term.key_part,
                    "value": term.value,
                }
            )
    return pd.DataFrame(rows)


def why_maps(
    checkpoint: Checkpoint,
    text: str,
    head: str | Head,
    *,
    pair: str | None = None,
    side: Literal["query", "key"] = "key",
    height: int = 560,
) -> MapsWidget:
    """Show the head's map next to the map that each group of contributions to one side would give alone.

    Arguments and errors as for `why`.
    """
    checkpoint, chosen, scores = _taken_apart(checkpoint, text, head, pair)
    maps = {f"{chosen}": scores.inputs.weights[0, chosen.head]}
    maps |= {
        f"{group} only, on the {side} side": scores.map_of(chosen.head, group, side) for group in scores.groups(side)
    }
    tokens, keys = scores.encoding.tokens, scores.key_encoding.tokens
    panes = [
        Pane(
            title, 1, 1, tokens, as_bytes(weights.float().cpu().numpy()), checkpoint.causal, named=str(chosen),
            scores={}, key_tokens=None if keys == tokens else keys, part=chosen.part,
        )
        for title, weights in maps.items()
    ]  # fmt: skip
    source = MapsSource(checkpoint.name, text, pair, checkpoint.weights_hash)
    return MapsWidget(panes, source, head=str(chosen), height=height)


def _taken_apart(
    checkpoint: Checkpoint, text: str, head: str | Head, pair: str | None
) -> tuple[Checkpoint, Head, LayerScores]:
    checkpoint = _exact(checkpoint)
    chosen = head if isinstance(head, Head) else Head.parse(head)
    scores = layer_scores(checkpoint, encode(checkpoint, text, pair), chosen.layer, part=chosen.part)
    scores.check(chosen.head, 0, 0)
    return checkpoint, chosen, scores


def _exact(checkpoint: Checkpoint) -> Checkpoint:
    """Return the checkpoint, or a float32 copy of a half-precision one, for exact decompositions."""
    if checkpoint.dtype not in ("float16", "bfloat16"):
        return checkpoint
    return Checkpoint(checkpoint.name, copy.deepcopy(checkpoint.model).float(), checkpoint.tokenizer)
