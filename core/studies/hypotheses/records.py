"""Result records of tests of hypotheses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..records import Figure, Result, stated

CRITERIA = ("seen", "held out", "explained", "causal", "specific", "stable", "transfers")
SEEN_BEFORE = "seen before registration"  # state instead of "met" if earlier stored runs used the inputs
LEVELLED = ("held out", "explained")  # whose p are corrected within the batch and compared with its level


@dataclass(frozen=True, kw_only=True)
class Criterion(Result):
    """The result of testing one of the seven criteria for a hypothesis about a head, with the measured value.

    Attributes:
        subject: the head, such as L1H2.
        measure, least: what the value is, and what it must exceed.
        n: number of inputs (or links).
        p, adjusted, level: one-sided p, p adjusted by Holm within the batch, and level of the batch.
        measured_by, run: study and examples, and the stored run if the test was made here.
        note: why the criterion is not tested, or what to consider.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("criterion",)
    hypothesis: str
    subject: str
    sentence: str
    criterion: str
    state: str
    measure: str = stated("")
    amount: float | None = stated()
    low: float | None = stated()
    high: float | None = stated()
    least: float | None = stated()
    baseline: float | None = stated()
    n: int | None = stated()
    p: float | None = stated()
    adjusted: float | None = stated()
    level: float | None = stated()
    measured_by: str = stated("")
    run: str | None = stated()
    note: str = stated("")


@dataclass(frozen=True, kw_only=True)
class CriteriaMet(Result):
    """The largest number of criteria that a hypothesis about a head meets. For the statistic "held out and causal", 1
    if a hypothesis meets both of these criteria and 0 otherwise."""

    KINDS: ClassVar[tuple[str, ...]] = ("criteria met",)
    FIGURE = Figure("value", "{statistic}")
    checkpoint: str
    name: str
    layer: int
    head: int
    statistic: str
    value: float
    n: int


@dataclass(frozen=True)
class JudgedHypothesis:
    """A hypothesis about a head with its test result. `criteria` is empty if the hypothesis has not been tested."""

    sentence: str
    criteria: Sequence[Criterion] = ()
    standing: str = ""

    @property
    def met(self) -> list[str]:
        return [criterion.criterion for criterion in self.criteria if criterion.state == "met"]

    @property
    def verdict(self) -> str:
        said = f"meets {', '.join(self.met)}" if self.met else "meets no criterion" if self.criteria else "not tested"
        return f"{said} ({self.standing})" if self.standing else said
