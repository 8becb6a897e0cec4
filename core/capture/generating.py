"""Generation token by token, with the attention rows of each new token, and greedy translation."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..attention import SINK, AttentionMaps
from ..errors import CheckpointError, InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding, spelled
from .running import maps_of, prepared, stacked_maps

MOST = 512  # new tokens of one answer
WHOLE = 256  # tokens of a prompt whose maps are kept whole
LONG_ROWS = 64  # queries at a time where SDPA cannot compute a long prompt
LIKELY = 5  # tokens listed beside the chosen one


@dataclass(frozen=True)
class GenerationStep:
    """One token that a model generated, with its attention rows.

    Attributes:
        probability: of this token when it was chosen, after the temperature.
        likely: the LIKELY most probable tokens with their probabilities, sorted.
        rows: attention of this token to earlier tokens, itself, and a sink. 0 if a window hides a key; without keys if
            the token is not processed.
        ends: whether it is an end-of-text token, which is not processed.
    """

    piece: int
    token: str
    probability: float
    likely: tuple[tuple[str, float], ...]
    rows: Float[np.ndarray, "layer head key"]
    ends: bool = False


@dataclass(frozen=True)
class Generated:
    """A prompt, its attention maps (None for more than WHOLE tokens), and the generated text."""

    prompt: Encoding
    maps: AttentionMaps | None
    steps: tuple[GenerationStep, ...]

    @property
    def size(self) -> int:
        """Return how many bytes of memory the stored attention maps and rows take."""
        whole = 0 if self.maps is None else self.maps.weights.nbytes
        return whole + sum(step.rows.nbytes for step in self.steps)

    def grown(self, steps: int) -> AttentionMaps:
        """Return the attention maps over the prompt and the first `steps` new tokens.

        If the prompt has no maps, return the rows of new tokens over the last tokens, with all earlier tokens as one
        key. Raises InputError if there are no new tokens either.
        """
        taken = [step for step in self.steps[:steps] if not step.ends]
        if self.maps is None:
            return self._recent(taken)
        start, length = len(self.maps), len(self.maps) + len(taken)
        extra = self.maps.weights.shape[-1] - start  # a sink's column stays last
        weights = np.zeros((self.maps.layers, self.maps.heads, length, length + extra), dtype=np.float32)
        weights[:, :, :start, :start] = self.maps.weights[..., :start]
        weights[:, :, :start, length:] = self.maps.weights[..., start:]
        for place, step in enumerate(taken, start):
            weights[:, :, place, : place + 1] = step.rows[..., : place + 1]
            weights[:, :, place, length:] = step.rows[..., place + 1 :]
        tokens = (*self.maps.tokens, *(step.token for step in taken))
        segments = (*self.maps.segments, *(0 for _ in taken))
        keys = (*tokens, *self.maps.keys[start:]) if extra else None
        return AttentionMaps(
            weights, tokens, segments, self.maps.causal, keys, windows=self.maps.windows, attending=self.maps.attending
        )

    def _recent(self, taken: list[GenerationStep]) -> AttentionMaps:
        if not taken:
            raise InputError(
                f"Attention maps of a prompt of more than {WHOLE} tokens can be shown only after the first new token "
                "has been generated. Generate a token first."
            )
        earlier = len(self.prompt) + len(taken) - WHOLE + 1  # tokens that share the first key
        length = taken[-1].rows.shape[-1]  # all tokens, and a sink if there is one
        weights = np.zeros((*taken[0].rows.shape[:2], len(taken), length), dtype=np.float32)
        for place, step in enumerate(taken):
            own = len(self.prompt) + place + 1
            weights[:, :, place, :own] = step.rows[..., :own]
            weights[:, :, place, length - (step.rows.shape[-1] - own) :] = step.rows[..., own:]
        before = weights[..., :earlier].sum(-1, keepdims=True)
        texts = tuple(step.token for step in taken)
        keys = (f"… {earlier:,} earlier", *(*self.prompt.tokens, *texts)[earlier:])
        keys += (SINK,) if len(keys) < length - earlier + 1 else ()
        whole = np.concatenate([before, weights[..., earlier:]], -1)
        there = tuple(np.flatnonzero(~np.isnan(whole).any((1, 2, 3))).tolist())
        attending = there if len(there) < len(whole) else ()
        return AttentionMaps(whole, texts, (0,) * len(texts), key_tokens=keys, attending=attending)


def check_prompt(checkpoint: Checkpoint, prompt: Encoding, new: int) -> None:
    """Raise CheckpointError if the model cannot generate text, and InputError if the prompt with the new tokens is too
    long, or `new` is not from 1 to MOST."""
    if not checkpoint.causal or checkpoint.model.get_output_embeddings() is None:
        raise CheckpointError(
            f"Text generation needs a decoder with a language model head; {checkpoint.name} is not one. Choose a "
            "decoder, such as atlas-decoder."
        )
    if not 1 <= new <= MOST:
        raise InputError(
            f"The number of new tokens must be from 1 to {MOST}; got {new}. Choose a number in that range."
        )
    length = len(prompt) + prompt.cut
    if length + new > checkpoint.max_length:
        raise InputError(
            f"Prompt and new tokens must fit into the context of {checkpoint.name} ({checkpoint.max_length} "
            f"tokens); the prompt has {length} tokens, and {new} new ones were requested. Shorten the "
            "prompt, or request fewer tokens."
        )


@torch.no_grad()
def generate(
    checkpoint: Checkpoint,
    prompt: Encoding,
    *,
    new: int = 20,
    temperature: float = 0.0,
    seed: int = 0,
    on_step: Callable[[GenerationStep], None] | None = None,
) -> Generated:
    """Generate at most `new` tokens (1 to MOST), stopping at an end-of-text token. Also return the attention maps of
    the prompt.

    `temperature` divides the logits before sampling; 0 takes the most probable token. Raises the errors of
    `check_prompt`.
    """
    check_prompt(checkpoint, prompt, new)
    chance, ends = torch.Generator().manual_seed(seed), ends_of(checkpoint)
    whole, sink = len(prompt) <= WHOLE, checkpoint.family.sinks
    output, layers = _read(checkpoint, prompt.ids, None, watched=whole)
    own, maps = checkpoint.sets[0], None
    if whole:
        kept = {call: layer[0].float().cpu().numpy() for call, layer in zip(own.calls, layers, strict=True)}
        maps = maps_of(checkpoint, prompt, own, kept)
    steps: list[GenerationStep] = []
    while len(steps) < new and not (steps and steps[-1].ends):
        chances = torch.softmax(output.logits[0, -1].float().cpu() / (temperature or 1.0), -1)
        piece = int(torch.multinomial(chances, 1, generator=chance)) if temperature else int(chances.argmax())
        rows = np.zeros((checkpoint.layers, checkpoint.heads, 0), dtype=np.float32)
        if piece not in ends:
            output, layers = _read(checkpoint, (piece,), output.past_key_values)
            # Row of one query in every layer. A layer with a window may have dropped earlier keys, whose weight is 0
            length = len(prompt) + len(steps) + 1
            given = [weights[0, :, 0].float().cpu().numpy() for weights in layers]
            padded = [np.pad(row, ((0, 0), (length + sink - row.shape[1], 0))) for row in given]
            rows = stacked_maps(dict(zip(own.calls, padded, strict=True)), own)
        most = chances.topk(min(LIKELY, len(chances)))
        texts = spelled(checkpoint.tokenizer, [piece, *most.indices.tolist()])
        likely = tuple(zip(texts[1:], map(float, most.values), strict=True))
        steps.append(GenerationStep(piece, texts[0], float(chances[piece]), likely, rows, piece in ends))
        if on_step is not None:
            on_step(steps[-1])
    return Generated(prompt, maps, tuple(steps))


def translated(checkpoint: Checkpoint, text: str) -> str:
    """Return the translation of a text by an encoder-decoder that uses greedy decoding."""
    source = checkpoint.encode(text)
    given = torch.tensor([source.ids], device=checkpoint.device)
    room = min(MOST, checkpoint.max_length - 1)
    with torch.no_grad():
        output_ids = checkpoint.model.generate(given, do_sample=False, num_beams=1, max_new_tokens=room)
    return str(checkpoint.tokenizer.decode(output_ids[0], skip_special_tokens=True))


def ends_of(checkpoint: Checkpoint) -> set[int]:
    """Return the IDs of the tokens after which a model stops generating."""
    settings = getattr(checkpoint.model, "generation_config", None)
    ends = getattr(settings, "eos_token_id", None)
    ends = checkpoint.tokenizer.eos_token_id if ends is None else ends
    return set(ends) if isinstance(ends, (list, tuple)) else set() if ends is None else {int(ends)}


def _read(
    checkpoint: Checkpoint, pieces: tuple[int, ...], stored: Any, *, watched: bool = True
) -> tuple[Any, list[Tensor]]:
    """The output of the model after these tokens, and the weights [1, head, query, key] of each layer."""
    kept: list[Tensor] = []
    asked: dict[str, Any] = {"input_ids": torch.tensor([pieces], device=checkpoint.device), "use_cache": True}
    if "logits_to_keep" in inspect.signature(checkpoint.model.forward).parameters:
        asked["logits_to_keep"] = 1  # a vocabulary's width for every token of a long prompt would be gigabytes
    with prepared(checkpoint, watcher=(lambda _, weights: kept.append(weights)) if watched else None) as run:
        run.rows = None if watched else LONG_ROWS
        return checkpoint.model(past_key_values=stored, **asked), kept
