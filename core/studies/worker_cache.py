"""The cache of open checkpoints and pipelines in a worker."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from .. import capture, config, scoring, unit_progress
from ..errors import CheckpointError
from ..models.checkpoint import Checkpoint
from ..models.classifier import random_copy
from ..models.opening import HeadKind, open_checkpoint
from ..models.present import stamp_of
from ..tasks.glue import read_rows
from .tagging import open_pipeline

KEPT = 2  # open checkpoints: the most that one unit looks at
INPUTS, PASSES = 24, 3  # for measuring entropies; repeated because each layer's input depends on earlier layers
_RANDOM = re.compile(r"(?P<name>.+) \(random weights (?P<seed>\d{1,9})\)")


def get_checkpoint(
    name: str, *, head: HeadKind = "none", dtype: str = "float32", revision: str | None = None
) -> Checkpoint:
    """Open a checkpoint. The last two checkpoints are cached. Raises CheckpointError if a checkpoint cannot be opened.

    A name from `random_name` opens random weights whose attention has the same mean entropy as in the trained model.
    """
    if drawn := _RANDOM.fullmatch(name):
        known = get_checkpoint(drawn["name"], head=head, dtype=dtype, revision=revision)
        return _random(known, int(drawn["seed"]), head == "classifier")
    return noted(_checkpoint(name, head, dtype, config.settings().device, revision, stamp_of(name)))


def with_head(name: str, heads: Sequence[HeadKind]) -> Checkpoint:
    """Open a checkpoint with the first available output layer from `heads`, or without one if none is available."""
    for head in heads:
        try:
            return get_checkpoint(name, head=head)
        except CheckpointError:
            continue
    return get_checkpoint(name)


def noted(opened: Checkpoint) -> Checkpoint:
    """Write the notes on how a checkpoint was loaded to the log of the current job, and return the checkpoint."""
    unit_progress.note(f"{opened.name}: {note}" for note in opened.notes)
    return opened


def random_name(checkpoint: str, seed: int) -> str:
    """Return the name under which `get_checkpoint` opens a randomly initialised copy of a checkpoint."""
    return f"{checkpoint} (random weights {seed})"


@lru_cache(maxsize=1)
def _random(known: Checkpoint, seed: int, classifier: bool) -> Checkpoint:
    return spread_as(random_copy(known, seed=seed, classifier=classifier), known)


def spread_as(random: Checkpoint, known: Checkpoint) -> Checkpoint:
    """Scale the attention scores of random weights until each head has the mean entropy of a trained checkpoint's head.

    Unscaled random weights attend nearly uniformly and are no useful baseline. Decoders of encoder-decoders, and model
    families whose scores cannot be changed, are not scaled.
    """
    if capture.reach.reach_of(known) == "outputs":
        return random
    asked = [scoring.counterparts.mean_entropy(rows) for rows in _rows_of(known)]
    calls = known.sets[0].attending or tuple(known.sets[0].calls)
    sharpness = {call: torch.ones_like(entropy) for call, entropy in zip(calls, asked, strict=True)}
    for _ in range(PASSES):
        now = replace(random, sharpness=sharpness)
        found = [
            scoring.counterparts.entropy_factors(rows, entropy)
            for rows, entropy in zip(_rows_of(now), asked, strict=True)
        ]
        sharpness = {call: sharpness[call] * factor for call, factor in zip(calls, found, strict=True)}
    return replace(random, sharpness=sharpness)


class _Rows:
    """Observer that stores the rows of every layer's maps for a few short inputs."""

    takes_sinks = takes_hybrids = True

    def __init__(self) -> None:
        self.by_layer: dict[int, list[Tensor]] = {}

    def update(self, layer: int, weights: Tensor, inputs: list[int]) -> None:
        del inputs
        self.by_layer.setdefault(layer, []).append(weights.float().cpu().transpose(0, 1).flatten(1, 2))


def _rows_of(checkpoint: Checkpoint) -> list[list[Tensor]]:
    """Return, for each layer, blocks of map rows [head, row, key] on bundled sentences."""
    texts = [row.text for row in read_rows("sst2", "dev", limit=INPUTS)]
    encodings = [checkpoint.encode(text, text if checkpoint.family.translates else None) for text in texts]
    observer = _Rows()
    capture.running.run(checkpoint, encodings, [observer])
    return [observer.by_layer[layer] for layer in sorted(observer.by_layer)]


@lru_cache(maxsize=1)
def pipeline(name: str | None) -> Any:
    """Open a spaCy pipeline by name, or the bundled pipeline if the name is None. The last pipeline is cached."""
    return open_pipeline(name)


@lru_cache(maxsize=KEPT)
def _checkpoint(name: str, head: HeadKind, dtype: str, device: str, revision: str | None, stamp: int) -> Checkpoint:
    return open_checkpoint(name, head=head, dtype=dtype, device=device, revision=revision)
