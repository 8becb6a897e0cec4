"""Forward passes that pass the maps of every layer to observers without storing them.

Inputs are never padded: a batch has inputs of one length, or joins groups of inputs, each of one length. Memory holds
the maps of one layer and batch at a time.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import cycle
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from .. import unit_progress
from ..attention import SINK, AttentionMaps, attends
from ..errors import CheckpointError, InterventionError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from ..models.head_sets import HeadSet
from ..models.memory import is_intel, maps_bytes, refuse_whole_maps
from .blocks import PartChange, parts_changed
from .function import AttentionRun, ended_after, has_no_numbers, of_this_thread, refuse_no_number
from .interventions import Intervention, Knockout, check_source, cuts_of, head_changes_of, refuse_across
from .masks import lazily
from .reach import reach_of, reached
from .stacks import FEWEST, packed
from .streaming import STREAMED_FROM, streamer_for

# ---------------------------------------------------------------- maps on their way to observers


JOINED_BYTES = 32_000_000  # limit for a batch's maps of all layers; larger ones are handed over layer by layer


@runtime_checkable
class Joining(Protocol):
    """Interface for observers that can process the attention maps of all layers of a batch at once."""

    def update_layers(self, weights: Float[Tensor, "batch layer_head query key"], inputs: list[int]) -> None:
        """Process the attention maps of all layers for a batch, without storing or modifying the maps. The heads of all
        layers share one axis (index layer * heads + head). `inputs` are the indices of the batch among all inputs."""


class MapsOfBatch:
    """The attention maps of one batch, passed to observers layer by layer. If the maps are small, `Joining` observers
    get the maps of all layers at once. `layers` is the number of layers, or 0 to avoid this."""

    def __init__(self, observers: Sequence[Any], inputs: list[int], layers: int) -> None:
        self.by_layer, self.inputs, self.layers = list(observers), inputs, layers
        self.joining: list[Joining] = []
        self.held: list[Tensor] = []

    def take(self, layer: int, weights: Float[Tensor, "batch head query key"]) -> None:
        """Pass the attention maps of one layer to observers. Maps for `Joining` observers are stored until the last
        layer."""
        if layer == 0 and 1 < self.layers <= JOINED_BYTES / weights.nbytes:
            self.joining = [observer for observer in self.by_layer if isinstance(observer, Joining)]
            self.by_layer = [observer for observer in self.by_layer if not isinstance(observer, Joining)]
        for observer in self.by_layer:
            observer.update(layer, weights, self.inputs)
        if self.joining:
            self.held.append(weights)
        if self.joining and len(self.held) == self.layers:
            whole, self.held = _heads_side_by_side(torch.cat(self.held, 1)), []
            for joined in self.joining:
                joined.update_layers(whole, self.inputs)


def _heads_side_by_side(maps: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
    """Return the same values with the heads of one cell adjacent in memory, as measures read all heads of a cell."""
    if maps.device.type != "cpu":
        return maps
    batch, heads, queries, keys = maps.shape
    cells = np.ascontiguousarray(maps.numpy().reshape(batch, heads, -1).transpose(0, 2, 1))  # twice as fast as torch
    return torch.from_numpy(cells).view(batch, queries, keys, heads).permute(0, 3, 1, 2)


BATCH_TOKENS = 4096
LAYERS_MAPS = 3  # arrays of a layer in memory at once: scores, weights, and a measure's result
Change = Intervention | Knockout | PartChange


@runtime_checkable
class Observer(Protocol):
    """Interface for objects that process the attention maps of each layer and batch while a model runs.

    Observers with `takes_sinks = True` also get maps whose last key is a sink. `Joining` observers get all layers of
    short inputs at once. Hybrid models pass only layers that have attention, with their numbers in the model.
    """

    def update(self, layer: int, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        """Process the attention maps of one layer for a batch, without storing or modifying the maps. Each row sums to
        1. The last key is a sink only if the observer has `takes_sinks`. `inputs` are the indices of the batch among
        all inputs."""


def batches(encodings: Sequence[Encoding], batch_tokens: int = BATCH_TOKENS) -> Iterator[list[int]]:
    """Yield batches of inputs with equal length, as lists of indices, longest inputs first. A batch has at most
    `batch_tokens` tokens, unless it is a single input."""
    order = sorted(range(len(encodings)), key=lambda k: ([-length for length in encodings[k].lengths], k))
    start = 0
    while start < len(order):
        lengths = encodings[order[start]].lengths
        most = max(1, batch_tokens // max(1, *lengths))
        stop = start
        while stop < len(order) and stop - start < most and encodings[order[stop]].lengths == lengths:
            stop += 1
        yield order[start:stop]
        unit_progress.advance(sum(sum(encodings[k].lengths) for k in order[start:stop]))
        start = stop


FLAT_FAMILIES = frozenset({"bert", "electra", "gpt2", "gpt_neox", "llama", "qwen2", "qwen3"})


def _flattens(checkpoint: Checkpoint) -> bool:
    """Return whether inputs of different lengths can be in one row of tokens. The model must accept token positions,
    and use the attention interface of transformers without windows."""
    own = checkpoint.family.model_type in FLAT_FAMILIES and reach_of(checkpoint) == "interface"
    return own and not (checkpoint.windows or checkpoint.sets[0].attending or checkpoint.model.training)


def _flat(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], chosen: Iterable[list[int]], batch_tokens: int
) -> Iterator[list[list[int]]]:
    """Join successive batches, so that matrix products have more rows: a product of 100 rows takes 1.4 times as long
    per row as one of 1,000. All maps of the joined batches have at most `JOINED_BYTES`."""
    groups: list[list[int]] = []
    tokens = memory = 0
    for batch in chosen:
        length = len(encodings[batch[0]])
        more = len(batch) * length
        maps = more * length * checkpoint.layers * checkpoint.heads * 4  # bytes of float32
        streamed = bool(groups) and len(encodings[groups[0][0]]) >= STREAMED_FROM
        if streamed or (groups and (tokens + more > batch_tokens or memory + maps > JOINED_BYTES)):
            yield groups
            groups, tokens, memory = [], 0, 0
        groups.append(batch)
        tokens, memory = tokens + more, memory + maps
    if groups:
        yield groups


def with_sink(
    checkpoint: Checkpoint, weights: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "batch head query column"]:
    """Append the weights of the attention sink as a last column if the model family has sinks. In layers without a
    sink, these weights are 0."""
    lacks = checkpoint.family.sinks and weights.shape[3] == weights.shape[2]
    return torch.nn.functional.pad(weights, (0, 1)) if lacks else weights


def by_layer(checkpoint: Checkpoint, called: Sequence[Tensor]) -> Float[Tensor, "layer ..."]:
    """Stack the tensors of all attention calls in layer order. Layers without attention get zeros."""
    own = checkpoint.sets[0]
    if not own.attending:
        return torch.stack(list(called))
    given = dict(zip(own.attending, called, strict=True))
    return torch.stack([given[k] if k in given else torch.zeros_like(called[0]) for k in range(own.layers)])


@contextmanager
def prepared(
    checkpoint: Checkpoint,
    interventions: Iterable[Change] = (),
    *,
    watcher: Any = None,
    layers: Iterable[int] | None = None,
    gates: Tensor | Sequence[Tensor] | None = None,
    some: Sequence[Encoding] = (),
    inputs: Sequence[int] = (),
) -> Iterator[AttentionRun]:
    """Within this context, apply interventions to the forward passes of a checkpoint. Attention weights are passed to
    `watcher`.

    Yields the settings of the run, which may be changed before the forward pass. Raises InterventionError if the family
    cannot be changed, or an intervention is undefined for it.

    Args:
        watcher: called with each watched attention call (the layer, if there is one set of heads) and its weights.
        layers: watched calls; None for all of the first set of heads.
        gates: as in `AttentionRun`. *Shape:* (layer, head), (layer, batch, head, query), or a list of (batch, head,
            query).
        some: the batch, for interventions that depend on the input.
    """
    touched = list(interventions)
    on_heads = [change for change in touched if not isinstance(change, PartChange)]
    for change in on_heads:
        check_source(getattr(change, "source", None), checkpoint.weights_hash)
    watched = frozenset(checkpoint.sets[0].numbers if layers is None else layers) if watcher else frozenset()
    numbers = checkpoint.sets[0].attending
    wanted = AttentionRun(
        checkpoint.calls,
        watcher=watcher,
        watched=watched,
        gates=gates,
        numbers=numbers,
        sharpness=checkpoint.sharpness,
    )
    for heads in checkpoint.sets:
        _ask(wanted, heads, on_heads, sets=len(checkpoint.sets), some=some, inputs=inputs)
    on_parts = [change for change in touched if isinstance(change, PartChange)]
    with parts_changed(checkpoint, on_parts, inputs), _outputs_checked(checkpoint), reached(checkpoint, wanted) as run:
        yield run
    _refuse_unreached(checkpoint, run, changing=bool(on_heads))


def _refuse_unreached(checkpoint: Checkpoint, run: AttentionRun, *, changing: bool) -> None:
    """Raise InterventionError (if heads were to be changed) or CheckpointError if attention was not called once per
    layer."""
    if not run.asks or run.ended or (run.calls and run.calls % run.layers == 0):
        return
    kind, expected = checkpoint.family.model_type, run.layers
    ways = {"interface": "call transformers' attention interface", "outputs": "return its maps"}
    expose_attention = ways.get(reach_of(checkpoint), "compute its weights in one softmax")
    if changing or run.gates is not None:
        raise InterventionError(
            f"Heads can be changed only if every attention layer can {expose_attention}; in {checkpoint.name} (model "
            f"family {kind}), only {run.calls} of the {expected} layers do so. Choose another checkpoint."
        )
    raise CheckpointError(
        f"Maps can be read only if every attention layer can {expose_attention}; in {checkpoint.name} (model family "
        f"{kind}), only {run.calls} of the {expected} layers do so. Restore any replaced layers, shorten the input, or "
        "choose another checkpoint."
    )


def _ask(
    wanted: AttentionRun, own: HeadSet, changes: Sequence[Intervention | Knockout], *, sets: int, **batch: Sequence[Any]
) -> None:
    """Add the changes of one set of heads to the run; heads without a stack belong to the first set."""
    mine: list[Intervention | Knockout] = []
    for change in changes:
        if isinstance(change, Knockout):
            mine += [change] if own.first == 0 else []
            continue
        heads = frozenset(head for head in change.heads if head.part == own.part or (not head.part and own.first == 0))
        if heads or (sets == 1 and change.heads):
            mine.append(replace(change, heads=heads if sets > 1 else change.heads))
    refuse_across(mine, own.part)
    shape: dict[str, Any] = {"layers": own.layers, "heads": own.heads, "causal": own.causal}
    for change in mine:
        for head in getattr(change, "heads", None) or ():
            attends(head.within(own.layers, own.heads), own.attending)
    for layer, head_changes in head_changes_of(mine, **shape, some=batch["some"], inputs=batch["inputs"]).items():
        wanted.head_changes[own.call(layer)] = head_changes
    for layer, cuts in cuts_of(mine, **shape, some=batch["some"]).items():
        wanted.cuts[own.call(layer)] = cuts


def run(
    checkpoint: Checkpoint,
    encodings: Sequence[Encoding],
    observers: Sequence[Observer],
    *,
    interventions: Iterable[Change] = (),
    layers: Iterable[int] | None = None,
    batch_tokens: int = BATCH_TOKENS,
    on_batch: Callable[[list[int], Any], None] | None = None,
) -> None:
    """Run one forward pass over all inputs, and pass the attention maps of each layer to every observer.

    For long inputs without changes, `Streamed` observers get the sums that they need, so memory grows linearly with
    length. Raises CheckpointError if scores are NaN or infinite, InputError if whole maps would not fit into memory,
    and InterventionError if an intervention is undefined or an observer does not support sinks.

    Args:
        observers: may be empty if only outputs are needed.
        layers: compute only the maps of these layers; others run SDPA. None: all (of the encoder, if any).
        batch_tokens: tokens per batch; at least one input.
        on_batch: called after each batch with the indices of its inputs and the output of the model. None: passes end
            at the last observed layer.
    """
    touched, whole = tuple(interventions), on_batch is not None
    tokens = 0 if touched or whole else sum(map(len, encodings))  # outputs are compared with those of other passes
    order = batches(encodings, batch_tokens)
    flat = tokens >= FEWEST and layers is None and bool(observers) and _flattens(checkpoint)
    # long rows of tokens are as fast without packing on Intel's CPUs
    with nullcontext() if flat and is_intel() else packed(checkpoint.device, tokens):
        for groups in _flat(checkpoint, encodings, order, batch_tokens) if flat else ([batch] for batch in order):
            if len(groups) > 1:
                _forward_flat(checkpoint, encodings, observers, groups)
                continue
            (chosen,) = groups
            with torch.no_grad():
                some = [encodings[k] for k in chosen]
                output = _forward(checkpoint, some, observers, chosen, touched, layers, whole=whole)
            if on_batch is not None:
                on_batch(chosen, output)


def _forward_flat(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], observers: Sequence[Observer], groups: list[list[int]]
) -> None:
    """Run one forward pass over groups of inputs with equal length, joined into one row of tokens. Afterwards, pass the
    maps to observers group by group, as in separate passes."""
    found: list[list[Tensor]] = [[] for _ in groups]
    turns = cycle(found)

    def watch(layer: int, weights: Tensor) -> None:
        _refuse_broken(layer, weights)
        next(turns).append(weights)

    some = [encodings[k] for group in groups for k in group]
    rows = [{name: row for name, (row,) in checkpoint.inputs([encoding]).items()} for encoding in some]
    inputs = {name: torch.cat([row[name] for row in rows])[None] for name in rows[0]}
    inputs["position_ids"] = torch.cat([torch.arange(len(encoding)) for encoding in some])[None].to(checkpoint.device)
    with torch.no_grad(), lazily(), prepared(checkpoint, watcher=watch) as asked, ended_after(asked, asked.watched):
        asked.groups = [(len(group), len(encodings[group[0]])) for group in groups]
        asked.causal = checkpoint.causal
        checkpoint.model(**inputs)
    for group, maps in zip(groups, found, strict=True):
        handed = MapsOfBatch(observers, group, checkpoint.layers)
        for layer, weights in enumerate(maps):
            handed.take(layer, weights)


def _refuse_broken(layer: int, weights: Float[Tensor, "batch head query key"]) -> None:
    """Raise CheckpointError if attention weights contain NaN."""
    rows = weights[:, :, :, 0]  # a NaN score makes its whole row NaN
    for maps in () if math.isfinite(rows.sum()) else rows:
        refuse_no_number(layer, maps)


def _forward(
    checkpoint: Checkpoint,
    some: list[Encoding],
    observers: Sequence[Observer],
    inputs: list[int],
    interventions: tuple[Change, ...],
    layers: Iterable[int] | None,
    *,
    whole: bool,
) -> Any:
    def watch(layer: int, weights: Tensor) -> None:
        weights = with_sink(checkpoint, weights)
        _refuse_broken(layer, weights)
        handed.take(layer, weights)

    together = layers is None and not interventions and not checkpoint.sets[0].attending
    handed = MapsOfBatch(observers, inputs, checkpoint.layers if together else 0)
    if checkpoint.family.sinks and not all(getattr(observer, "takes_sinks", False) for observer in observers):
        refuse_sinks(checkpoint)
    streamer = None if interventions else streamer_for(checkpoint, some, observers, inputs, layers)
    inputs_of_model = checkpoint.inputs(some)
    if streamer is not None:
        with (
            prepared(checkpoint) as asked,
            lazily(),
            ended_after(asked, None if whole else streamer.layers),
        ):
            asked.streamer = streamer
            unlike_default = {"use_cache": False} if checkpoint.causal else {}
            # Model, or the part below its head, which would compute unused logits for thousands of tokens
            model = checkpoint.model
            return (model if whole else getattr(model, model.base_model_prefix, model))(
                **inputs_of_model, **unlike_default
            )
        return None
    watcher = watch if observers else None
    if watcher is not None and (length := len(some[0])) >= STREAMED_FROM:
        maps = LAYERS_MAPS * maps_bytes(len(some), checkpoint.heads, length)
        subject = f"These measures, or all of {checkpoint.family.model_type} models,"
        refuse_whole_maps(subject, length, maps, str(checkpoint.device))
    asking = prepared(checkpoint, interventions, watcher=watcher, layers=layers, some=some, inputs=inputs)
    with asking as asked, ended_after(asked, None if whole else asked.watched):
        return checkpoint.model(**inputs_of_model)
    return None


@contextmanager
def _outputs_checked(checkpoint: Checkpoint) -> Iterator[None]:
    """Raise CheckpointError if a forward pass of this thread within the context returns NaN or infinite values."""
    model = checkpoint.model

    def check(_: Any, __: tuple[Any, ...], inputs: dict[str, Any], output: Any) -> None:
        values = output[0] if isinstance(output, tuple | dict) and len(output) else output
        if isinstance(values, Tensor) and has_no_numbers(values):
            handle.remove()
            advice = "Check" if checkpoint.dtype == "float32" else "Open the checkpoint as float32, and check"
            raise CheckpointError(
                f"The outputs of {checkpoint.name} must be finite numbers; {_first_broken(model, inputs)} computes NaN "
                f"or infinite values. {advice} any values that replace outputs of ablated heads."
            )

    handle = model.register_forward_hook(of_this_thread(check), with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


def _first_broken(model: Any, inputs: dict[str, Any]) -> str:
    """Return the first layer whose output is NaN or infinite, or the head after the layers."""
    with torch.no_grad():
        states = getattr(model, "base", model)(**inputs | {"output_hidden_states": True})
    hidden = getattr(states, "hidden_states", None) or ()
    layer = next((k for k, after in enumerate(hidden) if has_no_numbers(after)), None)
    return "its last step" if layer is None else f"layer {layer}" if layer else "its embedding"


def refuse_sinks(checkpoint: Checkpoint) -> None:
    """Raise InterventionError if the model has attention sinks, so that weights over tokens do not sum to 1."""
    if checkpoint.family.sinks:
        raise InterventionError(
            f"This step needs attention weights that sum to 1 over the tokens; in {checkpoint.family.model_type} "
            "models, part of every sum goes to an attention sink that is not a token. View the maps or ablate heads "
            "instead."
        )


def capture(
    checkpoint: Checkpoint, encoding: Encoding, interventions: Iterable[Change] = (), *, part: str = ""
) -> AttentionMaps:
    """Return the attention maps of all heads for one input, float32. The last key is the attention sink, if any.

    `part` is the set of heads of an encoder-decoder ("": the first). Raises CheckpointError or InputError if there are
    no maps or rows do not sum to 1.
    """
    return captured_parts(checkpoint, encoding, interventions, parts=[checkpoint.head_set(part).part])[0]


def captured_parts(
    checkpoint: Checkpoint,
    encoding: Encoding,
    interventions: Iterable[Change] = (),
    *,
    parts: Sequence[str] | None = None,
) -> list[AttentionMaps]:
    """Return the attention maps of one input as one object for each set of heads named in `parts`; None means all sets.
    Raises the same errors as `capture`."""
    sets = [checkpoint.head_set(part) for part in parts] if parts is not None else list(checkpoint.sets)
    kept: dict[int, np.ndarray] = {}

    def keep(call: int, weights: Tensor) -> None:
        kept[call] = with_sink(checkpoint, weights)[0].float().cpu().numpy()

    calls = [call for head_set in sets for call in head_set.calls]
    asking = prepared(checkpoint, interventions, watcher=keep, layers=calls, some=[encoding], inputs=[0])
    with torch.no_grad(), asking as asked, ended_after(asked, calls):
        checkpoint.model(**checkpoint.inputs([encoding]))
    return [maps_of(checkpoint, encoding, head_set, kept) for head_set in sets]


def stacked_maps(kept: dict[int, np.ndarray], own: HeadSet) -> Float[np.ndarray, "layer ..."]:
    """Stack the maps of a set of heads by layer, given the maps of each attention call. Layers without attention get
    NaN. Raises CheckpointError if a layer has a different number of heads than the config."""
    for call in own.calls:
        if len(kept[call]) != own.heads:
            raise CheckpointError(
                f"Every layer must have the number of heads in the model config ({own.heads}); layer "
                f"{own.layer_of(call) + 1} has {len(kept[call])} heads. Load the model without pruning its heads, "
                "and ablate the heads instead."
            )
    stacked = np.full((own.layers, *kept[own.calls[0]].shape), np.nan, dtype=np.float32)
    for call in own.calls:
        stacked[own.layer_of(call)] = kept[call]
    return stacked


def maps_of(checkpoint: Checkpoint, encoding: Encoding, own: HeadSet, kept: dict[int, np.ndarray]) -> AttentionMaps:
    """Create the attention maps of a set of heads from the weights [head, query, key] of each attention call."""
    weights = stacked_maps(kept, own)
    queries = encoding.target if own.part in ("decoder", "cross") and encoding.target is not None else encoding
    sentences = tuple(sentence if sentence is not None else 0 for sentence in queries.sentence)
    segments = queries.segments if any(queries.segments) else sentences
    keys = encoding.tokens if own.part == "cross" else None
    if checkpoint.family.sinks:
        keys = (*queries.tokens, SINK)
    windows = checkpoint.windows if own.part == "" else ()
    return AttentionMaps(weights, queries.tokens, segments, own.causal, keys, own.part, windows, own.attending)


def predict(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], *, interventions: Iterable[Change] = ()
) -> Float[Tensor, "input label"]:
    """Return classifier logits in the order of the inputs. Raises CheckpointError if the model is not a classifier."""
    if checkpoint.labels is None:
        raise CheckpointError(
            f"Predictions need a classifier; {checkpoint.name} has no classification head. Open a fine-tuned "
            "checkpoint."
        )
    exact = torch.promote_types(getattr(torch, checkpoint.dtype), torch.float32)
    predictions = torch.zeros(len(encodings), len(checkpoint.labels), dtype=exact)

    def keep(inputs: list[int], output: Any) -> None:
        predictions[inputs] = output.logits.to(exact).cpu()

    run(checkpoint, encodings, [], interventions=interventions, on_batch=keep)
    return predictions


def answers(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], places: Sequence[int], changes: Iterable[Change] = ()
) -> Float[Tensor, "input choice"]:
    """Return the logits of a classifier or language model for each input. For a language model, `places` are the
    positions of its predictions. Raises CheckpointError if the model returns no logits."""
    rows: dict[int, Tensor] = {}
    run(checkpoint, encodings, [], interventions=changes,
        on_batch=lambda inputs, output: rows.update(logits_at(checkpoint, output, inputs, places)))  # fmt: skip
    return stacked(checkpoint, rows)


def logits_at(
    checkpoint: Checkpoint, output: object, inputs: Sequence[int], places: Sequence[int]
) -> dict[int, Float[Tensor, " choice"]]:
    """Return the logits of each input in a batch, as a dictionary by input index. For a language model, `places` are
    the positions of its predictions. Raises CheckpointError if the model returns no logits."""
    logits = getattr(output, "logits", None)
    if logits is None:
        raise CheckpointError(
            f"Predictions need logits; {checkpoint.name} has neither a classification head nor a "
            "language model head. Open a fine-tuned classifier or a language model."
        )
    return {k: logits[row] if logits.dim() == 2 else logits[row, places[k]] for row, k in enumerate(inputs)}


def stacked(checkpoint: Checkpoint, rows: dict[int, Float[Tensor, " choice"]]) -> Float[Tensor, "input choice"]:
    """Stack logits, given as a dictionary by input index, into one tensor in the order of the inputs."""
    exact = torch.promote_types(getattr(torch, checkpoint.dtype), torch.float32)
    return torch.stack([rows[k] for k in range(len(rows))]).to(exact).cpu()
