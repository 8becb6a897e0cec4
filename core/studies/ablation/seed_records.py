"""The rows of fine-tuning with seeds apart, and the parts of a cross-fitted sweep."""

from dataclasses import dataclass
from typing import ClassVar

from ..records import Figure, Result

SEED_WORDS = {"head": "head's first weights", "rows": "sample of rows", "order": "order of batches", "rest": "rest"}


@dataclass(frozen=True, kw_only=True)
class SeededRun(Result):
    """One run of the square: its seeds, its score, its most important heads between spaces."""

    KINDS: ClassVar[tuple[str, ...]] = ("run",)
    task: str
    metric: str
    name: str
    head_seed: int
    rows_seed: int
    order_seed: int
    score: float | None
    constant: bool
    train_rows: int
    dev_rows: int
    baseline: float | None
    heads: str
    folder: str | None


@dataclass(frozen=True, kw_only=True)
class SeedSource(Result):
    """A seed's part in the spread of the scores (core.scoring.seeds.VarianceSource); "rest": what none explains."""

    KINDS: ClassVar[tuple[str, ...]] = ("source",)
    FIGURE = Figure("share", "share of the spread|{task}|{metric}")
    name: str
    task: str | None = None
    metric: str
    n: int
    share: float | None
    by_chance: float
    deviation: float | None
    variance: float | None
    low: float | None
    high: float | None
    p: float | None


@dataclass(frozen=True, kw_only=True)
class SeedSpread(Result):
    """Scores over all runs, None where one is undefined; dev_error: standard error that the dev rows leave to one."""

    KINDS: ClassVar[tuple[str, ...]] = ("spread",)
    task: str
    metric: str
    n: int
    mean: float | None
    deviation: float | None
    least: float | None
    most: float | None
    dev_error: float | None
    dev_rows: int
    constant: int

    @property
    def ends(self) -> str:
        """The lowest and the highest score, in points."""
        if self.least is None or self.most is None:
            return "is undefined in some run"
        return f"{100 * self.least:.1f} to {100 * self.most:.1f}"


@dataclass(frozen=True, kw_only=True)
class HeadOverlap(Result):
    """Shared most important heads, as a share of `top`, over pairs of runs; by_chance: of two random choices."""

    KINDS: ClassVar[tuple[str, ...]] = ("overlap",)
    FIGURE = Figure("value", "overlap of the most important heads|{task}")
    name: str
    top: int
    value: float
    low: float | None
    high: float | None
    pairs: int
    by_chance: float
    task: str | None = None
    metric: str | None = None
    n: int | None = None


@dataclass(frozen=True, kw_only=True)
class StableHead(Result):
    """In how many of n runs a head is among the most important."""

    KINDS: ClassVar[tuple[str, ...]] = ("head",)
    name: str
    layer: int
    head: int
    runs: int
    n: int
    top: int | None = None
    task: str | None = None
    metric: str | None = None


@dataclass(frozen=True, kw_only=True)
class CrossedPart(Result):
    """A part of the rows, tested by the model that never saw it; baseline: the constant predictor."""

    KINDS: ClassVar[tuple[str, ...]] = ("fold",)
    name: str
    task: str | None = None
    metric: str
    n: int
    score: float | None
    baseline: float | None
    train_rows: int
    constant: bool
    folder: str | None = None
