"""One-sentence summaries of stored runs: from their study, or from the report."""

from collections.abc import Sequence

from ..errors import JobError, StoreError
from ..store.rows import Row
from ..studies.contract import Study
from ..studies.headline import Headline
from ..studies.lookup import find_study
from .claims.outcomes import FAILS, HOLDS, KNOWN_ERROR
from .records import records_of
from .report import STUDY_NAME

SEVERAL: dict[str, str] = {HOLDS: "hold", FAILS: "do not hold"}  # outcomes as verbs in the plural


def headline(study: str, rows: Sequence[Row]) -> Headline:
    """Summarise a run in one sentence. If its study defines no summary, state the number of rows."""
    try:
        study_headline = (_report(rows) if study == STUDY_NAME else find_study(study).headline(rows)) if rows else None
    except (JobError, StoreError, KeyError, StopIteration, ValueError, TypeError, IndexError):  # of an older version
        study_headline = None
    return study_headline or Headline(f"The result has {len(rows)} row{'' if len(rows) == 1 else 's'}.")


def has_headline(study: str) -> bool:
    """Return True if runs of this study can be summarised in one sentence."""
    return study == STUDY_NAME or type(find_study(study)).headline is not Study.headline


def _report(rows: Sequence[Row]) -> Headline:
    records = records_of(rows)
    outcomes = [claim.outcome for claim in records.claims if claim.outcome != KNOWN_ERROR]  # that no checkpoint decides
    order = (HOLDS, FAILS, *dict.fromkeys(outcomes))
    counts = {name: outcomes.count(name) for name in dict.fromkeys(order) if name in outcomes}
    outcome_counts = ", ".join(
        f"{count} {SEVERAL.get(name, name) if count > 1 else name}" for name, count in counts.items()
    )
    errors = len(records.claims) - len(outcomes)
    known_errors = f" {errors} other claims are known errors of the papers." if errors else ""
    return Headline(
        f"{len(outcomes)} published claims were checked: {outcome_counts}.{known_errors}",
        len(records.steps),
        "studies",
    )
