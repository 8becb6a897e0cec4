"""Bundled scores of the bundled checkpoints, from one read-only Parquet file.

`python -m data.recipes.atlas_record` computes it again when the bundled weights change; rows of other weights are not
shown. Each row has its study, time, examples and code version.
"""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from .. import config
from ..study_names import current_name

if TYPE_CHECKING:
    import pandas as pd

FILE = config.DATA / "atlas" / "scores.parquet"


def rows(checkpoint: str, task: str | None = None, *, file: Path | None = None) -> "pd.DataFrame":
    """Return the bundled head scores of a checkpoint with its current weights, with the columns of ScoreRow."""
    import pandas as pd  # 0.4 s at start

    file, weights = file or FILE, config.BUNDLED_MODELS / checkpoint / "model.safetensors"
    if not file.is_file():
        return pd.DataFrame()
    record = _read(file, file.stat().st_mtime_ns)
    mine = record[record["checkpoint"] == checkpoint] if len(record) else record
    if mine.empty or (file_hash(weights) if weights.is_file() else "") != mine["weights_file"].iloc[0]:
        return pd.DataFrame()
    return mine[mine["task"].isna() | (mine["task"] == task)] if task else mine


def file_hash(file: Path) -> str:
    """Return the SHA-256 of a file as hex digits, cached until the file changes."""
    return _hash(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _read(file: Path, modified: int) -> "pd.DataFrame":
    import pandas as pd  # 0.4 s at start

    record = pd.read_parquet(file)
    present = {}
    for score in record["score"].unique():
        study, slash, what = score.partition("/")
        present[score] = f"{current_name(study)}{slash}{what}"
    return record.assign(score=record["score"].map(present))


@lru_cache(maxsize=8)
def _hash(file: Path, modified: int) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
