"""The scores in the record that ships (core.store.shipped_record): the very numbers that the other pages open with."""

from functools import lru_cache
from pathlib import Path

import pandas as pd

from .. import config
from ..models.present import present_weights
from ..store import shipped_record
from ..studies.standing import hashes_of
from .rows import score_row, scores_of


def rows(checkpoint: str, task: str | None = None) -> pd.DataFrame:
    """The recorded scores of a checkpoint, from the newest run that has each.

    A run of other weights than the checkpoint's name leads to now gives none.

    Args:
        task: only its scores and those that belong to no task; None for all.

    Returns:
        The columns of ScoreRow and weights_hash; empty without a record.
    """
    every = _every(config.RECORD, _changed(config.RECORD / shipped_record.RUNS))
    mine = every[every["checkpoint"] == checkpoint] if len(every) else every
    if len(mine) and (now := present_weights(checkpoint)):
        mine = mine[[now in hashes_of(text) for text in mine["weights_hash"]]]
    return mine[mine["task"].isna() | (mine["task"] == task)] if task and len(mine) else mine


def _changed(file: Path) -> int:
    return file.stat().st_mtime_ns if file.is_file() else 0


@lru_cache(maxsize=2)
def _every(folder: Path, changed: int) -> pd.DataFrame:
    scores = []
    for run in shipped_record.runs().to_dict("records"):  # newest first
        source = f"shipped record, {run['created']:%Y-%m-%d}"
        for row in scores_of(shipped_record.run_rows(run["run"])):
            whose = row.get("checkpoint") or row.get("after") or run["checkpoint"]
            on = row.get("task") or (run["task"] if isinstance(run["task"], str) else None)
            score = score_row(run["study"], row | {"checkpoint": whose, "task": on}, source)
            scores.append(vars(score) | {"weights_hash": run["weights_hash"]})
    key = ["checkpoint", "task", "score", "layer", "head"]
    return pd.DataFrame(scores).drop_duplicates(key) if scores else pd.DataFrame()
