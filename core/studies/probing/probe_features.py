"""Features for probes: attention between words, and outputs of layers.

They are computed once and stored as float16 files in runs/features, named by weights and sentences. Only the newest
KEPT sets are retained.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from ... import config
from ...capture.outputs import input_embeddings, layer_outputs
from ...capture.running import run
from ...capture.words import shares
from ...models.checkpoint import Checkpoint
from ...models.classifier import random_copy
from ...models.encoding import Encoding
from ...probing.ragged import Ragged
from ...tasks.conllu import GoldSentence, LeftOut
from .. import worker_cache

FORMAT, KEPT, DONE, ARRAYS = 2, 8, "complete.json", "arrays"
TOO_LONG = "longer than the checkpoint reads"


@dataclass(frozen=True)
class Readable:
    """The sentences that a tokenizer can represent, with the fraction of each token that belongs to each word."""

    part: str
    sentences: tuple[GoldSentence, ...]
    encodings: tuple[Encoding, ...]
    pieces: tuple[np.ndarray, ...]
    left_out: tuple[LeftOut, ...]


def open_source(name: str, *, random: bool, seed: int) -> Checkpoint:
    """Load a checkpoint, or create a model with the same architecture and random weights."""
    checkpoint = worker_cache.get_checkpoint(name)
    return random_copy(checkpoint, seed=seed) if random else checkpoint


def readable(checkpoint: Checkpoint, part: str, sentences: Sequence[GoldSentence]) -> Readable:
    """Select the sentences that a tokenizer can represent in full, and list the sentences that were left out."""
    kept, encodings, pieces, out = [], [], [], []
    for number, sentence in enumerate(sentences, start=1):
        encoding = checkpoint.encode(sentence.text)
        share = shares(encoding, [(word.start, word.end) for word in sentence.words])
        if encoding.cut or not (share.sum(0) > 0).all():
            out.append(f'{number} "{sentence.text[:30]}"')
            continue
        kept.append(sentence)
        encodings.append(encoding)
        pieces.append(share)
    left = (LeftOut(part, TOO_LONG, len(out), tuple(out[:3])),) if out else ()
    return Readable(part, tuple(kept), tuple(encodings), tuple(pieces), left)


# ---------------------------------------------------------------- on disk


def features_folder() -> Path:
    """Return the folder in which the input vectors and attention maps of probes are stored."""
    return config.settings().runs / "features"


def kept_features(
    kind: str,
    checkpoint: Checkpoint,
    texts: Sequence[str],
    shapes: Sequence[tuple[int, ...]],
    fill: Callable[[Ragged], None],
) -> Ragged:
    """Return the stored features of some texts, one array per text. If none are stored, compute them with `fill`."""
    told = json.dumps([FORMAT, kind, checkpoint.weights_hash, checkpoint.dtype, list(texts)], ensure_ascii=False)
    place = features_folder() / hashlib.sha256(told.encode()).hexdigest()[:24]
    if (place / DONE).is_file():
        (place / DONE).touch()
        return Ragged.open(place, ARRAYS)
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        stored = Ragged.create(part, ARRAYS, shapes)
        fill(stored)
        stored.data.flush()
        del stored  # some systems cannot rename a folder with an open file
        (part / DONE).write_text(
            json.dumps({"kind": kind, "checkpoint": checkpoint.name, "inputs": len(texts)}), encoding="utf-8"
        )
        if not (place / DONE).is_file():  # otherwise another worker has written the file
            shutil.rmtree(place, ignore_errors=True)
            part.rename(place)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    known = sorted(features_folder().glob(f"*/{DONE}"), key=lambda file: -file.stat().st_mtime)
    for file in known[KEPT:]:
        if file.parent != place:
            shutil.rmtree(file.parent, ignore_errors=True)
    return Ragged.open(place, ARRAYS)


def half_precision(vectors: np.ndarray) -> np.ndarray:
    """Convert vectors to float16. Values beyond the range of float16 are clipped."""
    return np.clip(vectors, -65000, 65000).astype(np.float16)


def texts_of(encodings: Sequence[Encoding]) -> list[str]:
    """Return the text and length of each input as one string, which is the key of its stored features."""
    return [f"{encoding.text}\t{encoding.pair}\t{len(encoding)}" for encoding in encodings]


# ---------------------------------------------------------------- attention between words


class WordMaps:
    """Observer that writes attention maps between words to disk. Special tokens at both ends are treated as words."""

    def __init__(self, checkpoint: Checkpoint, part: Readable, stored: Ragged) -> None:
        self.checkpoint, self.stored = checkpoint, stored
        self.sides = [_sides(encoding, share) for encoding, share in zip(part.encodings, part.pieces, strict=True)]
        self.layers: dict[int, list[np.ndarray]] = {}

    def update(self, layer: int, weights: Tensor, inputs: list[int]) -> None:
        maps = weights.float().cpu().numpy()
        for row, number in enumerate(inputs):
            queries, keys = self.sides[number]
            between = np.matmul(np.matmul(queries.T, maps[row]), keys)
            self.layers.setdefault(number, []).append(between)
            if layer == self.checkpoint.sets[0].numbers[-1]:
                self.stored.put(number, np.concatenate(self.layers.pop(number)).astype(np.float16))


def _sides(encoding: Encoding, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return matrices [token, position] to words: means over queries, sums over keys, specials at the ends."""
    first, last = np.zeros((len(encoding), 1)), np.zeros((len(encoding), 1))
    if encoding.first is not None:
        first[encoding.first] = 1
    if encoding.separators:
        last[encoding.separators[-1]] = 1
    keys = np.concatenate([first, share, last], 1).astype(np.float32)
    return keys / np.maximum(keys.sum(0, keepdims=True), 1e-9), keys


def word_maps_of(checkpoint: Checkpoint, part: Readable) -> Ragged:
    """Return the attention between words, as [layer × head, word, word]. Results are cached on disk."""
    heads = len(checkpoint.all_heads)
    shapes = [(heads, len(tagged.words) + 2, len(tagged.words) + 2) for tagged in part.sentences]

    def fill(stored: Ragged) -> None:
        run(checkpoint, part.encodings, [WordMaps(checkpoint, part, stored)])

    return kept_features("word maps", checkpoint, _texts_and_borders(part), shapes, fill)


def word_embeddings_of(checkpoint: Checkpoint, part: Readable) -> Ragged:
    """Return the input embeddings [word, hidden], divided by the vocabulary's mean norm. They are cached on disk."""
    size = int(checkpoint.model.get_input_embeddings().weight.shape[1])
    shapes = [(len(tagged.words), size) for tagged in part.sentences]

    def fill(stored: Ragged) -> None:
        scale = float(checkpoint.model.get_input_embeddings().weight.float().norm(dim=-1).mean())
        for number, (encoding, share) in enumerate(zip(part.encodings, part.pieces, strict=True)):
            vectors = input_embeddings(checkpoint, encoding).numpy()
            means = (share / share.sum(0, keepdims=True)).T @ vectors
            stored.put(number, (means / scale).astype(np.float16))

    return kept_features("word embeddings", checkpoint, _texts_and_borders(part), shapes, fill)


def word_vectors_of(checkpoint: Checkpoint, part: Readable) -> Ragged:
    """Return the output of each layer for each word, as [word, layer, hidden]. Outputs are cached on disk."""
    hidden = int(checkpoint.model.config.hidden_size)
    shapes = [(len(tagged.words), checkpoint.layers + 1, hidden) for tagged in part.sentences]

    def fill(stored: Ragged) -> None:
        for chosen, states in layer_outputs(checkpoint, part.encodings):
            for row, number in enumerate(chosen):
                share = part.pieces[number]
                means = np.einsum("pw,lph->wlh", share / share.sum(0, keepdims=True), states[:, row].numpy())
                stored.put(number, half_precision(means))

    return kept_features("word vectors", checkpoint, _texts_and_borders(part), shapes, fill)


def piece_vectors_of(checkpoint: Checkpoint, encodings: Sequence[Encoding]) -> Ragged:
    """Return the vector of each token in each layer, as [token, layer, hidden]. Vectors are cached on disk."""
    hidden = int(checkpoint.model.config.hidden_size)
    shapes = [(len(encoding), checkpoint.layers + 1, hidden) for encoding in encodings]

    def fill(stored: Ragged) -> None:
        for chosen, states in layer_outputs(checkpoint, encodings):
            for row, number in enumerate(chosen):
                stored.put(number, half_precision(states[:, row].numpy().swapaxes(0, 1)))

    return kept_features("piece vectors", checkpoint, texts_of(encodings), shapes, fill)


def _texts_and_borders(part: Readable) -> list[str]:
    """Return the texts of sentences, then their word boundaries: other boundaries give other features of a text."""
    borders = [" ".join(f"{word.start}-{word.end}" for word in sentence.words) for sentence in part.sentences]
    return [*(sentence.text for sentence in part.sentences), *borders]
