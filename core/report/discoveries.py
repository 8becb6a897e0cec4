"""Summary of all tests of a report: how many are decided, and how many remain significant after FDR correction."""

from collections.abc import Sequence

import scipy  # its parts load when they are used

from ..interval import Estimate
from ..scoring.corrections import significant_at_fdr
from .claims.outcomes import FAILS, HOLDS, UNDECIDED, Decision, OutcomeWord
from .claims.registry import claim
from .records import ClaimRecord

HALVES = 1.959964  # standard errors in half of a 95 % interval
DECIDED = (HOLDS, FAILS)


def was_tested(record: ClaimRecord) -> bool:
    """Return True if a claim was tested. Claims without results, and claims that are known errors of a paper, were not
    tested."""
    return record.outcome in (*DECIDED, UNDECIDED)


def power(records: Sequence[ClaimRecord]) -> str:
    """State in a sentence how many of the tested claims of a report are decided."""
    tests = [record for record in records if was_tested(record)]
    if not tests:
        return ""
    decided = sum(record.outcome in DECIDED for record in tests)
    return f"{decided} of {len(tests)} tests by task are decided ({100 * decided / len(tests):.0f} %)."


def p_of(record: ClaimRecord) -> float | None:
    """Compute the two-sided p-value of a test from its interval, or None if the test has no interval."""
    registered = claim(record.claim)
    if not was_tested(record) or registered is None or registered.correction.counts:
        return None
    if None in (record.statistic, record.low, record.high, record.margin):
        return None
    estimate = Estimate(record.statistic or 0.0, record.low, record.high)
    clear = Decision(OutcomeWord(record.outcome), None, estimate, record.margin).clear
    return float(2 * scipy.stats.norm.sf(HALVES * clear))


def together(records: Sequence[ClaimRecord]) -> str:
    """State how many tests of the report are decided, and how many of these remain significant at a false discovery
    rate of 5 %."""
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
    )
    sentence += f"5 %. {sum(is_standing for _, is_standing in decided)} of these remain decided if the false discovery "
    sentence += f"rate over all {len(tests)} tests is 5 % (Benjamini and Yekutieli, for any dependence between tests)."
    sentence += f" The others are: {', '.join(fallen)}." if fallen else ""
    return sentence + (f" {counts} tests that count heads or classes are not included." if counts else "")
