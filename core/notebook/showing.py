"""`show`: the workbench of the app as a widget of Jupyter, VS Code, Colab or Marimo; and as a file to send."""

import copy
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import anywidget
import networkx as nx
import numpy as np
import pandas as pd
import traitlets

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
from ..models.encoding import Encoding
from ..scoring.intervals import Means
from ..scoring.registry import HEAD_SCORES, even_scores, map_scores
from ..store.database import Database
from ..store.recovery import LockedError
from ..store.rows import Row
from ..studies.circuits.records import CircuitEdge
from ..studies.comparison.match import STUDY
from ..studies.comparison.records import Counterpart
from ..studies.contract import Finished
from ..studies.explanation.cell_parts import LayerScores, layer_scores
from ..studies.hypotheses.hypothesis import STUDY as HYPOTHESIS
from ..studies.hypotheses.hypothesis import HypothesisOptions, RowChoice, usual_rows
from ..studies.hypotheses.measure_heads import keep_as_run
from ..studies.hypotheses.records import Criterion
from ..studies.hypotheses.registering import Proposal, batch_of, options_of, register
from ..writing import write_whole

# -------------------- A model object that somebody has loaded, as a checkpoint of ours


# ---------------------------------------------------------------- numbers of heads as pandas frames


Text = str | tuple[str, str]


def heads(model: Any, tokenizer: Any = None, texts: Text | Sequence[Text] = ()) -> pd.DataFrame:
    """What every head looks at in your texts: one row a head and score, L1H1 first.

    Args:
        model: as in `show`.
        tokenizer: as in `show`.
        texts: a sentence, a pair (a tuple of two), or a list of them.

    Returns:
        Columns: layer, head (zero-based), name, score, value (mean over the texts that have it), low and high (its
        95 % interval; NaN for fewer texts than carry one), baseline (the mean if every query looked evenly at all it
        sees), n (texts).

    Raises:
        CheckpointError, InputError: the model cannot be opened or seen into; there is no text.
    """
    if isinstance(model, str) and not hasattr(tokenizer, "convert_ids_to_tokens") and tokenizer is not None:
        tokenizer, texts = None, tokenizer
    rows = _model_objects_rows(texts)
    checkpoint = checkpoint_of(model, tokenizer)
    names = list(HEAD_SCORES)
    means = Means(checkpoint.layers, checkpoint.heads, len(names))
    evenly = Means(checkpoint.layers, checkpoint.heads, len(names))
    for number, (text, pair) in enumerate(rows):
        encoding = encode(checkpoint, text, pair)
        maps = maps_of(checkpoint, encoding)
        places: dict[str, Any] = {"first": encoding.first, "separators": encoding.separators}
        for kept, scores in ((means, map_scores(maps, **places)), (evenly, even_scores(maps, **places))):
            _take(kept, _stacked(scores, maps), number)
    return _frame(means, evenly, names)


def atlas(checkpoint: Any, *, task: str | None = None, measure: bool = True) -> pd.DataFrame:
    """Every score of every head of a checkpoint that is stored, shipped, or else measured now: one row a score.

    While the app holds the database, its results are left out, and a warning says so.

    Args:
        task: only scores of this task, and those that belong to none; None for all.
        measure: where nothing is stored or shipped, measure a first set now (seconds).

    Returns:
        The columns of `core.atlas.scores.ScoreRow`: checkpoint, task, layer, head, score, value, low, high, n,
        baseline, q, source. One score as a table of heads:
        `frame.pivot(index="layer", columns="head", values="value")`.

    Raises:
        CheckpointError: from measuring.
        InputError: `checkpoint` is no text; also from measuring.
    """
    if not isinstance(checkpoint, str):
        raise InputError(
            f"The atlas is of a checkpoint by its name, folder or hub id; {type(checkpoint).__name__} was given: save "
            "a loaded model with save_pretrained and give the folder, or ask heads(model, tokenizer, texts)."
        )
    path = settings().database.expanduser()
    if not path.is_file():
        return stored_scores.atlas(None, checkpoint=checkpoint, task=task, measure=measure)
    try:
        with Database(path) as db:
            return stored_scores.atlas(db, checkpoint=checkpoint, task=task, measure=measure)
    except LockedError as error:
        warnings.warn(f"What the database has is left out: it is held by {error.holder}.", stacklevel=2)
        return stored_scores.atlas(None, checkpoint=checkpoint, task=task, measure=measure)


def _model_objects_rows(texts: Text | Sequence[Text]) -> list[tuple[str, str | None]]:
    some = [texts] if isinstance(texts, (str, tuple)) else list(texts)
    rows = [(row, None) if isinstance(row, str) else row for row in some]
    if not rows or not all(isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], str) for row in rows):
        raise InputError(
            f"Heads are scored on texts: a sentence, a pair of two, or a list of them; {str(texts)[:80]!r} is none: "
            "heads(model, tokenizer, texts)."
        )
    return rows


def _stacked(scores: Mapping[str, np.ndarray], maps: AttentionMaps) -> np.ndarray:
    """Every score of one input, [layer, head, score]; one number a layer, or one for all, is that of each head."""
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


# ----------------------------------------------------------------


def checkpoint_of(model: Any, tokenizer: Any = None) -> Checkpoint:
    """A checkpoint around a loaded model and its tokenizer, or one that is opened.

    Args:
        model: an object that from_pretrained returned, or a checkpoint's name or folder.
        tokenizer: of the loaded model; not used with a name or folder.

    Returns:
        The checkpoint; a loaded model's is named after what it was loaded from, else after its family.

    Raises:
        CheckpointError: `model` is no Transformer of the transformers library that reads text, or its tokenizer is
            missing or has tokens without an embedding.
    """
    if isinstance(model, str):
        return models.opening.open_checkpoint(model)
    kind = getattr(getattr(model, "config", None), "model_type", None)
    if not kind or not hasattr(model, "set_attn_implementation"):
        raise CheckpointError(
            "Maps are of a model of the transformers library (or a checkpoint's name); "
            f"{type(model).__name__} is none: give the object that from_pretrained returned."
        )
    if tokenizer is None or not hasattr(tokenizer, "convert_ids_to_tokens"):
        raise CheckpointError(
            f"A loaded model needs its tokenizer to read a text; {type(tokenizer).__name__} was given: "
            "show(model, tokenizer, text)."
        )
    name = str(getattr(model.config, "_name_or_path", "") or kind)
    models.refusals.refuse_no_text(model.config, name)
    models.refusals.refuse_other_vocabulary(model, tokenizer, name)
    return Checkpoint(name, model, tokenizer)


@contextmanager
def borrowed(checkpoint: Checkpoint) -> Iterator[None]:
    """The model in eval mode while the block runs; its attention implementation and modes are put back afterwards.

    So it does not matter which implementation somebody chose before, nor that they switch it between two calls.
    """
    model = checkpoint.model
    training = [module for module in model.modules() if module.training]
    before = model.config._attn_implementation
    model.eval()
    try:
        yield
    finally:
        if model.config._attn_implementation != before:
            model.set_attn_implementation(before)
        for module in training:
            module.training = True


def maps_of(checkpoint: Checkpoint, encoding: Encoding) -> AttentionMaps:
    """All maps of one input.

    Args:
        checkpoint: its model is put into eval mode for the pass, and left as it was.

    Raises:
        CheckpointError: some layers do not go through transformers' attention interface (as when somebody replaced a
            layer or its forward), so that their maps cannot be seen.
    """
    with borrowed(checkpoint):
        return capture(checkpoint, encoding)


def encode(checkpoint: Checkpoint, text: str, pair: str | None = None, *, most: int | None = None) -> Encoding:
    """Split a text into pieces; with a tokenizer that has no character offsets too, then without words.

    Args:
        pair: the second one; None for a single text.
        most: pieces, special tokens included; longer inputs are cut. None for as many as the model takes.

    Raises:
        InputError: a text is empty or blank.
    """
    if checkpoint.tokenizer.is_fast:
        return checkpoint.encode(text, pair, max_length=most)
    if not text.strip() or (pair is not None and not pair.strip()):
        raise InputError("A sentence must have at least one visible character; it is empty: type a text.")
    return _without_offsets(checkpoint, text, pair, min(most or checkpoint.max_length, checkpoint.max_length))


def _without_offsets(checkpoint: Checkpoint, text: str, pair: str | None, limit: int) -> Encoding:
    """What a tokenizer written in Python says; offsets of ordinary pieces are empty spans."""
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
    """Raises CheckpointError where the tokenizer cannot say which characters a piece is of."""
    if not checkpoint.tokenizer.is_fast:
        raise CheckpointError(
            "Maps between words need a tokenizer with character offsets; "
            f"{type(checkpoint.tokenizer).__name__} has none: show pieces (words=False), or load the fast tokenizer."
        )


# ----------------------------------------------------------------


# ---------------------------------------------------------------- A hypothesis about one head


ROWS = 100


def hypothesis(
    checkpoint: str, head: str, predicate: str, parameters: Mapping[str, str], *, thought: str = "", judged: str = "",
    author: str = "",
) -> pd.DataFrame:  # fmt: skip
    """Register what is said of a head, test it in this process, and keep both in your database.

    Args:
        head: such as "L1H1".
        predicate: one of docs/dossier.md, such as "offset".
        parameters: the predicate's, by name, such as {"offset": "first"}.
        thought: rows that it was thought of on, as task:split:limit:seed; without them rows of SST-2, or what the
            predicate takes.
        judged: other rows, which judge it; without them rows of MRPC, or what the predicate takes.

    Returns:
        A row a criterion: hypothesis (its id), criterion, state, measure, amount, low, high, baseline, n, p, adjusted,
        level, note.

    Raises:
        InputError: it cannot be judged so. CheckpointError: the checkpoint cannot be opened. LockedError: the app holds
            the database; use its page, or close it.
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
    """The rows of the test, which is kept as a job would keep it."""
    units = [HYPOTHESIS.run(options, unit) for unit in HYPOTHESIS.units(options)]
    rows = HYPOTHESIS.summarize(options, [unit.partial for unit in units])
    run = keep_as_run(db, HYPOTHESIS, options, {"weights_hash": units[0].provenance.weights_hash}, rows)
    title = HYPOTHESIS.title(options)
    HYPOTHESIS.keep(db, Finished(run, title, options, rows, lambda: (unit.partial for unit in units)))
    return rows


# ----------------------------------------------------------------


HERE = Path(__file__).resolve().parent
PIECES_SHOWN = 256  # longer inputs are cut: 144 heads of 256 pieces are 19 MB


class MapsWidget(anywidget.AnyWidget):
    """The workbench. payload: what it draws. view: what the user chose: the head by name, and how it looks.

    height: pixels. Setting `view` (to {"head": "L2H3"}, say) shows that.
    """

    payload = traitlets.Bytes(b"").tag(sync=True)
    view = traitlets.Dict().tag(sync=True)
    height = traitlets.Int(560).tag(sync=True)

    def __init__(self, panes: Sequence[Pane], source: MapsSource, *, head: str, note: str = "", height: int = 560):
        self.panes, self.source, self.head, self.note = tuple(panes), source, head, note
        header = header_of(panes, caption=source.input[:200], head=head, note=note)
        payload = packed(header, [pane.weights for pane in panes])
        super().__init__(payload=payload, height=height, _esm=script_text())

    def save(self, file: str | Path, *, megabytes: float = 2) -> Path:
        """Write the maps as one HTML file that needs no server; what does not fit is said in it.

        Args:
            file: where to.
            megabytes: the most that the file may have, in millions of bytes.

        Raises:
            InputError: the file cannot be written.
        """
        page = maps_page(
            self.panes, self.source, head=self.head, opened=self.view, note=self.note, most=int(megabytes * 1e6)
        )
        write_whole(file, page)
        return Path(file)


def show(
    model: Any,
    tokenizer: Any = None,
    text: str | None = None,
    pair: str | None = None,
    *,
    words: bool = False,
    height: int = 560,
    most: int = PIECES_SHOWN,
) -> MapsWidget:
    """Every head of a model on a sentence or pair, to explore in the notebook: the same drawing as the app's.

    Args:
        model: an object that from_pretrained returned, with its tokenizer; or a checkpoint's name or folder, and then
            the text may come second. It is put into eval mode and given our attention function while it runs, and then
            left as it was.
        tokenizer: of the model; None with a name or folder.
        most: pieces; longer inputs are cut, and the widget says so.

    Raises:
        CheckpointError, InputError: the model cannot be opened or seen into; there is no text.
    """
    if isinstance(model, str) and isinstance(tokenizer, str):
        tokenizer, text, pair = None, tokenizer, text if text is not None else pair
    if not isinstance(text, str):
        raise InputError("Maps are of a text: show(model, tokenizer, text), or show(name, text).")
    checkpoint = checkpoint_of(model, tokenizer)
    if words:
        must_have_words(checkpoint)
    encoding = encode(checkpoint, text, pair, most=most)
    maps = maps_of(checkpoint, encoding)
    maps = word_maps(maps, encoding) if words else maps
    first, separators = special_positions_of(encoding, words=words)
    pane = scored_pane(checkpoint.name, maps, first=first, separators=separators)
    cut = f"The last {encoding.cut} pieces were cut: {len(encoding)} are shown." if encoding.cut else ""
    source = MapsSource(checkpoint.name, text, pair, checkpoint.weights_hash, words)
    source = source.with_command() if isinstance(model, str) else source
    return MapsWidget([pane], source, head=telling_head(pane.scores or {}), note=cut, height=height)


@cache
def script_text() -> str:
    """The widget's module: the shared drawing, its styles and colours as text, and in_notebook.js."""
    colours = {mode: theme.variables(theme.WORKBENCH, mode) for mode in ("light", "dark")}
    data = f"\nconst STYLE = {json.dumps(workbench_style())};\nconst COLOURS = {json.dumps(colours)};\n"
    return workbench_script() + data + (HERE / "in_notebook.js").read_text(encoding="utf-8")


# ---------------------------------------------------------------- why a head looks where it looks in a sentence


# -------------------- A circuit as a graph of NetworkX and as a frame, from the rows of `study circuit`


Rows = Sequence[Mapping[str, Any]]


def circuit_edges(rows: Rows | str | Path) -> pd.DataFrame:
    """Every edge of a circuit, strongest first, a row each; `circuit_edges("circuit.json").to_parquet(...)` keeps them.

    Args:
        rows: of `study circuit`, or the file that its `--json` was written to.

    Raises:
        InputError: where there is no edge among them.
    """
    edges = sorted(CircuitEdge.among(_rows(rows)), key=lambda edge: edge.rank)
    if not edges:
        raise InputError("A circuit is read from the rows of `study circuit --json`; there is no edge among these.")
    return pd.DataFrame(edges)


def circuit_graph(rows: Rows | str | Path, *, most: int | None = None, verdict: str | None = None) -> nx.MultiDiGraph:
    """A circuit as a directed graph: a node a component, an edge a way from one to another.

    Args:
        rows: as of `circuit_edges`.
        verdict: only those with this one, as "matters".

    Returns:
        The graph. An edge is keyed by the input it feeds ("q", "k", "v", or "" of blocks and the output) and has all
        columns of its row.
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
            f"A circuit is read from what `study circuit --json` printed; {rows} is no such file."
        ) from error


# ----------------------------------------------------------------


# -------------------- Which head of one checkpoint is which of another, as a pandas frame


def counterparts(
    checkpoint: str, compare: str, texts: Sequence[str] = (), *, task: str = "sst2", limit: int = 200, draws: int = 99
) -> pd.DataFrame:
    """Each head's counterpart in another checkpoint, as `python -m core study match` finds it.

    Args:
        texts: sentences; without them rows of the task.
        task: whose rows; used without texts.
        draws: of random weights, at least 99.

    Returns:
        A row a head of `checkpoint`: layer, head, match_layer, match_head (zero-based), similarity, low, high, margin,
        p, agrees, matched.

    Raises:
        CheckpointError, InputError: a checkpoint cannot be opened, or the two have no words in common.
    """
    inputs = {"texts": list(texts)} if texts else {"tasks": [task]}
    options = STUDY.read({"checkpoint": checkpoint, "compare": compare, "limit": limit, "draws": draws} | inputs)
    partials = [STUDY.run(options, unit).partial for unit in STUDY.units(options)]
    return pd.DataFrame([head.as_row() for head in Counterpart.among(STUDY.summarize(options, partials))])


# ----------------------------------------------------------------


LARGEST = 5  # terms of a cell


def why(model: Any, tokenizer: Any, text: str, head: str | Head, *, pair: str | None = None) -> pd.DataFrame:
    """What decides where a head looks: of every token's strongest key, the largest terms of the score.

    Args:
        model: as in `show`: a model, or a name or folder.
        tokenizer: of the model; None with a name or folder.
        head: "L2H5", or a Head.
        pair: the second text, if there is one.

    Returns:
        A row a term: query, key (zero-based places), query_token, key_token, weight, score (less the row's mean, which
        the terms add up to), query_part, key_part, value; the last row of a cell is all other terms together.

    Raises:
        CheckpointError, InputError, InterventionError: the model, the head or the family cannot be taken apart.
    """
    _, chosen, scores = _taken_apart(model, tokenizer, text, head, pair)
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
    model: Any,
    tokenizer: Any,
    text: str,
    head: str | Head,
    *,
    pair: str | None = None,
    side: Literal["query", "key"] = "key",
    height: int = 560,
) -> MapsWidget:
    """The head's map, and beside it the map that each group of contributions to one side would draw alone.

    Args:
        model: as in `why`.
        tokenizer: as in `why`.
        text: as in `why`.
        head: as in `why`.
        pair: as in `why`.

    Returns:
        The widget, a pane for the map and one for each group.

    Raises:
        CheckpointError, InputError, InterventionError: as `why`.
    """
    checkpoint, chosen, scores = _taken_apart(model, tokenizer, text, head, pair)
    maps = {f"{chosen} as it is": scores.inputs.weights[0, chosen.head]}
    maps |= {
        f"by {group} in the {side} alone": scores.map_of(chosen.head, group, side) for group in scores.groups(side)
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
    model: Any, tokenizer: Any, text: str, head: str | Head, pair: str | None
) -> tuple[Checkpoint, Head, LayerScores]:
    checkpoint = _exact(checkpoint_of(model, tokenizer))
    chosen = head if isinstance(head, Head) else Head.parse(head)
    with borrowed(checkpoint):
        scores = layer_scores(checkpoint, encode(checkpoint, text, pair), chosen.layer, part=chosen.part)
    scores.check(chosen.head, 0, 0)
    return checkpoint, chosen, scores


def _exact(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint, or a copy in float32 of one in half precision: its scores are taken apart exactly."""
    if checkpoint.dtype not in ("float16", "bfloat16"):
        return checkpoint
    return Checkpoint(checkpoint.name, copy.deepcopy(checkpoint.model).float(), checkpoint.tokenizer)
