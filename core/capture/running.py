"""Run a model over inputs and hand every layer's maps to observers, then drop them.

Inputs are sorted by length and batched with others of exactly their length, so nothing is padded, no statistic
needs a mask, and results do not depend on the batch. Memory holds one layer's maps of one batch at a time.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from core.attention import SINK, AttentionMaps
from core.capture.blocks import PartChange, parts_changed
from core.capture.function import NAME, AttentionRun, ended_after, running
from core.capture.interventions import Intervention, Knockout, check_source, cuts_of, head_changes_of, refuse_across
from core.capture.joining import MapsOfBatch
from core.capture.masks import lazily
from core.capture.softmax import before_softmax
from core.capture.streaming import STREAMED_FROM, refuse_no_number, streamer_for
from core.errors import CheckpointError, InputError, InterventionError
from core.models.checkpoint import Checkpoint
from core.models.encoding import Encoding
from core.models.head_sets import HeadSet
from core.models.memory import maps_bytes, refuse_whole_maps

BATCH_TOKENS = 4096
LAYERS_MAPS = 3  # of a layer that are held at once: scores, weights, and what a measure makes of them
Change = Intervention | Knockout | PartChange


@runtime_checkable
class Observer(Protocol):
    """What reduces maps as they come.

    One with an attribute `takes_sinks` that is True also takes maps whose last key column is a sink; one that is
    `core.capture.joining.Joining` gets all layers of short inputs at once.
    """

    def update(self, layer: int, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        """Take one layer's maps of one batch; they must not be kept or written to.

        Args:
            layer: of its set of heads, from 0.
            weights: rows sum to 1; the last key column is a sink only where `takes_sinks`.
            inputs: which encodings the rows of the batch are, by their places in the pass.
        """


def batches(encodings: Sequence[Encoding], batch_tokens: int = BATCH_TOKENS) -> Iterator[list[int]]:
    """Indices of inputs of equal lengths, longest first, at most `batch_tokens` pieces together."""
    order = sorted(range(len(encodings)), key=lambda k: ([-length for length in encodings[k].lengths], k))
    start = 0
    while start < len(order):
        lengths = encodings[order[start]].lengths
        most = max(1, batch_tokens // max(1, *lengths))
        stop = start
        while stop < len(order) and stop - start < most and encodings[order[stop]].lengths == lengths:
            stop += 1
        yield order[start:stop]
        start = stop


def model_inputs(checkpoint: Checkpoint, encodings: Sequence[Encoding]) -> dict[str, Int[Tensor, "batch _"]]:
    """What a model's forward takes.

    Args:
        checkpoint: whose model.
        encodings: inputs of one length, and targets of one length where there are any.

    Returns:
        By the forward's argument, on the checkpoint's device.
    """
    tensors = {"input_ids": torch.tensor([encoding.ids for encoding in encodings], device=checkpoint.device)}
    tensors["attention_mask"] = torch.ones_like(tensors["input_ids"])
    if "token_type_ids" in checkpoint.tokenizer.model_input_names and _takes_segments(checkpoint):
        tensors["token_type_ids"] = torch.tensor(
            [encoding.segments for encoding in encodings], device=checkpoint.device
        )
    targets = [encoding.target.ids for encoding in encodings if encoding.target is not None]
    if targets and checkpoint.labels is None:  # a classifier gives its decoder the input itself
        tensors["decoder_input_ids"] = torch.tensor(targets, device=checkpoint.device)
    return tensors


def _takes_segments(checkpoint: Checkpoint) -> bool:
    return bool(getattr(checkpoint.model.config, "type_vocab_size", 2))


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
    """The attention function is set up for this checkpoint until the block ends; then the model is as it was.

    Args:
        checkpoint: whose model runs in the block.
        interventions: what is changed.
        watcher: called with each watched call of attention (a layer's number where there is one set of heads) and its
            weights.
        layers: which calls are watched; None: all layers.
        gates: as of `AttentionRun`. *Shape:* (layer, head), (layer, batch, head, query), or a list's (batch, head,
            query).
        some: the batch that will run, for interventions that depend on the input.
        inputs: its inputs' numbers in the run.

    Yields:
        What the attention function obeys, to be changed before the forward.

    Raises:
        InterventionError: the family cannot be intervened on, or an intervention is undefined here.
    """
    touched = list(interventions)
    if checkpoint.family.interceptable and checkpoint.model.config._attn_implementation != NAME:
        checkpoint.model.set_attn_implementation(NAME)  # once; without a run it is plain SDPA
    on_heads = [change for change in touched if not isinstance(change, PartChange)]
    for change in on_heads:
        check_source(getattr(change, "source", None), checkpoint.weights_hash)
    watched = frozenset(range(checkpoint.layers) if layers is None else layers) if watcher else frozenset()
    wanted = AttentionRun(checkpoint.calls, watcher=watcher, watched=watched, gates=gates)
    for heads in checkpoint.sets:
        _ask(wanted, heads, on_heads, sets=len(checkpoint.sets), some=some, inputs=inputs)
    on_parts = [change for change in touched if isinstance(change, PartChange)]
    reached = (
        running(wanted) if checkpoint.family.interceptable else before_softmax(wanted, checkpoint.family.model_type)
    )
    with parts_changed(checkpoint, on_parts, inputs), reached as run:
        yield run


def _ask(
    wanted: AttentionRun, own: HeadSet, changes: Sequence[Intervention | Knockout], *, sets: int, **batch: Sequence[Any]
) -> None:
    """Put what is asked of one set of heads where its layers are called; heads without a part are the first set's."""
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
    """One forward pass over all inputs; every observer sees each layer's maps.

    Of long inputs observers that are `Streamed` are handed what they need instead, where all of them are and nothing is
    changed: the same numbers, in memory that grows with the length.

    Args:
        checkpoint: any whose maps can be had.
        encodings: inputs of any lengths.
        observers: what is handed the maps; none where only outputs are wanted.
        interventions: what is changed.
        layers: only these are computed as maps; the others run SDPA. None: all.
        batch_tokens: tokens of a batch; one input at least.
        on_batch: called after each batch with its inputs' numbers and the model's output (for logits, and for
            progress). None: a pass ends at the last layer that is observed.

    Raises:
        CheckpointError: scores are no numbers.
        InputError: whole maps of a long input are needed and would not fit into memory.
        InterventionError: an intervention is undefined here, or an observer does not take the family's sinks.
    """
    touched = tuple(interventions)
    for chosen in batches(encodings, batch_tokens):
        with torch.no_grad():
            output = _forward(
                checkpoint,
                [encodings[k] for k in chosen],
                observers,
                chosen,
                touched,
                layers,
                whole=on_batch is not None,
            )
        if on_batch is not None:
            on_batch(chosen, output)


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
        rows = weights[:, :, :, 0]  # a score that is no number makes its whole row so
        for maps in () if math.isfinite(rows.sum()) else rows:
            refuse_no_number(layer, maps)
        handed.take(layer, weights)

    handed = MapsOfBatch(observers, inputs, checkpoint.layers if layers is None and not interventions else 0)
    if checkpoint.family.sinks and not all(getattr(observer, "takes_sinks", False) for observer in observers):
        refuse_sinks(checkpoint)
    streamer = None if interventions else streamer_for(checkpoint, some, observers, inputs, layers)
    inputs_of_model = model_inputs(checkpoint, some)
    if streamer is not None:
        with (
            prepared(checkpoint) as asked,
            lazily(),
            ended_after(asked, None if whole else streamer.layers),
        ):
            asked.streamer = streamer
            return _model(checkpoint, whole=whole)(**inputs_of_model, **_plain(checkpoint))
        return None
    watcher = watch if observers else None
    if watcher is not None and (length := len(some[0])) >= STREAMED_FROM:
        maps = LAYERS_MAPS * maps_bytes(len(some), checkpoint.heads, length)
        refuse_whole_maps("These measures, or this family's,", length, maps, str(checkpoint.device))
    asking = prepared(checkpoint, interventions, watcher=watcher, layers=layers, some=some, inputs=inputs)
    with asking as asked, ended_after(asked, None if whole else asked.watched):
        return checkpoint.model(**inputs_of_model)
    return None


def _model(checkpoint: Checkpoint, *, whole: bool) -> Any:
    """The model, or what of it is below its head, which would turn thousands of tokens into logits nobody reads."""
    model = checkpoint.model
    return model if whole else getattr(model, model.base_model_prefix, model)


def _plain(checkpoint: Checkpoint) -> dict[str, bool]:
    return {"use_cache": False} if checkpoint.causal else {}


def refuse_sinks(checkpoint: Checkpoint) -> None:
    """Raises InterventionError where rows give a part to a sink, for statistics of weights among tokens."""
    if checkpoint.family.sinks:
        raise InterventionError(
            f"This statistic is of rows that are shared among tokens; {checkpoint.family.model_type} gives a part "
            "of every row to a sink, which is none: look at its maps, or change its heads."
        )


def capture(
    checkpoint: Checkpoint, encoding: Encoding, interventions: Iterable[Change] = (), *, part: str = ""
) -> AttentionMaps:
    """All maps of one input, as float32; a sink is the last key.

    Args:
        checkpoint: any whose maps can be had.
        encoding: the input.
        interventions: what is changed.
        part: which set of heads of an encoder-decoder; "" is the first.

    Returns:
        The maps of that set.

    Raises:
        CheckpointError, InputError: there are no maps, or their rows do not sum to 1 (AttentionMaps).
    """
    return captured_parts(checkpoint, encoding, interventions, parts=[checkpoint.head_set(part).part])[0]


def captured_parts(
    checkpoint: Checkpoint,
    encoding: Encoding,
    interventions: Iterable[Change] = (),
    *,
    parts: Sequence[str] | None = None,
) -> list[AttentionMaps]:
    """The maps of these sets of heads (None: of all) on one input, from one pass. Raises as `capture` does."""
    sets = [checkpoint.head_set(part) for part in parts] if parts is not None else list(checkpoint.sets)
    kept: dict[int, np.ndarray] = {}

    def keep(call: int, weights: Tensor) -> None:
        kept[call] = weights[0].float().cpu().numpy()

    calls = [call for head_set in sets for call in head_set.calls]
    asking = prepared(checkpoint, interventions, watcher=keep, layers=calls, some=[encoding], inputs=[0])
    with torch.no_grad(), asking as asked, ended_after(asked, calls):
        checkpoint.model(**model_inputs(checkpoint, [encoding]))
    if not all(any(call in kept for call in head_set.calls) for head_set in sets):
        raise InputError("The model computed no attention maps; it must be a Transformer with self-attention.")
    return [_maps(checkpoint, encoding, head_set, _stacked(kept, head_set)) for head_set in sets]


def _stacked(kept: dict[int, np.ndarray], own: HeadSet) -> np.ndarray:
    """The layers that were seen, in order; a layer that somebody replaced may not be among them."""
    return np.stack([kept[call] for call in own.calls if call in kept])


def _maps(checkpoint: Checkpoint, encoding: Encoding, own: HeadSet, weights: np.ndarray) -> AttentionMaps:
    queries = encoding.target if own.part in ("decoder", "cross") and encoding.target is not None else encoding
    sentences = tuple(sentence if sentence is not None else 0 for sentence in queries.sentence)
    segments = queries.segments if any(queries.segments) else sentences
    keys = encoding.tokens if own.part == "cross" else None
    if checkpoint.family.sinks:
        keys = (*queries.tokens, SINK)
    windows = checkpoint.windows if own.part == "" else ()
    return AttentionMaps(weights, queries.tokens, segments, own.causal, keys, own.part, windows)


def predict(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], *, interventions: Iterable[Change] = ()
) -> Float[Tensor, "input label"]:
    """Logits of a classifier.

    Args:
        checkpoint: a classifier.
        encodings: the inputs.
        interventions: what is changed.

    Returns:
        In the order of the inputs, on the CPU; float32, or float64 of a float64 model.

    Raises:
        CheckpointError: there is no classifier.
    """
    if checkpoint.labels is None:
        raise CheckpointError(
            f"Predictions need a classifier; {checkpoint.name} has no classification head: open a "
            "fine-tuned checkpoint."
        )
    exact = torch.promote_types(getattr(torch, checkpoint.dtype), torch.float32)
    predictions = torch.zeros(len(encodings), len(checkpoint.labels), dtype=exact)

    def keep(inputs: list[int], output: Any) -> None:
        predictions[inputs] = output.logits.to(exact).cpu()

    run(checkpoint, encodings, [], interventions=interventions, on_batch=keep)
    return predictions
