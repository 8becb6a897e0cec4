"""Run a model over inputs and hand every layer's maps to observers, then drop them.

Inputs are sorted by length and batched with others of exactly their length, so nothing is padded, no statistic
needs a mask, and results do not depend on the batch. Memory holds one layer's maps of one batch at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from core.attention import AttentionMaps
from core.capture.blocks import PartChange, parts_changed
from core.capture.function import NAME, Run, running
from core.capture.interventions import Intervention, Knockout, check_source, cuts_of, touches_of
from core.errors import CheckpointError, InputError, InterventionError
from core.models.checkpoint import Checkpoint
from core.models.encoding import Encoding

BATCH_TOKENS = 4096
Change = Intervention | Knockout | PartChange


@runtime_checkable
class Observer(Protocol):
    """Reduces maps as they come. `inputs`: which encodings the rows of the batch are."""

    def update(self, layer: int, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        """Take one layer's maps of one batch; they must not be kept or written to."""


def batches(encodings: Sequence[Encoding], batch_tokens: int = BATCH_TOKENS) -> Iterator[list[int]]:
    """Indices of inputs of equal length, longest first, at most `batch_tokens` pieces together."""
    order = sorted(range(len(encodings)), key=lambda k: (-len(encodings[k]), k))
    start = 0
    while start < len(order):
        length = len(encodings[order[start]])
        most = max(1, batch_tokens // max(1, length))
        stop = start
        while stop < len(order) and stop - start < most and len(encodings[order[stop]]) == length:
            stop += 1
        yield order[start:stop]
        start = stop


def model_inputs(checkpoint: Checkpoint, encodings: Sequence[Encoding]) -> dict[str, Tensor]:
    """Tensors [batch, position] for inputs of equal length."""
    tensors = {"input_ids": torch.tensor([one.ids for one in encodings], device=checkpoint.device)}
    tensors["attention_mask"] = torch.ones_like(tensors["input_ids"])
    if "token_type_ids" in checkpoint.tokenizer.model_input_names and _takes_segments(checkpoint):
        tensors["token_type_ids"] = torch.tensor([one.segments for one in encodings], device=checkpoint.device)
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
    gates: Tensor | None = None,
    some: Sequence[Encoding] = (),
    inputs: Sequence[int] = (),
) -> Iterator[Run]:
    """The attention function set up for this checkpoint: watched layers, interventions, gates.

    some, inputs: the batch that will run and its numbers, for interventions that depend on the input. On exit the
    model is as it was. Raises InterventionError where the family cannot be intervened on.
    """
    touched = list(interventions)
    if not checkpoint.family.interceptable:
        if touched or gates is not None:
            raise InterventionError(
                f"Heads can be changed only where attention goes through transformers' interface; "
                f"{checkpoint.family.model_type} does not: its maps can be looked at, not changed."
            )
        yield Run(layers=checkpoint.layers)
        return
    if checkpoint.family.sinks and watcher:
        raise InterventionError(
            f"Maps show how a row's weight is shared among tokens; {checkpoint.family.model_type} gives a part of "
            "every row to a sink, which is none: its heads can be changed, not looked at."
        )
    if checkpoint.model.config._attn_implementation != NAME:  # once; without a run it is plain SDPA
        checkpoint.model.set_attn_implementation(NAME)
    watched = frozenset(range(checkpoint.layers) if layers is None else layers) if watcher else frozenset()
    on_heads = [one for one in touched if not isinstance(one, PartChange)]
    deep, heads, causal = checkpoint.layers, checkpoint.heads, checkpoint.causal
    for one in on_heads:
        check_source(getattr(one, "source", None), checkpoint.weights_hash)
    touches = touches_of(on_heads, layers=deep, heads=heads, causal=causal, some=some, inputs=inputs)
    cuts = cuts_of(on_heads, layers=deep, heads=heads, causal=causal, some=some)
    wanted = Run(checkpoint.layers, watcher=watcher, watched=watched, touches=touches, cuts=cuts, gates=gates)
    on_parts = [one for one in touched if isinstance(one, PartChange)]
    with parts_changed(checkpoint, on_parts, inputs), running(wanted) as run:
        yield run


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
    """One forward pass over all inputs; every observer sees each layer's maps [batch, head, query, key].

    layers: only these are computed as maps; the others run SDPA. on_batch: called after each batch with its inputs
    and the model's output (for logits, and for progress).
    """
    touched = tuple(interventions)
    for chosen in batches(encodings, batch_tokens):
        with torch.no_grad():
            output = _forward(checkpoint, [encodings[k] for k in chosen], observers, chosen, touched, layers)
        if on_batch is not None:
            on_batch(chosen, output)


def _forward(
    checkpoint: Checkpoint,
    some: list[Encoding],
    observers: Sequence[Observer],
    inputs: list[int],
    interventions: tuple[Change, ...],
    layers: Iterable[int] | None,
) -> Any:
    def watch(layer: int, weights: Tensor) -> None:
        for observer in observers:
            observer.update(layer, weights, inputs)

    tensors = model_inputs(checkpoint, some)
    watcher = watch if observers else None
    with prepared(checkpoint, interventions, watcher=watcher, layers=layers, some=some, inputs=inputs):
        if checkpoint.family.interceptable or not observers:
            return checkpoint.model(**tensors)
        output = checkpoint.model(**tensors, output_attentions=True)
    for layer, weights in enumerate(output.attentions):
        watch(layer, weights)
    return output


def capture(checkpoint: Checkpoint, encoding: Encoding, interventions: Iterable[Change] = ()) -> AttentionMaps:
    """All maps of one input, as float32 numpy [layer, head, query, key].

    Raises CheckpointError or InputError (from AttentionMaps) when rows do not sum to 1.
    """
    kept: list[np.ndarray] = []

    class Keep:
        def update(self, layer: int, weights: Tensor, inputs: list[int]) -> None:
            kept.append(weights[0].float().cpu().numpy())

    run(checkpoint, [encoding], [Keep()], interventions=interventions)
    if not kept:
        raise InputError("The model computed no attention maps; it must be a Transformer with self-attention.")
    sentences = tuple(one if one is not None else 0 for one in encoding.sentence)
    segments = encoding.segments if any(encoding.segments) else sentences
    return AttentionMaps(np.stack(kept), encoding.tokens, segments, causal=checkpoint.causal)


def predict(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], *, interventions: Iterable[Change] = ()
) -> Float[Tensor, "input label"]:
    """Logits of a classifier in the order of the inputs, float32 (float64 of a float64 model). Raises CheckpointError
    without a classifier."""
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


def answers(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], places: Sequence[int], changes: Iterable[Change] = ()
) -> Float[Tensor, "input choice"]:
    """Logits of a classifier, or of a language model at one position of each input. Raises CheckpointError where the
    checkpoint predicts neither."""
    rows: dict[int, Tensor] = {}
    run(checkpoint, encodings, [], interventions=changes,
        on_batch=lambda inputs, output: rows.update(logits_at(checkpoint, output, inputs, places)))  # fmt: skip
    return stacked(checkpoint, rows)


def logits_at(
    checkpoint: Checkpoint, output: object, inputs: Sequence[int], places: Sequence[int]
) -> dict[int, Float[Tensor, " choice"]]:
    """The logits of each input of a batch, by its number: a classifier's, or a language model's at its place."""
    logits = getattr(output, "logits", None)
    if logits is None:
        raise CheckpointError(
            f"Patching compares logits; {checkpoint.name} has no head that gives any: open a fine-tuned "
            "classifier or a language model."
        )
    return {k: logits[row] if logits.dim() == 2 else logits[row, places[k]] for row, k in enumerate(inputs)}


def stacked(checkpoint: Checkpoint, rows: dict[int, Float[Tensor, " choice"]]) -> Float[Tensor, "input choice"]:
    """Logits by input's number, in order; float32, or float64 of a float64 model."""
    exact = torch.promote_types(getattr(torch, checkpoint.dtype), torch.float32)
    return torch.stack([rows[k] for k in range(len(rows))]).to(exact).cpu()
