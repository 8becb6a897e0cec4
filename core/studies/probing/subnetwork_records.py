"""The rows of subnetworks: what is left of a checkpoint, fine-tuned, and of what it consists."""

from dataclasses import dataclass
from typing import ClassVar

from ..estimate import Estimate
from ..records import Figure, Result, column
from ..valued_records import Valued


@dataclass(frozen=True, kw_only=True)
class Subnetwork(Valued):
    """What is left of a checkpoint, fine-tuned.

    Attributes:
        kind: "curve", a point of one by magnitude; "subnetwork" (full, good, bad, random); "difference", what one has
            more than another; "baseline", the constant predictor.
        share: of the weights that went, 0 to 1.
        change, change_low, change_high: against nothing pruned, with its 95 % interval.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("curve", "subnetwork", "difference", "baseline")
    FIGURE = Figure("value", "{kind}|{metric}")
    kind: str
    metric: str | None = None
    seeds: int | None = None
    scope: str | None = None
    moment: str | None = None
    share: float | None = None
    change: float | None = None
    change_low: float | None = None
    change_high: float | None = None
    constant: float | None = None

    @property
    def change_estimate(self) -> Estimate:
        """What it loses against nothing pruned; 0 without an interval where that is not known."""
        return Estimate(float(self.change or 0.0), self.change_low, self.change_high)


@dataclass(frozen=True, kw_only=True)
class SubnetworkComponent(Result):
    """In what share of n seeds a head or block survived; place: mean place in the order of all `of_components`,
    1 the first to go."""

    KINDS: ClassVar[tuple[str, ...]] = ("component",)
    FIGURE = Figure("value", "share of seeds that it survives")
    name: str
    value: float
    n: int
    place: float
    of_components: int = column("of")


@dataclass(frozen=True, kw_only=True)
class SurvivorClass(Valued):
    """A pattern class's share of the surviving heads' maps less that of the others', over n inputs; share: among the
    survivors."""

    KINDS: ClassVar[tuple[str, ...]] = ("survivor class",)
    FIGURE = Figure("value", "share among survivors beyond the others")
    share: float
