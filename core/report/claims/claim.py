"""What a claim is: a sentence of a source, the test of it, and by what that decides."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..ids import ExhibitId
from .outcomes import Test


@dataclass(frozen=True)
class Correction:
    """What is done about many heads, layers or classes. holds, fails, undecided: what these outcomes then mean; counts:
    whether it is decided by counting, not by one interval."""

    says: str
    holds: str
    fails: str
    undecided: str
    counts: bool = False


@dataclass(frozen=True)
class Claim:
    """A sentence of a source, and the test of it.

    Attributes:
        sentence, source, section: what is claimed, and where.
        causal: of which checkpoints it is, decoders (True) or encoders.
        margin: what its statistic is held against (of two numbers that are compared, their difference); None of what is
            no test or has a floor of its own on each task.
        tuned: whether it is about what fine-tuning changes, so that its seeds are said.
        error: what is known to be wrong with it; "" where nothing is.
    """

    id: str
    sentence: str
    source: str
    exhibit: ExhibitId
    test: Test
    correction: Correction
    section: str = ""
    causal: Sequence[bool] = (False, True)
    margin: float | None = None
    tuned: bool = False
    error: str = ""

    @property
    def statistic(self) -> str:
        """What the test tests, in the words of its function."""
        return " ".join((self.test.__doc__ or "").split())

    @property
    def meanings(self) -> tuple[str, ...]:
        """What holds, does not hold and undecided mean of it."""
        margin = "its floor" if self.margin is None else f"{self.margin:.3g}"
        templates = (self.correction.holds, self.correction.fails, self.correction.undecided)
        return tuple(meaning.format(margin=margin) for meaning in templates)
