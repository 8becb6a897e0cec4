"""Result records of head scores, for studies of attention and of representations."""

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
    """A score of a head or layer, as most studies store it. Fields are None if the stored row lacks the column.

    Attributes:
        layer, head: from 0.
        contrast, contrast_low, contrast_high: log weight corrected for other explanations, as the study defines it.
        kind: kind of row, if the study has several.
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
        return str(Head(int(self.layer or 0), int(self.head or 0)))

    @property
    def estimate(self) -> Estimate:
        return Estimate(float(self.value or 0.0), self.low, self.high)

    @property
    def effect_estimate(self) -> Estimate:
        """Return the value minus its baseline, with an interval."""
        return Estimate(float(self.effect or 0.0), self.effect_low, self.effect_high)

    @property
    def contrast_estimate(self) -> Estimate:
        """Return the contrast (log weight corrected for other explanations) with its interval; None if the row has no
        contrast."""
        return Estimate(float(self.contrast or 0.0), self.contrast_low, self.contrast_high)

    @classmethod
    def of_heads(cls: type[S], rows: Iterable[Mapping[str, Any]]) -> list[S]:
        """Return the scores of heads that have a value. Rows with only a note are left out."""
        return [score for score in cls.among(rows) if score.layer is not None and score.value is not None]


@dataclass(frozen=True, kw_only=True)
class RelationScore(Score):
    """The score of a head for one relation in one direction (`statistic`). `accuracy` is how often its largest weight
    is on the related word, compared with the best fixed distance, the previous word and the next word."""

    accuracy: float | None = None
    accuracy_low: float | None = None
    accuracy_high: float | None = None
    best_distance: int | None = None
    best_distance_accuracy: float | None = None
    previous_accuracy: float | None = None
    next_accuracy: float | None = None


@dataclass(frozen=True, kw_only=True)
class DependencyScore(Score):
    """The test score of the head that is best on dev for one dependency relation and direction. `dev` is its accuracy
    there on `dev_n` links. The baseline is the fixed distance that is best on dev, and `chosen` marks the better
    direction."""

    distance: int | None = None
    dev: float | None = None
    dev_n: int | None = None
    dev_baseline: float | None = None
    chosen: bool | None = None

    @property
    def estimate(self) -> Estimate:
        """Return the accuracy on test with its interval. Bounds are limited to 1, which early results may exceed."""
        return Estimate(
            float(self.value or 0.0), self.low, None if self.high is None else min(self.high, 1.0), "accuracy"
        )


@dataclass(frozen=True, kw_only=True)
class BudgetScore(Score):
    """The share of a head's attention that goes to one category of keys (`feature`).

    `baseline` is the share under uniform attention, `enrichment` is value / baseline, and `effect` is the share minus
    that of other words at the same distances.
    """

    enrichment: float | None = None
    enrichment_low: float | None = None
    enrichment_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class RoleScore(Score):
    """The score of a head for a role. `has` states whether the head has the role after correction (None: not
    tested)."""

    role: str | None = None
    has: bool | None = None


@dataclass(frozen=True, kw_only=True)
class PlaceScore(Score):
    """A statistic of a head. The statistic "place" also has the position of the head in the similarity plot (x, y,
    stress), its most frequent behaviour (`kind`), and as its value the mean distance from the other heads."""

    queries: int | None = None
    x: float | None = None
    y: float | None = None
    stress: float | None = None
    sum: float | None = None


@dataclass(frozen=True, kw_only=True)
class EffectiveScore(Score):
    """The raw or effective attention (`statistic`) of a head to one token type (`feature`; None for the correlation
    r)."""

    feature: str | None = stated()


@dataclass(frozen=True, kw_only=True)
class LengthCorrelation(Result):
    """The mean correlation r between raw and effective attention over n inputs with lengths in a range of tokens."""

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
    """An input for which fine-tuning changed the map of a head much: its ID, and the cosine of the maps before and
    after."""

    row: Any
    cosine: float


@dataclass(frozen=True, kw_only=True)
class ChangeScore(Result):
    """The similarity of attention maps before and after fine-tuning over n inputs, for a head or layer (`kind`)."""

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
        """Return the inputs on which fine-tuning changed the attention map of this head most."""
        return [ChangedInput.of(row) for row in self.changed_most or ()]


# ---------------------------------------------------------------- heads that are alike, layers that are


@dataclass(frozen=True, kw_only=True)
class AlikeHead(Result):
    """A head with its nearest head (`other`, at the distance `value`), and its group of similar heads."""

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
    """The group of similar heads that a head belongs to: its number (statistic "group"), and how clearly ("clear")."""

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
    """The distance of a head to itself on other inputs minus the distance to its nearest head (`other`) on the same
    inputs, with an interval over n pairs of inputs."""

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
    """The fraction of heads that are nearer to another head on the same inputs than to themselves on other inputs.

    Attributes:
        draw: draw of random weights, from 1; None for the checkpoint.
        share: None if there are too few inputs.
        low, high: fractions of heads that are significantly nearer (corrected over heads), and that may be nearer.
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
    """The correlation r, over pairs of heads, between the head similarities of two (checkpoint, task) pairs."""

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
    """A statistic of the word vectors in one layer, over n rows."""

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
    """Return a one-sentence summary: how many heads are significantly above their baseline, and which is the strongest.

    Only the first checkpoint is counted. `baseline` describes the baseline, and `of` what the sample size counts.
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
        f"The value of the baseline ({baseline}) is {best.baseline:.2f}.",
    )


def outstanding(rows: Sequence[Row], by: str) -> list[list[Row] | str]:
    """Return the rows to print: the largest values in column `by` for each checkpoint, task, statistic and feature,
    then notes about missing values. Differences are ranked by their absolute value."""
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
