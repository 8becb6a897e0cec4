"""The atlas: every score of every head of a checkpoint in one typed frame, with intervals and where each comes from.

Four sources, in this order: what the user's database has (the view `atlas`), the record that the other pages open with
(`core.atlas.recorded_scores`), what else ships for the bundled checkpoints (`core.atlas.shipped_scores`), and, where
none has anything, what is measured now on bundled rows; beside them what the hypotheses
that ship know (`core.atlas.shipped_hypotheses`). Each row says which.
"""

from collections.abc import Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import pandas as pd

from ..errors import AtlasError
from ..models.present import present_weights
from ..store.database import Database
from ..store.rows import Row
from ..store.runs import atlas_rows, other_scores
from ..studies.attention import features, norms, roles, statistics
from ..studies.contract import Study
from ..studies.lookup import find_study
from . import recorded_scores, shipped_hypotheses, shipped_scores
from .rows import ScoreRow, p_is_corrected, score_row, scores_of

# -------------------- A first set of scores of any checkpoint, measured here and now on a task's bundled rows


STUDIES = tuple(module.STUDY.name for module in (statistics, features, roles, norms))
TASK, LIMIT = "sst2", 300


def measured(checkpoint: str, task: str | None = None, *, studies: Sequence[str] | None = None) -> list[ScoreRow]:
    """Scores of every head of a checkpoint by the studies named, on at most LIMIT dev rows.

    A study that this checkpoint cannot have (no values, no maps) is left out, unless all are.

    Args:
        task: whose dev rows; None for TASK.
        studies: names of studies; None for all of STUDIES.

    Returns:
        A row a head and score, in the order of the studies.

    Raises:
        AtlasError: every study was refused; the error is the first one's, a CheckpointError or InputError as a rule.
    """
    rows: list[ScoreRow] = []
    refused: AtlasError | None = None
    for name in studies or STUDIES:
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
    """The rows of a study, all its units run in this process."""
    return study.summarize(options, [study.run(options, unit).partial for unit in study.units(options)])


DTYPES = MappingProxyType({
    "checkpoint": "object", "task": "object", "layer": "int64", "head": "int64", "score": "object",
    "value": "float64", "low": "float64", "high": "float64", "n": "Int64", "baseline": "float64", "q": "float64",
    "source": "object",
})  # fmt: skip
COLUMNS = tuple(DTYPES)


def atlas(db: Database | None, *, checkpoint: str, task: str | None = None, measure: bool = True) -> pd.DataFrame:
    """Every stored score of every head of a checkpoint, one row each.

    Only scores of the weights that the name leads to now: one of others under the same name is none of its heads'.

    Args:
        db: the user's database; None where there is none to ask.
        task: only scores of this task, and those that belong to none; None for all.
        measure: where nothing is stored or shipped, measure a first set now (seconds; on the task's rows, or the
            bundled SST-2 ones).

    Returns:
        The columns COLUMNS, those of ScoreRow, with the types of DTYPES; no row where nothing is known.

    Raises:
        CheckpointError, InputError: from measuring.
    """
    now = present_weights(checkpoint)
    stored = framed(pd.DataFrame() if db is None else atlas_rows(db, checkpoint=checkpoint, weights=now, task=task))
    scores = with_others(stored, framed(recorded_scores.rows(checkpoint, task)))
    scores = with_others(scores, framed(shipped_scores.rows(checkpoint, task)))
    if scores.empty and measure:
        scores = framed(pd.DataFrame([asdict(row) for row in measured(checkpoint, task)]))
    scores = with_others(scores, framed(shipped_hypotheses.rows(checkpoint)))
    if db is None:
        return scores
    imported = atlas_rows(db, checkpoint=checkpoint, weights=now, task=task, imported=True)
    return with_others(scores, framed(imported))


def left_out(db: Database | None, checkpoint: str) -> str:
    """A sentence on stored scores that `atlas` does not give, because they are of other weights; "" without any."""
    others = 0 if db is None else other_scores(db, checkpoint=checkpoint, weights=present_weights(checkpoint))
    if not others:
        return ""
    return (
        f"{others:,} stored scores of {checkpoint} are of other weights than it has now, or do not say of which, and "
        "are not among these."
    )


def framed(rows: pd.DataFrame) -> pd.DataFrame:
    """`rows` with the columns of ScoreRow in their order and types; others go. A p that is corrected is the q."""
    if "p" in rows and "q" in rows:
        studies = rows["score"].str.split("/").str[0]
        mine = studies.isin([study for study in studies.unique() if p_is_corrected(study)])
        rows = rows.assign(q=rows["q"].where(~mine, rows["p"]).astype("float64"))
    return rows.reindex(columns=list(COLUMNS)).astype(dict(DTYPES))


def with_others(scores: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """`scores`, and those of `others` that they do not have on the same task."""
    if scores.empty or others.empty:
        return others if scores.empty else scores
    known = set(zip(scores["task"], scores["score"], strict=True))
    new = [key not in known for key in zip(others["task"], others["score"], strict=True)]
    return pd.concat([scores, others[new]], ignore_index=True)
