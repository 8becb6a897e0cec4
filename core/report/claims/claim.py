"""What a claim is: a sentence of a source and the test of it."""

from dataclasses import dataclass

from core.report.claims.outcomes import Test
from core.report.claims.rules import RULES, Rule
from core.report.exhibits import BOTH
from core.report.ids import ExhibitId


@dataclass(frozen=True)
class Claim:
    """A sentence of a source. test: on the evidence of one checkpoint; error: what is known to be wrong with it."""

    id: str
    sentence: str
    source: str
    section: str
    exhibit: ExhibitId
    test: Test
    causal: tuple[bool, ...] = BOTH
    error: str = ""

    @property
    def rule(self) -> Rule:
        """By what the test decides."""
        return RULES[self.id]

    @property
    def statistic(self) -> str:
        """What the test tests, in the words of its function."""
        return " ".join((self.test.__doc__ or "").split())
