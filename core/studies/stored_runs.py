"""Stored runs of studies, from the database or the bundled record."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ..models.present import present_weights
from ..store import runs
from ..store.database import Database
from ..store.rows import from_json
from .records import record_of

# ---------------------------------------------------------------- weights of stored results


Standing = Literal["present", "earlier", "unrecorded", "elsewhere"]
OF_TRAINED = {"cross-fitted"}  # studies whose older runs have the hash of trained weights, not of the base
_BETWEEN = re.compile(r", | and ")


def standing(run: Mapping[str, Any]) -> Standing:
    """Compare the weights used in a stored run with the current weights of the same checkpoints on this machine.

    Return "present" (equal), "earlier" (changed), "unrecorded" (the run does not state its weights) or "elsewhere" (no
    checkpoint is on this machine, or the run trained its models).
    """
    names, hashes = _names(run), hashes_of(run.get("weights_hash"))
    at_hand = [weights for name in names if (weights := present_weights(name))]
    if not at_hand:
        return "elsewhere"
    if not hashes:
        return "unrecorded"
    if all(weights in hashes for weights in at_hand):
        return "present"
    return "elsewhere" if run.get("study") in OF_TRAINED else "earlier"


def hashes_of(text: Any) -> list[str]:
    """Split the stored text of a run's weight hashes into a list with one hash per checkpoint."""
    return _BETWEEN.split(text) if isinstance(text, str) and text else []


def _names(run: Mapping[str, Any]) -> list[str]:
    """Return the names of the checkpoints whose weights a run records."""
    checkpoint, options = run.get("checkpoint"), run.get("options")
    told = (from_json(options) if isinstance(options, str) else options) or {}
    told = told if isinstance(told, Mapping) else {}
    names, compare = _BETWEEN.split(checkpoint) if isinstance(checkpoint, str) else [], told.get("compare")
    if revision := told.get("revision"):
        names = [f"{name}@{revision}" for name in names]
    return list(dict.fromkeys([*names, compare] if isinstance(compare, str) else names))


@dataclass(frozen=True, kw_only=True)
class TitledRun:
    """A stored run with its title, creation time and options."""

    title: str
    created: datetime
    options: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class RunRecord(TitledRun):
    """A stored run with its study and the provenance of its results."""

    run: str
    study: str
    checkpoint: str | None = None
    weights_hash: str | None = None
    task: str | None = None
    split: str | None = None
    row_ids: Sequence[Any] | None = None
    seed: int | None = None
    dtype: str | None = None
    operator: str | None = None
    device: str | None = None
    code_version: str | None = None


def one_run(db: Database, run: str) -> RunRecord:
    """Load a stored run by its ID. Raises StoreError if no such run exists."""
    return record_of(RunRecord, runs.one_run(db, run))
