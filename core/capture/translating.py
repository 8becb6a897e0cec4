"""Encoder-decoders: accuracy of translations with changed heads, importance of heads, cross attention as alignment.

Decoding is teacher-forced, and the most probable token at each step is compared with the next target token. A sentence
is exact if every step is right, including the end; greedy translation then generates it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..errors import CheckpointError, InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .generating import ends_of
from .running import BATCH_TOKENS, Change, batches, prepared
from .words import words_of


@dataclass(frozen=True)
class Right:
    """The results of an encoder-decoder: whether each target sentence is correct, and what fraction of tokens is
    correct.

    Attributes:
        exact: whether all tokens are right, including the end.
        share: fraction of right tokens, including the end.
    """

    exact: Bool[np.ndarray, " row"]
    share: Float[np.ndarray, " row"]


def pairs_of(checkpoint: Checkpoint, texts: Sequence[tuple[str, str]]) -> list[Encoding]:
    """Encode source sentences with their target sentences. Raises CheckpointError if the checkpoint is not an
    encoder-decoder, and InputError if an example is too long."""
    if not checkpoint.family.translates or checkpoint.model.get_output_embeddings() is None:
        raise CheckpointError(
            f"Translation needs an encoder-decoder with a language model head; {checkpoint.name} is not one. "
            "Choose one, such as atlas-translator."
        )
    encodings = [checkpoint.encode(source, target) for source, target in texts]
    cut = [
        k
        for k, encoding in enumerate(encodings)
        if encoding.cut or (encoding.target is not None and encoding.target.cut)
    ]
    if cut:
        raise InputError(
            f"Source and target must have at most {checkpoint.max_length} tokens each; example {cut[0] + 1} has "
            "more. Shorten or remove this example."
        )
    return encodings


def right(checkpoint: Checkpoint, encodings: Sequence[Encoding], changes: Iterable[Change] = ()) -> Right:
    """Return how correctly an encoder-decoder predicts each target sentence under interventions. Raises
    InterventionError if a change is undefined for this model."""
    changes = tuple(changes)
    exact, share = np.zeros(len(encodings), dtype=bool), np.zeros(len(encodings))
    for inputs in batches(encodings, BATCH_TOKENS // 2):
        batch = [encodings[k] for k in inputs]
        with torch.no_grad(), prepared(checkpoint, changes, some=batch, inputs=inputs):
            logits = checkpoint.model(**checkpoint.inputs(batch)).logits
        hits = (logits.argmax(-1).cpu() == _next_tokens(checkpoint, batch)).numpy()
        exact[inputs], share[inputs] = hits.all(-1), hits.mean(-1)
    return Right(exact, share)


def part_importance(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], *, normalize: bool = True
) -> list[Float[np.ndarray, "layer head"]]:
    """Return the importance |dL/dxi_h| of every head, for each set of heads (encoder, decoder, cross-attention),
    averaged over sentences (Michel et al. 2019, section 4.1).

    L is the cross-entropy of a sentence in nats, summed over its target tokens. `normalize` divides each layer by its
    l2 norm. Float64, at least 0.
    """
    sums = [np.zeros((head_set.layers, head_set.heads)) for head_set in checkpoint.sets]
    for inputs in batches(encodings, BATCH_TOKENS // 2):
        batch = [encodings[k] for k in inputs]
        # xi = 1 for every head, input and query, one tensor for each call
        source, target = batch[0].lengths
        gates: list[Any] = [None] * checkpoint.calls
        for head_set in checkpoint.sets:
            for call in head_set.calls:
                length = source if head_set.part == "encoder" else target
                gates[call] = torch.ones(
                    len(batch), head_set.heads, length, device=checkpoint.device, requires_grad=True
                )
        with torch.enable_grad(), prepared(checkpoint, gates=gates):
            logits = checkpoint.model(**checkpoint.inputs(batch)).logits.float()
            wanted = _next_tokens(checkpoint, batch).to(logits.device)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="sum")
            moved = torch.autograd.grad(loss, gates)
        for head_set, total in zip(checkpoint.sets, sums, strict=True):
            for layer in range(head_set.layers):
                total[layer] += moved[head_set.call(layer)].double().sum(-1).abs().sum(0).cpu().numpy()
    scores = [total / max(len(encodings), 1) for total in sums]
    return [
        importance / (np.linalg.norm(importance, axis=-1, keepdims=True) + 1e-20) if normalize else importance
        for importance in scores
    ]


def aligned_words(checkpoint: Checkpoint, encodings: Sequence[Encoding]) -> list[np.ndarray]:
    """Return the source word to which each cross-attention head attends most when the decoder writes a target word.

    Words are separated by spaces. The query is the position before the word; for several tokens, the mean. One array
    (layer, head, target word) of zero-based indices per example. Raises InputError if an example has no target.
    """
    words: list[np.ndarray] = [np.empty(0)] * len(encodings)
    cross = checkpoint.head_set("cross")
    for inputs in batches(encodings, BATCH_TOKENS // 2):
        batch = [encodings[k] for k in inputs]
        maps: dict[int, torch.Tensor] = {}
        with (
            torch.no_grad(),
            prepared(checkpoint, watcher=maps.__setitem__, layers=cross.calls, some=batch, inputs=inputs),
        ):
            checkpoint.model(**checkpoint.inputs(batch))
        layers = torch.stack([maps[call] for call in cross.calls]).float().cpu().numpy()
        for row, k in enumerate(inputs):
            weights = layers[:, row]
            encoding = encodings[k]
            target = encoding.target
            if target is None:
                raise InputError(
                    "Cross-attention needs a source and a target; an example has no target. Add a target to every "
                    "example."
                )
            sources, targets = (
                [word.positions for word in words_of(sentence) if word.sentence is not None]
                for sentence in (encoding, target)
            )
            by_source = np.stack([weights[..., list(places)].sum(-1) for places in sources], -1)
            writing = np.stack(
                [by_source[:, :, [position - 1 for position in places]].mean(2) for places in targets], 2
            )
            words[k] = writing.argmax(-1)
    return words


def _next_tokens(checkpoint: Checkpoint, encodings: Sequence[Encoding]) -> Tensor:
    """Return the tokens that each step of the targets should write: the next token, and finally an end token."""
    end = min(ends_of(checkpoint), default=0)
    return torch.tensor([[*pair.target.ids[1:], end] for pair in encodings if pair.target is not None])
