"""The record that ships with the project: what it measured on its own checkpoints, read beside a user's database.

`python -m data.recipes.record` makes it from the database of a report: two Parquet files and a note of where it comes
from. Nothing writes to it here. Without the folder there is no record, and nothing else changes.
"""

import json
from functools import lru_cache
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from core import config
from core.store.rows import Row, from_json

RUNS, ROWS, ABOUT = "run.parquet", "row.parquet", "about.json"


def about() -> Row | None:
    """Where the record comes from: made, code_version, note, checkpoints; None where there is no record."""
    file = config.RECORD / ABOUT
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def runs(study: str | None = None) -> pd.DataFrame:
    """The record's runs, newest first, in the columns of `core.store.runs.runs`, and how long their units took
    (`seconds`) for how much work (`size`); no row where there is no record."""
    known = _runs(config.RECORD)
    return known if study is None else known[known["study"] == study]


def one_run(run: str) -> Row | None:
    """What is known of a run, its options and row ids still as JSON text; None where the record lacks it."""
    known = _runs(config.RECORD)
    mine = known[known["run"] == run]
    return None if mine.empty else {str(name): value for name, value in mine.iloc[0].items()}


def run_rows(run: str) -> list[Row]:
    """The rows of a run, in order; none where the record lacks it."""
    if one_run(run) is None:
        return []
    rows = pq.read_table(config.RECORD / ROWS, columns=["position", "body"], filters=[("run", "==", run)])
    return [from_json(body) for body in rows.sort_by("position")["body"].to_pylist()]


@lru_cache(maxsize=4)
def _runs(folder: Path) -> pd.DataFrame:
    if not (folder / RUNS).is_file():
        return pd.DataFrame(columns=["run", "study"])
    return pq.read_table(folder / RUNS).to_pandas().sort_values("created", ascending=False, ignore_index=True)
