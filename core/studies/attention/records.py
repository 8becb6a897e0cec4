"""Head scores: the rows of studies of where heads look (features, relations, roles, norms, statistics, effective,
dependencies, change, redundancy, representation)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from ...attention import Head
from ...interval import Estimate
from ...store.rows import Row
from ..headline import SIGNIFICANT, Headline, head_interval
from ..records import Figure, Result, stated

S = TypeVar("S", bound="Score")


@dataclass(frozen=True, kw_only=True)
class Score(Result):
    """A score of a head or layer, in the form in which most studies store scores. A field is None if the stored row has
    no such column.

    Attributes:
        layer, head: from 0.
        contrast, contrast_low, contrast_high: log weight corrected for other explanations, as the study defines it.
        kind: of row, if the study has several.
    """

    FIGURE = Figure("value", "{statistic}|{feature}|{task}")
    checkpoint: str | None = None
    task: str | None = None
    statistic: str | None = None
    feature: str | None = None
    layer: int | None = None
    head: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    baseline: float | None = None
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None
    contrast: float | None = None
    contrast_low: float | None = None
    contrast_high: float | None = None
    p: float | None = None
    q: float | None = None
    note: str | None = None
    kind: str | None = None
    part: str | None = None

    @property
    def name(self) -> str:
        """ "L1H2"."""
        return str(Head(int(self.layer or 0), int(self.head or 0)))

    @property
    def estimate(self) -> Estimate:
        """Return the value of the score with its interval."""
        return Estimate(float(self.value or 0.0), self.low, self.high)

    @property
    def effect_estimate(self) -> Estimate:
        """Return the value of the score minus its baseline, with its interval."""
        return Estimate(float(self.effect or 0.0), self.effect_low, self.effect_high)

    @property
    def contrast_estimate(self) -> Estimate:
        """Return the contrast of the score (the log weight corrected for other explanations) with its interval, if the
        row has one.
        """
        return Estimate(float(self.contrast or 0.0), self.contrast_low, self.contrast_high)

    @classmethod
    def of_heads(cls: type[S], rows: Iterable[Mapping[str, Any]]) -> list[S]:
        """Return the scores of heads that have a value. Rows that only have a note are left out."""
        return [score for score in cls.among(rows) if score.layer is not None and score.value is not None]


@dataclass(frozen=True, kw_only=True)
class RelationScore(Score):
    """The score of a head along one relation in one direction (`statistic`). `accuracy` is how often its largest weight
    is on the related word; the accuracies of the best fixed distance and of the previous and next word are given for
    comparison.
    """

    accuracy: float | None = None
    accuracy_low: float | None = None
    accuracy_high: float | None = None
    best_distance: int | None = None
    best_distance_accuracy: float | None = None
    previous_accuracy: float | None = None
    next_accuracy: float | None = None


@dataclass(frozen=True, kw_only=True)
class DependencyScore(Score):
    """The test score, for one dependency relation and direction, of the head that is best on dev (accuracy `dev` on
    `dev_n` links), with the fixed distance that is best on dev. `chosen` marks the better direction.
    """

    distance: int | None = None
    dev: float | None = None
    dev_n: int | None = None
    dev_baseline: float | None = None
    chosen: bool | None = None

    @property
    def estimate(self) -> Estimate:
        """Return the accuracy on test with its interval. Bounds are limited to 1, because early results may
        exceed it.
        """
        return Estimate(
            float(self.value or 0.0), self.low, None if self.high is None else min(self.high, 1.0), "accuracy"
        )


@dataclass(frozen=True, kw_only=True)
class BudgetScore(Score):
    """The share of a head's attention that goes to one category of keys (`feature`). `baseline` is the share under
    uniform attention, `enrichment` is value / baseline, and `effect` is the share minus that of other words at the same
    distances.
    """

    enrichment: float | None = None
    enrichment_low: float | None = None
    enrichment_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class RoleScore(Score):
    """The score of a head for a role. `has` says whether the head has the role after correction; None if this is not
    tested.
    """

    role: str | None = None
    has: bool | None = None


@dataclass(frozen=True, kw_only=True)
class PlaceScore(Score):
    """A statistic of a head. For the statistic "place", also the head's position in the similarity plot (x, y, stress),
    its most frequent behaviour (`kind`), and its mean distance from the other heads (`value`).
    """

    queries: int | None = None
    x: float | None = None
    y: float | None = None
    stress: float | None = None
    sum: float | None = None


@dataclass(frozen=True, kw_only=True)
class EffectiveScore(Score):
    """The attention of a head to one token type (`feature`), raw or effective (`statistic`); `feature` is None for the
    correlation r of both.
    """

    feature: str | None = stated()


@dataclass(frozen=True, kw_only=True)
class LengthCorrelation(Result):
    """The mean correlation r of raw and effective attention over n inputs whose length is in a range of tokens."""

    BY: ClassVar[str] = "statistic"
    KINDS: ClassVar[tuple[str, ...]] = ("correlation by length",)
    checkpoint: str | None = None
    task: str
    statistic: str = stated("correlation by length")
    length_from: int
    length_to: int
    mean: float
    n: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class ChangedInput(Result):
    """An input on which fine-tuning changed a head's map much: its example ID, and the cosine of the maps before and
    after.
    """

    row: Any
    cosine: float


@dataclass(frozen=True, kw_only=True)
class ChangeScore(Result):
    """The similarity of attention maps before and after fine-tuning, of a head (kind "head") or a layer (kind "layer"),
    over n inputs.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("head", "layer")
    FIGURE = Figure("value", "{statistic}|{feature}|{task}")
    kind: str
    before: str | None = None
    after: str
    task: str
    statistic: str
    layer: int
    head: int | None = None
    value: float | None
    low: float | None
    high: float | None
    n: int
    feature: str | None = None
    changed_most: Sequence[Mapping[str, Any]] = ()

    @property
    def name(self) -> str:
        """Return "L1H2" for a head, or "L1" for a layer."""
        return f"L{self.layer + 1}" if self.head is None else str(Head(self.layer, self.head))

    @property
    def most_changed(self) -> list[ChangedInput]:
        """Return the inputs on which fine-tuning changed the head's map most."""
        return [ChangedInput.of(row) for row in self.changed_most or ()]


# ---------------------------------------------------------------- heads that are alike, layers that are


@dataclass(frozen=True, kw_only=True)
class AlikeHead(Result):
    """A head with its nearest head (`other`, at the distance `value`), its group of similar heads, and how clearly it
    belongs to the group.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("head",)
    FIGURE = Figure("value", "distance to the nearest head|{task}")
    checkpoint: str
    task: str
    layer: int
    head: int
    name: str
    kind: str = stated("head")
    statistic: str = stated("nearest")
    value: float
    n: int
    other: str
    group: int
    clear: float


@dataclass(frozen=True, kw_only=True)
class GroupMember(Result):
    """A head's membership in a group of similar heads, stored as scores: the number of the group (statistic "group"),
    and how clearly the head belongs to it ("clear").
    """

    KINDS: ClassVar[tuple[str, ...]] = ("member",)
    FIGURE = Figure("value", "{statistic}|{task}")
    checkpoint: str
    task: str
    layer: int
    head: int
    name: str
    kind: str = stated("member")
    statistic: str
    value: float
    n: int


@dataclass(frozen=True, kw_only=True)
class RepeatedHead(Result):
    """The distance of a head to itself on other inputs, minus its distance to the nearest other head (`other`) on the
    same inputs, with an interval over n pairs of inputs.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("repeated",)
    FIGURE = Figure("value", "nearer to another head than to itself|{task}")
    checkpoint: str
    task: str
    kind: str = stated("repeated")
    statistic: str = stated("repeated")
    layer: int
    head: int
    name: str
    value: float
    low: float
    high: float
    n: int
    other: str


@dataclass(frozen=True, kw_only=True)
class RepeatedShare(Result):
    """The share of heads that are nearer to another head on the same inputs than to themselves on other inputs.

    Attributes:
        draw: of random weights, from 1; None: the checkpoint.
        share: None if there are too few inputs.
        low, high: share of heads that are significantly nearer (corrected over heads), and of heads that may be.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("repeats", "repeats at random")
    checkpoint: str
    task: str
    kind: str = stated("repeats")
    draw: int | None = None
    share: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, kw_only=True)
class HeadGroup(Result):
    """A group of similar heads in one checkpoint and task, with its mean pattern [query, key]."""

    KINDS: ClassVar[tuple[str, ...]] = ("group",)
    checkpoint: str
    task: str
    kind: str = stated("group")
    group: int
    heads: int
    pattern: Sequence[Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class LikenessKept(Result):
    """How well the similarities between heads agree in two pairs of checkpoint and task: the correlation r over pairs
    of heads.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("kept",)
    between: str
    checkpoint: str
    task: str
    other_checkpoint: str
    other_task: str
    r: float | None
    low: float | None
    high: float | None
    p: float | None
    pairs: int
    n: int


@dataclass(frozen=True, kw_only=True)
class LayerSimilarity(Result):
    """A statistic of the words' vectors in one layer, over n rows."""

    KINDS: ClassVar[tuple[str, ...]] = ("layer",)
    FIGURE = Figure("value", "{similarity}|{task}")
    similarity: str
    layer: int
    name: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    task: str | None = None


# ---------------------------------------------------------------- headlines and tables


BEST = 3  # rows of each feature that a table shows
SHOWN = (
    "checkpoint", "task", "statistic", "feature", "head", "value", "low", "high", "n", "baseline", "q", "distance",
    "dev", "kind", "has", "length_from", "length_to", "mean",
)  # fmt: skip


def above_null(
    scores: Sequence[Score], what: str, look: Callable[[Score], str], *, baseline: str, of: str = "inputs"
) -> Headline:
    """Return a one-sentence summary: how many heads of the first checkpoint are significantly above their baseline, and
    which is the strongest.

    `baseline` says in words what attention is compared with, and `of` says what the sample size counts.
    """
    first = scores[0].checkpoint if scores else None
    effects = [
        (score, score.effect)
        for score in scores
        if score.checkpoint == first and score.layer is not None and score.effect is not None
    ]
    if not effects:
        return Headline("No input contains what this study measures, so no head was measured.")
    sure = [(score, effect) for score, effect in effects if (score.q or 1) < SIGNIFICANT and effect > 0]
    best, _ = max(sure or effects, key=lambda pair: pair[1])
    numbers = f"{best.value:.2f}, compared with {best.baseline:.2f}"
    if sure:
        found = (
            f"In {len(sure):,} of {len(effects):,} {what}, attention is significantly higher than for {baseline}. "
            f"{look(best)}: {numbers}."
        )
    else:
        found = (
            f"In none of {len(effects):,} {what}, attention is significantly higher than for {baseline}. The largest "
            f"difference is {best.name}, {best.feature}: {numbers}."
        )
    return Headline(
        found,
        best.n,
        of,
        head_interval(best.name, best.low, best.high),
        f"For {baseline}, the value is {best.baseline:.2f}.",
    )


def outstanding(rows: Sequence[Row], by: str) -> list[list[Row] | str]:
    """Return the rows to print: those with the largest values in column `by`, for each checkpoint, task, statistic and
    feature, then notes about what has no values. Differences are ranked by their size.
    """
    groups: dict[tuple[Any, ...], list[tuple[float, Row]]] = {}
    for row in rows:
        score = Score.of(row)
        size = abs(score.value or 0.0) if score.checkpoint == "difference" else row.get(by, row.get("mean"))
        if size is not None and row.get("chosen", True):
            key = tuple(row.get(name) for name in ("checkpoint", "task", "statistic", "feature", "length_from"))
            named = row | {"head": None if score.layer is None else score.name}
            groups.setdefault(key, []).append((size, {column: named[column] for column in SHOWN if column in named}))
    best = [sorted(sized, key=lambda pair: -pair[0])[:BEST] for sized in groups.values()]
    notes = [f"{score.feature or score.statistic}: {score.note}" for score in Score.among(rows) if score.note]
    return [[row for sized in best for _, row in sized], *dict.fromkeys(notes)]
