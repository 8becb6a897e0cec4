"""One statement over all tests of a report."""

from dataclasses import replace

import pytest
from scipy.stats import norm

from core.report.claims.outcomes import UNTESTED
from core.report.headlines import p_of, together
from core.report.records import ClaimRecord

BLANK = ClaimRecord("cls-early", "features", "", "", "", "", "a", None, "holds", "", 9, None)


def claimed(z, word="holds", claim="cls-early", margin=0.2):
    """A claim whose statistic lies so many standard errors (of 0.1) from its margin."""
    value = margin + 0.1 * z
    ends = {"low": value - 0.1959964, "high": value + 0.1959964}
    return replace(BLANK, claim=claim, outcome=word, statistic=value, margin=margin, **ends)


@pytest.mark.parametrize("z", [-3.0, 0.5, 2.5])
def test_p_is_that_of_the_interval(z):
    assert p_of(claimed(z)) == pytest.approx(2 * norm.sf(abs(z)), rel=1e-5)


def test_what_counts_heads_or_has_no_interval_has_no_p():
    assert p_of(claimed(3, claim="special-tokens")) is None
    assert p_of(claimed(3, word=UNTESTED)) is None
    assert p_of(claimed(3, claim="of an earlier version")) is None
    assert p_of(BLANK) is None


def test_how_many_decisions_stand_together():
    luck = [claimed(0.5, "undecided") for _ in range(17)]
    said = together([claimed(6), claimed(-5, "does not hold"), claimed(2.1, claim="one-separator"), *luck])
    assert "3 of 20 tests with an interval are decided, each at the level of 5 %. 2 of these remain decided" in said
    assert " The others are: one-separator." in said
    assert together([]) == ""
    counted = together([claimed(6), claimed(6, claim="special-tokens")])
    assert counted.endswith("1 tests that count heads or classes are not included.")
