"""A stored run of a study, of the database or of the record that ships."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..store import runs
from ..store.database import Database
from .records import Result


@dataclass(frozen=True, kw_only=True)
class TitledRun(Result):
    """What a run is called, when it was made, and of which options."""

    title: str
    created: datetime
    options: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class StoredRun(TitledRun):
    """What is known of a run: its study too, and where its numbers come from."""

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


def one_run(db: Database, run: str) -> StoredRun:
    """What is known of `run`. Raises StoreError if unknown."""
    return StoredRun.of(runs.one_run(db, run))
