"""The checkpoints and pipelines that a worker keeps open for its next unit: the one cache of them below the pages."""

import re
from functools import lru_cache
from typing import Any

from .. import config
from ..models.checkpoint import Checkpoint
from ..models.fresh import random_copy
from ..models.opening import HeadKind, open_checkpoint
from ..models.present import stamp_of
from .tagging import open_pipeline

KEPT = 2  # open checkpoints: the most that one unit looks at
_RANDOM = re.compile(r"(?P<name>.+) \(random weights (?P<seed>\d{1,9})\)")


def get_checkpoint(
    name: str, *, head: HeadKind = "none", dtype: str = "float32", revision: str | None = None
) -> Checkpoint:
    """An opened checkpoint, kept while no two others are asked for; one whose files changed is opened again.

    A name of `random_name` opens fresh weights. Raises CheckpointError.
    """
    if drawn := _RANDOM.fullmatch(name):
        known = get_checkpoint(drawn["name"], head=head, dtype=dtype, revision=revision)
        return _random(known, int(drawn["seed"]), head == "classifier")
    return _checkpoint(name, head, dtype, config.settings().device, revision, stamp_of(name))


def random_name(checkpoint: str, seed: int) -> str:
    """The name under which `get_checkpoint` opens a checkpoint's architecture with fresh weights."""
    return f"{checkpoint} (random weights {seed})"


@lru_cache(maxsize=1)
def _random(known: Checkpoint, seed: int, classifier: bool) -> Checkpoint:
    return random_copy(known, seed=seed, classifier=classifier)


def pipeline(name: str | None) -> Any:
    """A language pipeline, kept while no other is asked for; None is the bundled one."""
    return _pipeline(name)


@lru_cache(maxsize=KEPT)
def _checkpoint(name: str, head: HeadKind, dtype: str, device: str, revision: str | None, stamp: int) -> Checkpoint:
    return open_checkpoint(name, head=head, dtype=dtype, device=device, revision=revision)


@lru_cache(maxsize=1)
def _pipeline(name: str | None) -> Any:
    return open_pipeline(name)
