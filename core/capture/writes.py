"""What heads write: their OV circuits from the weights, and what they add to the predicted tokens on text.

From weights, row s of E W_V W_O U has the effect of attention to token s on the logit of every token (Elhage et al.
2021). E is normalised by the first norm of the model, U has the scale of the last norm, and biases, feed-forward
sublayers and the transformation of a prediction head are left out. On text, `Carrying` follows what each head adds from
one token to the last hidden state, with the scale of every norm held, and the derivative of the prediction head in that
direction turns it into logits.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

from ..attention import Head, all_heads
from ..errors import InputError, InterventionError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .contributions import EXACT_DTYPES, TOLERANCE, Carrying, _tables, carry, sum_of
from .contributors import Contributor
from .projections import output_projections, value_weights
from .reach import is_interceptable
from .running import BATCH_TOKENS, batches, prepared
from .sums import Sum

LANGUAGE, PREDICTION, EMBEDDING = "language-model head", "prediction head", "embedding matrix"


def read_by(checkpoint: Checkpoint) -> str:
    """Return the name of the module that converts hidden states to logits: language-model head, prediction head or
    embedding matrix."""
    if checkpoint.model.get_output_embeddings() is None:
        return EMBEDDING
    return LANGUAGE if checkpoint.causal else PREDICTION


# ---------------------------------------------------------------- from weights


def circuit_rows(
    checkpoint: Checkpoint, sources: Sequence[int]
) -> Iterator[tuple[Head, Float[Tensor, "source token"]]]:
    """Yield each head with a matrix [source, token]: how much attending to a source token changes the logit of each
    token in the vocabulary. Raises InputError if this is impossible for the model."""
    model = checkpoint.model
    base = getattr(model, "base_model", model)
    embedding = model.get_input_embeddings().weight.detach().float()
    out = model.get_output_embeddings()
    unembedding = embedding if out is None else out.weight.detach().float()
    norms = [
        module
        for name, module in base.named_modules()
        if "Norm" in type(module).__name__ and not re.search(r"(^|[._])[qkv]_?(layer)?_?norm$", name)
    ]
    projections, values = output_projections(checkpoint), value_weights(checkpoint)
    hidden = projections[0].weight.shape[-1]
    if len(values) != len(projections) or {embedding.shape[1], unembedding.shape[1]} != {hidden}:
        raise InputError(
            "Circuits from embedding to unembedding need embeddings as wide as the hidden states and a value "
            f"projection in every layer; {checkpoint.family.model_type} models do not have both. Choose a checkpoint "
            "like BERT or GPT-2."
        )
    some = embedding[list(sources)]
    with torch.no_grad():
        some = norms[0](some.to(model.dtype)).float() if norms else some
    read = scale_of(norms[-1], hidden)[:, None] * unembedding.T if norms else unembedding.T
    for number, layer, own in zip(checkpoint.sets[0].numbers, projections, values, strict=True):
        for head in range(checkpoint.heads):
            inner = some @ torch.from_numpy(own[head]).to(some)
            yield Head(number, head), inner @ (layer.weight[head].float() @ read)


@torch.no_grad()
def scale_of(norm: nn.Module, width: int) -> Float[Tensor, " hidden"]:
    """Return the factors by which a normalisation layer multiplies its normalised input: its weight, or 1 + weight in
    some families."""
    normalised = torch.ones(width)
    normalised[1::2] = -1
    if width % 2:
        normalised[-3:] = 2**0.5 * torch.tensor([0.5, 0.5, -1.0])
    dtype = next((weight.dtype for weight in norm.parameters()), torch.float32)
    shift = getattr(norm, "bias", None)
    return (norm(normalised.to(dtype)).float() - (0 if shift is None else shift.float())) / normalised


# ---------------------------------------------------------------- on text


@dataclass(frozen=True)
class TextWrites:
    """What each head adds to the logits at one position of an input from the token to which it attends most.

    Attributes:
        source: index of this token. *Shape:* (layer, head); -1 without attention.
        weight: attention to it.
        logits: what the head adds from it, less the mean over the vocabulary.
        removed: the same by removing the contribution from the last hidden state.
    """

    source: Int[np.ndarray, "layer head"]
    weight: Float[np.ndarray, "layer head"]
    logits: Float[Tensor, "layer_head token"]
    removed: Float[Tensor, "layer_head token"]


def text_writes(
    checkpoint: Checkpoint,
    encodings: Sequence[Encoding],
    places: Sequence[int],
    take: Callable[[int, TextWrites], None],
) -> None:
    """Compute what each head adds to the logits at one position of each input, and call `take(index, result)` for each
    input.

    The heads of `logits` are those of `checkpoint`, layer by layer. Raises InterventionError if the contributions of
    this family or number format do not add up.
    """
    if not is_interceptable(checkpoint):
        raise InterventionError(
            "The contribution of a head to the logits can be computed only in models that use the attention interface "
            f"of transformers; {checkpoint.family.model_type} models do not use it. Choose another checkpoint."
        )
    if checkpoint.dtype not in EXACT_DTYPES:
        raise InterventionError(
            "The contribution of a head to the logits can be computed only in float32 or float64; "
            f"{checkpoint.name} has been opened in {checkpoint.dtype}. Open it in float32."
        )
    heads = all_heads(checkpoint.layers, checkpoint.heads, checkpoint.attending)
    base = getattr(checkpoint.model, "base_model", checkpoint.model)
    for inputs in batches(encodings, BATCH_TOKENS // 32):
        some, at = [encodings[k] for k in inputs], [places[k] for k in inputs]
        reading = _Sources(checkpoint, at)
        with torch.no_grad(), ExitStack() as stack:
            run = stack.enter_context(prepared(checkpoint, some=some, inputs=inputs, watcher=reading.watch))
            run.mixer = reading.split
            stack.enter_context(reading.carrying)
            hidden = base(**checkpoint.inputs(some)).last_hidden_state
            carried = sum_of(hidden)
            whole = None if carried is None else carried.parts.detach()
        most = TOLERANCE * float(hidden.abs().max())
        if carried is None or whole is None or not torch.allclose(whole.sum(0), hidden, atol=most):
            raise InterventionError(
                "The contributions of all heads and sublayers must add up to the last hidden state; in "
                f"{checkpoint.family.model_type} models, their sum differs from this state. Choose a checkpoint of "
                "another family, such as BERT, RoBERTa, GPT-2 or LLaMA."
            )
        named = {(part.layer, part.head): k for k, part in enumerate(carried.components) if part.kind == "head"}
        for row, number in enumerate(inputs):
            parts = whole[[named[head.layer, head.head] for head in heads], row, at[row]]
            state = hidden[row, at[row]].detach()
            with torch.no_grad():
                at_states = (state.repeat(len(parts), 1),)
                logits = torch.func.jvp(lambda some: _logits(checkpoint, some), at_states, (parts,))[1]
                removed = _logits(checkpoint, state[None]) - _logits(checkpoint, state - parts)
            centred = [one - one.mean(-1, keepdim=True) for one in (logits, removed)]
            take(number, TextWrites(reading.source[:, :, row], reading.weight[:, :, row], *centred))


class _Sources:
    """Marks, in each layer, what each head adds at one position from the token that it attends to most."""

    def __init__(self, checkpoint: Checkpoint, at: Sequence[int]) -> None:
        self.checkpoint, self.at = checkpoint, list(at)
        self.carrying = Carrying(_tables(checkpoint))
        shape = (checkpoint.layers, checkpoint.heads, len(at))
        self.source, self.weight = np.full(shape, -1), np.full(shape, np.nan)
        self._weights = torch.empty(0)  # of the layer that runs

    def watch(self, layer: int, weights: Tensor) -> None:
        self._weights = weights

    def split(self, layer: int, output: Tensor, values: Tensor, _: Tensor | None) -> Tensor:
        """Split each head output at the observed position into the part from the most attended token and the rest."""
        with torch._C.DisableTorchFunction():
            weights, rows = self._weights[..., : values.shape[2]], torch.arange(len(self.at))
            weight, source = weights[rows, :, torch.tensor(self.at)].max(-1)
            self.source[layer], self.weight[layer] = source.T.numpy(), weight.T.numpy()
            plain, heads = output.detach(), output.shape[2]
            parts = plain.new_zeros(heads + 1, *plain.shape)
            for head in range(heads):
                own = weight[:, head, None].to(values.dtype) * values[rows, head, source[:, head]]
                parts[head, rows, self.at, head] = own
            parts[heads] = plain - parts[:heads].sum(0)
            names = (*(Contributor("head", layer, head) for head in range(heads)), Contributor("attention", layer))
            self.carrying.writer = Contributor("feed-forward", layer)
            return carry(output, Sum(names, lambda: parts, "heads"))


def _logits(checkpoint: Checkpoint, states: Float[Tensor, "state hidden"]) -> Float[Tensor, "state token"]:
    """Return the logits that the head of the model makes of last hidden states."""
    model = checkpoint.model
    if model.get_output_embeddings() is None:
        return states @ model.get_input_embeddings().weight.detach().T
    base: nn.Module = model.base_model
    made = BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=states[:, None])
    usual = base.forward

    def instead(*_: Any, **__: Any) -> Any:
        return made

    base.forward = instead
    try:
        return model(input_ids=torch.zeros(len(states), 1, dtype=torch.long)).logits[:, 0]
    finally:
        base.forward = usual


def masked(checkpoint: Checkpoint, encoding: Encoding, place: int) -> Encoding:
    """Return the input with a mask token at a position. Return the input unchanged if the model is causal or has no
    mask token."""
    mask = getattr(checkpoint.tokenizer, "mask_token_id", None)
    if mask is None or checkpoint.causal:
        return encoding
    ids, tokens = list(encoding.ids), list(encoding.tokens)
    ids[place], tokens[place] = mask, checkpoint.tokenizer.mask_token
    return replace(encoding, ids=type(encoding.ids)(ids), tokens=type(encoding.tokens)(tokens))
