"""Result records of `frame-heads` and `index-frames`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...interval import Estimate, or_nan
from ..attention.records import Score
from ..records import Result, stated

NAMED_LINES = 20  # skipped lines that a terminal names


@dataclass(frozen=True, kw_only=True)
class SkippedLine(Result):
    """A line of a file that was skipped, with the reason."""

    where: str
    why: str


@dataclass(frozen=True, kw_only=True)
class FrameSummary(Result):
    """A summary of how strongly all heads attend along frame-semantic links.

    Attributes:
        links, links_before: number of links, and of links whose element is before its target.
        beat_places: heads that exceed the two null models of positions; None if only these were used.
        line_99, above_99: the 99th percentile of heads, and how many reach it.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("summary",)
    checkpoint: str | None = None
    direction: str | None = None
    pairing: str | None = None
    n: int
    average: str
    layers: int
    heads: int
    causal: bool | None = None
    links: int
    links_before: int
    survivors: list[str]
    beat_places: list[str] | None = None
    line_99: float
    above_99: int
    draws: int | None = None
    movable: int | None = None
    exchangeable: int | None = None
    comparable: int | None = None
    mean: float | None = None
    fixed: Mapping[str, float] | None = None
    read: int | None = None
    kept: int | None = None
    dropped: Mapping[str, int] | None = None
    skipped: int = stated(0)
    skipped_lines: Sequence[Mapping[str, str]] = stated(())

    @property
    def nulls(self) -> str:
        """Return "all" if heads must beat all four null models, or "both" for older results with two null models."""
        return "both" if self.beat_places is None else "all"


@dataclass(frozen=True, kw_only=True)
class FrameHead(Score):
    """The score of one head on frame links: the mean attention weight over n sentences or links.

    `baseline` is the weight at the same distance elsewhere, and `exchanged` that in other sentences. There is a p for
    each null model and the largest of them; q is the largest p corrected over heads. `contrast` is the mean log weight
    adjusted for query, key and distance. The fields `to_...` are mean weights on the previous, next and first token.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("head",)
    kind: str | None = stated("head")
    layer: int
    head: int
    value: float
    exchanged: float | None = None
    p_distance: float | None = None
    p_exchange: float | None = None
    p_query: float | None = None
    p_share: float | None = None
    excess: float | None = None
    p_contrast: float | None = None
    survives: bool | None = None
    q_places: float | None = None
    beats_places: bool | None = None
    above_99: bool | None = None
    to_previous: float | None = None
    to_next: float | None = None
    to_first: float | None = None

    def as_row(self) -> dict[str, Any]:
        return super().as_row() | {"name": self.name}

    @property
    def estimate(self) -> Estimate:
        return Estimate(or_nan(self.value), self.low, self.high, "weight")


@dataclass(frozen=True, kw_only=True)
class FrameSentence(Result):
    """The scores of all heads on a sentence or one frame link. In bundled results, FrameNet sentences have no text."""

    KINDS: ClassVar[tuple[str, ...]] = ("sentence",)
    id: str
    text: str
    frame: str | None
    target: str
    elements: list[str]
    before: int
    links: int
    scores: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class IndexedSlice(Result):
    """The number of annotations in one part of a FrameNet release, and the annotations that were skipped."""

    release: str
    folder: str
    annotations: int
    skipped: Sequence[Mapping[str, str]]

    @property
    def skipped_lines(self) -> list[SkippedLine]:
        return [SkippedLine.of(row) for row in self.skipped]
