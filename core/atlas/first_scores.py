"""A first set of scores of any checkpoint, measured here and now on a task's bundled rows: what the atlas shows where
nothing is stored. Each study runs as its job would, unit by unit, with its usual options."""

from collections.abc import Sequence
from typing import Any

from core.atlas.rows import ScoreRow, score_row, scores_of
from core.errors import AtlasError
from core.store.rows import Row
from core.studies.attention import features, norms, roles, statistics
from core.studies.contract import Study
from core.studies.lookup import find_study

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
