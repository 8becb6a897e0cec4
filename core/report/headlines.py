"""Summaries of results: a stored run in one sentence, and the tests of a report, with how many are decided and how many
remain significant after FDR correction.
"""

from collections.abc import Sequence

import scipy  # its parts load when they are used

from ..errors import JobError, StoreError
from ..interval import Estimate
from ..scoring.corrections import significant_at_fdr
from ..store.rows import Row
from ..studies.contract import Study
from ..studies.headline import Headline
from ..studies.lookup import find_study
from .claims import claim
from .claims.outcomes import FAILS, HOLDS, KNOWN_ERROR, UNDECIDED, Decision, OutcomeWord
from .records import REPORT, ClaimRecord, records_of

SEVERAL: dict[str, str] = {HOLDS: "hold", FAILS: "do not hold"}  # outcomes as verbs in the plural


def headline(study: str, rows: Sequence[Row]) -> Headline:
    """Summarise a run in one sentence. For a study that defines no summary, state the number of rows."""
    try:
        study_headline = (_report(rows) if study == REPORT else find_study(study).headline(rows)) if rows else None
    except (JobError, StoreError, KeyError, StopIteration, ValueError, TypeError, IndexError):  # of an older version
        study_headline = None
    return study_headline or Headline(f"The result has {len(rows)} row{'' if len(rows) == 1 else 's'}.")


def has_headline(study: str) -> bool:
    """Return True if runs of this study can be summarised in one sentence."""
    return study == REPORT or type(find_study(study)).headline is not Study.headline


def _report(rows: Sequence[Row]) -> Headline:
    records = records_of(rows)
    # No checkpoint decides a known error
    outcomes = [record.outcome for record in records.claims if record.outcome != KNOWN_ERROR]
    order = (HOLDS, FAILS, *dict.fromkeys(outcomes))
    counts = {name: outcomes.count(name) for name in dict.fromkeys(order) if name in outcomes}
    outcome_counts = ", ".join(
        f"{count} {SEVERAL.get(name, name) if count > 1 else name}" for name, count in counts.items()
    )
    tests = f"Tests of claims, counted for each checkpoint and task: {outcome_counts}."
    if not outcomes:
        tests = "No claim was tested."
    errors = len({record.claim for record in records.claims if record.outcome == KNOWN_ERROR})
    are_errors = "claims are known errors" if errors > 1 else "claim is a known error"
    known_errors = f" {errors} other {are_errors} of the sources." if errors else ""
    return Headline(
        f"{tests}{known_errors}",
        len(records.steps),
        "studies",
    )


# ---------------------------------------------------------------- all tests of a report


HALVES = 1.959964  # standard errors in half of a 95 % interval
DECIDED = (HOLDS, FAILS)


def was_tested(record: ClaimRecord) -> bool:
    """Return True if a claim was tested. Claims without results, and claims that are known errors of a paper, count as
    not tested."""
    return record.outcome in (*DECIDED, UNDECIDED)


def power(records: Sequence[ClaimRecord]) -> str:
    """State in a sentence how many of the tested claims of a report are decided."""
    tests = [record for record in records if was_tested(record)]
    if not tests:
        return ""
    decided = sum(record.outcome in DECIDED for record in tests)
    return f"{decided} of {len(tests)} tests by task are decided ({100 * decided / len(tests):.0f} %)."


def p_of(record: ClaimRecord) -> float | None:
    """Compute the two-sided p-value of a test from its interval; None without one or if it counts heads."""
    registered = claim(record.claim)
    if not was_tested(record) or registered is None or registered.correction.counts:
        return None
    if None in (record.statistic, record.low, record.high, record.margin):
        return None
    estimate = Estimate(record.statistic or 0.0, record.low, record.high)
    clear = Decision(OutcomeWord(record.outcome), None, estimate, record.margin).clear
    return float(2 * scipy.stats.norm.sf(HALVES * clear))


def together(records: Sequence[ClaimRecord]) -> str:
    """State how many tests are decided, and how many remain decided at a false discovery rate of 5 %."""
    tests = [(record, p) for record in records if (p := p_of(record)) is not None]
    if not tests:
        return ""
    stands = significant_at_fdr([p for _, p in tests])
    decided = [
        (record, is_standing)
        for (record, _), is_standing in zip(tests, stands, strict=True)
        if record.outcome != UNDECIDED
    ]
    fallen = list(dict.fromkeys(record.claim for record, is_standing in decided if not is_standing))
    counts = sum(
        record.outcome in DECIDED and (registered := claim(record.claim)) is not None and registered.correction.counts
        for record in records
    )
    sentence = (
        f"{power(records)} {len(decided)} of {len(tests)} tests with an interval are decided, each at the level of "
        f"5 %. {sum(is_standing for _, is_standing in decided)} of these remain decided if the false discovery "
        f"rate over all {len(tests)} tests is 5 % (Benjamini and Yekutieli, for any dependence between tests)."
    )
    sentence += f" The others are: {', '.join(fallen)}." if fallen else ""
    return sentence + (f" {counts} tests that count heads or classes are not included." if counts else "")
