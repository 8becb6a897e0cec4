"""The atlas: every score of every head of a checkpoint in one typed table, with intervals and sources.

Sources, in order: the user's database (view `atlas`), the bundled record (`recorded_rows`), other bundled scores
(`bundled_rows`), and, if there are none, scores measured now on bundled examples; also the bundled hypotheses
(`hypothesis_rows`). Each row names its source.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from .. import config
from ..errors import AtlasError, JobError
from ..models.present import bundled_names, present_weights
from ..store import shipped_record
from ..store.database import Database
from ..store.rows import Row
from ..store.runs import atlas_rows, other_scores
from ..studies.attention import features, norms, roles, statistics
from ..studies.contract import Study
from ..studies.hypotheses.hypothesis import STUDY, HypothesisOptions, heads_known
from ..studies.hypotheses.predicates import Hypothesis
from ..studies.hypotheses.records import Criterion
from ..studies.lookup import find_study
from ..studies.stored_runs import hashes_of
from ..study_names import current_name

# ---------------------------------------------------------------- scores from bundled hypotheses


FOLDER = config.DATA / "hypotheses"


def hypothesis_rows(checkpoint: str) -> pd.DataFrame:
    """Return head scores from the bundled hypothesis tests of a checkpoint, with the columns of ScoreRow. Only tests of
    the current weights are included."""
    file, weights = FOLDER / checkpoint / "hypotheses.json", present_weights(checkpoint)
    if checkpoint not in bundled_names() or weights is None or not file.is_file():  # the name may come from a link
        return pd.DataFrame()
    return _rows(file, checkpoint, weights)


@lru_cache(maxsize=4)
def _rows(file: Path, checkpoint: str, weights: str) -> pd.DataFrame:
    scores = []
    for batch in json.loads(file.read_text(encoding="utf-8"))["batches"]:
        if batch["weights_hash"] != weights:
            continue
        about = [
            Hypothesis(one["hypothesis"], one["layer"], one["head"], one["predicate"], tuple(one["parameters"].items()))
            for one in batch["hypotheses"]
        ]
        criteria = [Criterion.of(row) for one in batch["hypotheses"] for row in one["criteria"]]
        known = heads_known(HypothesisOptions(checkpoint=checkpoint, hypotheses=tuple(about)), criteria)
        scores += [asdict(score_row(STUDY.name, asdict(row), "shipped crate")) for row in known]
    return pd.DataFrame(scores)


# ---------------------------------------------------------------- scores from the bundled record


_KEY = ["checkpoint", "task", "score", "layer", "head"]


def recorded_rows(checkpoint: str, task: str | None = None) -> pd.DataFrame:
    """Return the head scores of a checkpoint from the bundled results. Each score comes from the first run with the
    current weights in the order of `shipped_record.runs`.

    Columns are those of ScoreRow, and weights_hash. `task` selects scores of this task and those without a task (None:
    all).
    """
    file = config.RECORD / shipped_record.RUNS
    every = _every(config.RECORD, file.stat().st_mtime_ns if file.is_file() else 0)
    mine = every[every["checkpoint"] == checkpoint] if len(every) else every
    if len(mine) and (now := present_weights(checkpoint)):
        mine = mine[[now in hashes_of(text) for text in mine["weights_hash"]]]
    mine = mine.drop_duplicates(_KEY) if len(mine) else mine
    return mine[mine["task"].isna() | (mine["task"] == task)] if task and len(mine) else mine


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
    return pd.DataFrame(scores).drop_duplicates([*_KEY, "weights_hash"]) if scores else pd.DataFrame()


# ---------------------------------------------------------------- other bundled scores


FILE = config.DATA / "atlas" / "scores.parquet"  # written by `python -m data.recipes.atlas_record`


def bundled_rows(checkpoint: str, task: str | None = None) -> pd.DataFrame:
    """Return the bundled head scores of a checkpoint, with the columns of ScoreRow. The table is empty if the weights
    on this machine are not the measured ones.

    `task` selects scores of this task and those without a task (None: all).
    """
    weights = config.BUNDLED_MODELS / checkpoint / "model.safetensors"
    if not FILE.is_file():
        return pd.DataFrame()
    record = _read(FILE, FILE.stat().st_mtime_ns)
    mine = record[record["checkpoint"] == checkpoint] if len(record) else record
    if mine.empty or not weights.is_file() or shipped_record.hash_of(weights) != mine["weights_file"].iloc[0]:
        return pd.DataFrame()
    return mine[mine["task"].isna() | (mine["task"] == task)] if task else mine


@lru_cache(maxsize=2)
def _read(file: Path, modified: int) -> pd.DataFrame:
    record = pd.read_parquet(file)
    parts = record["score"].str.partition("/")
    return record.assign(score=parts[0].map(current_name) + parts[1] + parts[2])


# ---------------------------------------------------------------- rows of the atlas


PLACE = ("x", "y", "stress")  # from multidimensional scaling of the heads' distances (Clark et al.)


@dataclass(frozen=True)
class ScoreRow:
    """One score of one attention head, as a row of the table of head scores. Fields that do not apply are None.

    Attributes:
        layer, head: zero-based.
        score: study, statistic and subject, separated by slashes.
        low, high: 95 % interval.
    """

    checkpoint: str
    task: str | None
    layer: int
    head: int
    score: str
    value: float | None
    low: float | None
    high: float | None
    n: int | None
    baseline: float | None
    q: float | None
    source: str


@cache
def p_is_corrected(study: str) -> bool:
    """Return whether a study stores p values that are corrected over all heads, or False for an unknown study."""
    try:
        return find_study(study).p_is_corrected
    except JobError:
        return False


def scores_of(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the result rows that contain a head score. Positions in the similarity plot also yield one row per
    coordinate."""
    for row in rows:
        if {"statistic", "layer", "head", "value"} <= row.keys():
            yield row
            if row["statistic"] == "place":
                for name in PLACE:
                    yield {**row, "statistic": f"place {name}", "value": row[name]}


def score_row(study: str, row: Row, source: str) -> ScoreRow:
    """Convert a result row of a study to a row of the table of head scores."""
    task, feature = row.get("task"), row.get("feature")
    about = "" if feature is None or feature == task else f"/{feature}"
    numbers = {name: row.get(name) for name in ("value", "low", "high", "n", "baseline")}
    numbers["q"] = row.get("p" if p_is_corrected(study) else "q")
    return ScoreRow(
        str(row.get("checkpoint") or row.get("after")), task, row["layer"], row["head"],
        f"{study}/{row['statistic']}{about}", source=f"{study}, {source}", **numbers,
    )  # fmt: skip


# -------------------- A first set of scores of any checkpoint, measured here and now on a task's bundled rows


STUDIES = tuple(module.STUDY.name for module in (statistics, features, roles, norms))
TASK, LIMIT = "sst2", 300


def measured(checkpoint: str, task: str | None = None) -> list[ScoreRow]:
    """Measure the scores of heads on a task (by default TASK). The studies in STUDIES use at most LIMIT dev examples.

    Studies that the checkpoint does not support are left out. If all are unsupported, raises the error of the first
    one, usually a CheckpointError or InputError.
    """
    rows: list[ScoreRow] = []
    refused: AtlasError | None = None
    for name in STUDIES:
        study: Study[Any, Any] = find_study(name)
        try:
            given = study.read({"checkpoint": checkpoint, "tasks": [task or TASK], "limit": LIMIT})
            rows += [score_row(name, row, "measured now") for row in scores_of(run_here(study, given))]
        except AtlasError as error:
            refused = refused or error
    if refused and not rows:
        raise refused
    return rows


def run_here(study: Study[Any, Any], options: Any) -> list[Row]:
    """Run a whole study in this process, without a job, and return its result rows."""
    return study.summarize(options, [study.run(options, unit).partial for unit in study.units(options)])


DTYPES = MappingProxyType({
    "checkpoint": "object", "task": "object", "layer": "int64", "head": "int64", "score": "object",
    "value": "float64", "low": "float64", "high": "float64", "n": "Int64", "baseline": "float64", "q": "float64",
    "source": "object",
})  # fmt: skip
COLUMNS = tuple(DTYPES)


def atlas(db: Database | None, *, checkpoint: str, task: str | None = None, measure: bool = True) -> pd.DataFrame:
    """Return every score of every head of a checkpoint, one row per score, from the database and the bundled results.

    Only scores of the current weights are included. If nothing is stored or bundled, `measure` measures a first set (in
    seconds, on examples of the task or the bundled SST-2-like ones) and may raise CheckpointError or InputError.
    Columns are those of ScoreRow, with the types of DTYPES.
    """
    now = present_weights(checkpoint)
    stored = framed(pd.DataFrame() if db is None else atlas_rows(db, checkpoint=checkpoint, weights=now, task=task))
    scores = with_others(stored, framed(recorded_rows(checkpoint, task)))
    scores = with_others(scores, framed(bundled_rows(checkpoint, task)))
    if scores.empty and measure:
        scores = framed(pd.DataFrame([asdict(row) for row in measured(checkpoint, task)]))
    scores = with_others(scores, framed(hypothesis_rows(checkpoint)))
    if db is None:
        return scores
    imported = atlas_rows(db, checkpoint=checkpoint, weights=now, task=task, imported=True)
    return with_others(scores, framed(imported))


def left_out(db: Database | None, checkpoint: str) -> str:
    """State how many scores are left out because they were measured with other or unknown weights. Return "" if there
    are none."""
    others = 0 if db is None else other_scores(db, checkpoint=checkpoint, weights=present_weights(checkpoint))
    if not others:
        return ""
    return (
        f"{others:,} stored scores of {checkpoint} are not shown, because they were measured with other weights than "
        "the checkpoint has now, or with unknown weights."
    )


def framed(rows: pd.DataFrame) -> pd.DataFrame:
    """Give a table of scores the columns and types of ScoreRow. If a study corrects its p values over heads, the column
    `q` contains them."""
    if "p" in rows and "q" in rows:
        studies = rows["score"].str.split("/").str[0]
        mine = studies.isin([study for study in studies.unique() if p_is_corrected(study)])
        rows = rows.assign(q=rows["q"].where(~mine, rows["p"]).astype("float64"))
    return rows.reindex(columns=list(COLUMNS)).astype(dict(DTYPES))


def with_others(scores: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Append the rows of `others` whose combination of task and score name does not occur in `scores`."""
    if scores.empty or others.empty:
        return others if scores.empty else scores
    known = set(zip(scores["task"], scores["score"], strict=True))
    new = [key not in known for key in zip(others["task"], others["score"], strict=True)]
    return pd.concat([scores, others[new]], ignore_index=True)
