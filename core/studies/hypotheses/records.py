"""The rows of the study of hypotheses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..records import Figure, Result, stated

CRITERIA = ("seen", "held out", "explained", "causal", "specific", "stable", "transfers")
SEEN_BEFORE = "seen before registration"  # the state of what would be met on inputs that nobody had looked at
LEVELLED = ("held out", "explained")  # whose p are corrected within the batch and compared with its level


@dataclass(frozen=True, kw_only=True)
class Criterion(Result):
    """The result of testing whether a hypothesis meets one of the seven CRITERIA.

    Attributes:
        subject: the head, such as L1H2. measure: what the value is. least: what it must exceed.
        n: inputs (or links). p: one-sided; adjusted: by Holm within the batch; level: of the batch.
        measured_by: study and examples. run: the stored run, if it was tested here.
        note: why it is not tested, or what else must be known.
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
    """How many of the seven criteria a head meets in the best hypothesis of a batch; or whether a hypothesis is both
    confirmed on held-out examples and causal (1 or 0). It is stored as a head score.
    """

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
    """A hypothesis about a head with the result of its test. `criteria` is empty if it has not been tested; `standing`
    is "", "withdrawn" or "earlier weights".
    """

    sentence: str
    criteria: Sequence[Criterion] = ()
    standing: str = ""

    @property
    def met(self) -> list[str]:
        """Return the names of the criteria that the hypothesis meets."""
        return [criterion.criterion for criterion in self.criteria if criterion.state == "met"]

    @property
    def verdict(self) -> str:
        """Return the result of the test in one line of text."""
        said = f"meets {', '.join(self.met)}" if self.met else "meets no criterion" if self.criteria else "not tested"
        return f"{said} ({self.standing})" if self.standing else said
