"""Comparison of one input with and without an intervention: predictions, and the change of each attention map."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..attention import AttentionMaps
from ..errors import InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .running import Change, Observer, maps_of, run

SHOWN_WORDS = 10


@dataclass(frozen=True)
class OutputChange:
    """The logit and probability of one class or token before and after changing the model or input.

    Attributes:
        logit_before, logit_after: NaN if the run predicts nothing.
        before, after: probabilities, 0 to 1; 0 for regression scores.
    """

    name: str
    logit_before: float
    logit_after: float
    before: float
    after: float


@dataclass(frozen=True)
class Comparison:
    """The attention maps and predictions of a model for one input, before and after changing the model.

    Attributes:
        moved: total variation distance, half the sum over keys of |after - before|, mean over queries, 0 to 1.
        choices: every class, or the most likely tokens of either run; empty if nothing is predicted.
        place: position of the predicted token; None for classes.
    """

    maps_before: AttentionMaps
    maps_after: AttentionMaps
    moved: Float[np.ndarray, "layer head"]
    choices: tuple[OutputChange, ...]
    place: int | None = None


def compare(checkpoint: Checkpoint, encoding: Encoding, interventions: Sequence[Change]) -> Comparison:
    """Run one input with and without interventions, and compare the attention maps and predictions.

    Classifiers predict classes, causal language models the next token, and masked ones the token at the first mask
    (without a mask, nothing). Raises InputError if rows of maps do not sum to 1, and the errors of `run`.
    """
    maps_before, logits_before = _observed(checkpoint, encoding, ())
    maps_after, logits_after = _observed(checkpoint, encoding, tuple(interventions))
    moved = np.abs(maps_after.weights - maps_before.weights).sum(-1).mean(-1) / 2
    position = _place(checkpoint, encoding, logits_before)
    if logits_before is None or logits_after is None or (position is None and logits_before.dim() > 1):
        return Comparison(maps_before, maps_after, moved, ())
    if position is not None:
        logits_before, logits_after = logits_before[position], logits_after[position]
    return Comparison(maps_before, maps_after, moved, _choices(checkpoint, logits_before, logits_after), position)


ChangedInput = tuple[Encoding, Sequence[Change]]


def predictions(checkpoint: Checkpoint, before: ChangedInput, after: ChangedInput) -> tuple[OutputChange, ...]:
    """Return the logits of every class, or of the most likely tokens, before and after a change. The result is empty if
    the model predicts nothing. If only one input has a mask token, the logits of the other input are NaN."""
    both: list[Tensor | None] = []
    for encoding, changes in (before, after):
        logits = _logits(checkpoint, encoding, changes)
        position = _place(checkpoint, encoding, logits)
        has_answer = logits is not None and (position is not None or checkpoint.labels is not None)
        both.append((logits if position is None else logits[position]) if has_answer and logits is not None else None)
    there = [side for side in both if side is not None]
    if not there:
        return ()
    first, second = (torch.full_like(there[0], float("nan")) if side is None else side for side in both)
    return _choices(checkpoint, first, second)


def answer_positions(checkpoint: Checkpoint, first: Encoding, second: Encoding) -> tuple[int, int] | None:
    """Return the position of the prediction in each of two inputs; None for classifiers. This is the position of the
    mask or, in a causal model, of the last token. Raises InputError if a mask is missing."""
    if checkpoint.labels is not None:
        return None
    places = [_mask_or_end(checkpoint, encoding) for encoding in (first, second)]
    if places[0] is None or places[1] is None:
        raise InputError(
            "Both inputs of a masked language model must contain a mask token; at least one does not. Type "
            f"{checkpoint.tokenizer.mask_token or 'a mask'} into both inputs, or choose a fine-tuned "
            "classifier."
        )
    return places[0], places[1]


def _logits(
    checkpoint: Checkpoint, encoding: Encoding, changes: Sequence[Change], observers: Sequence[Observer] = ()
) -> Tensor | None:
    outputs: list[Tensor] = []

    def keep(inputs: list[int], output: object) -> None:
        logits = getattr(output, "logits", None)
        if logits is not None:
            outputs.append(logits[0].float().cpu())

    run(checkpoint, [encoding], observers, interventions=changes, on_batch=keep)
    return outputs[0] if outputs else None


def _observed(
    checkpoint: Checkpoint, encoding: Encoding, interventions: tuple[Change, ...]
) -> tuple[AttentionMaps, Tensor | None]:
    kept: dict[int, np.ndarray] = {}

    class Keep:
        def update(self, layer: int, weights: Tensor, inputs: list[int]) -> None:
            kept[layer] = weights[0].float().cpu().numpy()

    logits = _logits(checkpoint, encoding, interventions, [Keep()])
    return maps_of(checkpoint, encoding, checkpoint.sets[0], kept), logits


def _place(checkpoint: Checkpoint, encoding: Encoding, logits: Tensor | None) -> int | None:
    if logits is None or checkpoint.labels is not None:
        return None
    return _mask_or_end(checkpoint, encoding)


def _mask_or_end(checkpoint: Checkpoint, encoding: Encoding) -> int | None:
    if checkpoint.causal:
        return len(encoding) - 1
    masked = [k for k, token_id in enumerate(encoding.ids) if token_id == checkpoint.tokenizer.mask_token_id]
    return masked[0] if masked else None


def predicted(choices: Sequence[OutputChange]) -> tuple[OutputChange, OutputChange] | None:
    """Return the most likely class or token before and after a change; None if the model predicts scores, or if either
    prediction is missing."""
    first = [choice for choice in choices if math.isfinite(choice.logit_before)]
    then = [choice for choice in choices if math.isfinite(choice.logit_after)]
    if len(choices) < 2 or not first or not then:
        return None
    return max(first, key=lambda choice: choice.logit_before), max(then, key=lambda choice: choice.logit_after)


def _choices(
    checkpoint: Checkpoint, before: Float[Tensor, " choice"], after: Float[Tensor, " choice"]
) -> tuple[OutputChange, ...]:
    """Return every class, or the most likely tokens of either run, sorted by probability before the change."""
    names = checkpoint.labels
    single = len(before) == 1
    shares = (before * 0, after * 0) if single else (torch.softmax(before, -1), torch.softmax(after, -1))
    order = list(range(len(before)))
    if names is None:
        likely = torch.fmax(*shares)
        order = likely.topk(min(SHOWN_WORDS, len(likely))).indices.tolist()
        ranked = torch.where(shares[0].isnan(), shares[1], shares[0])
        order.sort(key=lambda k: -float(ranked[k]))
    return tuple(
        OutputChange(
            name=names[k] if names is not None else checkpoint.tokenizer.decode([k]).strip() or f"[{k}]",
            logit_before=float(before[k]),
            logit_after=float(after[k]),
            before=float(shares[0][k]),
            after=float(shares[1][k]),
        )
        for k in order
    )
