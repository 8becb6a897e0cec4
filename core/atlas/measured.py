"""A first set of scores of any checkpoint, measured here and now on a task's bundled rows: what the atlas shows where
nothing is stored. Each study runs as its job would, unit by unit, with its usual options."""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from core.atlas.scores import CORRECTED, ScoreRow
from core.errors import AtlasError
from core.store.rows import Row
from core.studies.contract import Study

STUDIES = ("statistics", "features", "roles", "norms")
PLACE = ("x", "y", "stress")  # of the scaling of distances between heads (Clark et al.)
TASK, LIMIT = "sst2", 300


def measured(checkpoint: str, task: str | None = None, *, studies: Sequence[str] | None = None) -> list[ScoreRow]:
    """Scores of every head of `checkpoint` by these studies (all of STUDIES, unless named) on at most LIMIT dev rows.

    A study that this checkpoint cannot have (no values, no maps) is left out, unless all are. Errors: CheckpointError,
    InputError with the first study's sentence.
    """
    rows: list[ScoreRow] = []
    refused: AtlasError | None = None
    for name in studies or STUDIES:
        study: Study = import_module(f"core.studies.{name}").STUDY
        try:
            given = study.read({"checkpoint": checkpoint, "tasks": [task or TASK], "limit": LIMIT})
            rows += [score_row(name, row, "measured now") for row in scores_of(run_here(study, given))]
        except AtlasError as error:
            refused = refused or error
    if refused and not rows:
        raise refused
    return rows


def run_here(study: Study, options: Any) -> list[Row]:
    """The rows of a study, all its units run in this process."""
    return study.summarize(options, [study.run(options, unit).partial for unit in study.units(options)])


def scores_of(rows: Sequence[Row]) -> Iterator[Row]:
    """Those that are scores of heads, as the store finds them; and where each head lies in the picture of likeness."""
    for row in rows:
        if {"statistic", "layer", "head", "value"} <= row.keys():
            yield row
            if row["statistic"] == "place":
                for name in PLACE:
                    yield {**row, "statistic": f"place {name}", "value": row[name]}


def score_row(study: str, row: Row, source: str) -> ScoreRow:
    """A study's row as one of the atlas."""
    task, feature = row.get("task"), row.get("feature")
    about = "" if feature is None or feature == task else f"/{feature}"
    numbers = {name: row.get(name) for name in ("value", "low", "high", "n", "baseline")}
    numbers["q"] = row.get("p" if study in CORRECTED else "q")
    return ScoreRow(
        str(row.get("checkpoint") or row.get("after")), task, row["layer"], row["head"],
        f"{study}/{row['statistic']}{about}", source=f"{study}, {source}", **numbers,
    )  # fmt: skip
