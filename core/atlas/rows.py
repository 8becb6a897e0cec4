"""The atlas' row, and which rows of a study are scores of heads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ..errors import JobError
from ..store.rows import Row
from ..studies.lookup import find_study

PLACE = ("x", "y", "stress")  # of the scaling of distances between heads (Clark et al.)


@dataclass(frozen=True)
class ScoreRow:
    """One score of one head; None where a score has no such thing.

    Attributes:
        layer, head: zero-based.
        score: the study, what was measured, and of what, between slashes.
        value, low, high: with its 95 % interval.
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
    """Whether p of the study's rows is corrected over all heads already; not of a study that there is no more."""
    try:
        return find_study(study).p_is_corrected
    except JobError:
        return False


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
    numbers["q"] = row.get("p" if p_is_corrected(study) else "q")
    return ScoreRow(
        str(row.get("checkpoint") or row.get("after")), task, row["layer"], row["head"],
        f"{study}/{row['statistic']}{about}", source=f"{study}, {source}", **numbers,
    )  # fmt: skip
