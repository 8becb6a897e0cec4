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
    """The score of one attention head or layer. Columns that the stored row lacks are None.

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
        return Estimate(float(self.effect or 0.0), self.effect_low, self.effect_high)

    @property
    def contrast_estimate(self) -> Estimate:
        """Return the contrast with its interval. The contrast is the part of the log attention weight that position and
        other factors do not explain."""
        return Estimate(float(self.contrast or 0.0), self.contrast_low, self.contrast_high)

    @classmethod
    def of_heads(cls: type[S], rows: Iterable[Mapping[str, Any]]) -> list[S]:
        """Return the scores of heads and layers. Rows without a layer or without a value are ignored."""
        return [score for score in cls.among(rows) if score.layer is not None and score.value is not None]


@dataclass(frozen=True, kw_only=True)
class RelationScore(Score):
    """The score of a head for a syntactic relation. `accuracy` is how often the first word of a link attends most to
    the second word (backward: gets most attention from it)."""

    accuracy: float | None = None
    accuracy_low: float | None = None
    accuracy_high: float | None = None
    best_distance: int | None = None
    best_distance_accuracy: float | None = None
    previous_accuracy: float | None = None
    next_accuracy: float | None = None


@dataclass(frozen=True, kw_only=True)
class DependencyScore(Score):
    """For one dependency relation and direction, the test accuracy of the head that is most accurate on dev."""

    distance: int | None = None
    dev: float | None = None
    dev_n: int | None = None
    dev_baseline: float | None = None
    chosen: bool | None = None

    @property
    def estimate(self) -> Estimate:
        """Return the accuracy on the test split with its confidence interval. The upper bound is at most 1."""
        return Estimate(
            float(self.value or 0.0), self.low, None if self.high is None else min(self.high, 1.0), "accuracy"
        )


@dataclass(frozen=True, kw_only=True)
class BudgetScore(Score):
    """The share of a head's attention that goes to one category of keys, such as separators.

    `baseline` is the share under uniform attention, `enrichment` is value / baseline, and `effect` is the share minus
    that of other words at the same distances.
    """

    enrichment: float | None = None
    enrichment_low: float | None = None
    enrichment_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class RoleScore(Score):
    """The score of a head for one role, such as "induction". `has` is True if the head takes this role."""

    role: str | None = None
    has: bool | None = None


@dataclass(frozen=True, kw_only=True)
class PlaceScore(Score):
    """One statistic of a head. If `statistic` is "place", `x` and `y` are its coordinates in the similarity plot."""

    queries: int | None = None
    x: float | None = None
    y: float | None = None
    stress: float | None = None
    sum: float | None = None


@dataclass(frozen=True, kw_only=True)
class EffectiveScore(Score):
    """The raw or effective attention of a head to one token type, or the correlation between raw and effective
    attention."""

    feature: str | None = stated()


@dataclass(frozen=True, kw_only=True)
class LengthCorrelation(Result):
    """The mean correlation between raw and effective attention, over n inputs whose lengths are in a given range."""

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
    """An input on which fine-tuning changed a head's map, and the cosine similarity of the map before and after."""

    row: Any
    cosine: float


@dataclass(frozen=True, kw_only=True)
class ChangeScore(Result):
    """The similarity or divergence of maps before and after fine-tuning, for one head or layer over n inputs."""

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
        return f"L{self.layer + 1}" if self.head is None else str(Head(self.layer, self.head))

    @property
    def most_changed(self) -> list[ChangedInput]:
        return [ChangedInput.of(row) for row in self.changed_most or ()]


# ---------------------------------------------------------------- heads that are alike, layers that are


@dataclass(frozen=True, kw_only=True)
class AlikeHead(Result):
    """An attention head with its nearest head (`other`), their distance, and the head's group of similar heads."""

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
    """The group of similar heads to which a head belongs. If `statistic` is "group", `value` is the group number. If it
    is "clear", `value` is the silhouette."""

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
    """How much nearer a head is to another head on the same inputs than to itself on different inputs."""

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
    """A group of similar attention heads in one checkpoint and task. `pattern` is their mean map [query, key]."""

    KINDS: ClassVar[tuple[str, ...]] = ("group",)
    checkpoint: str
    task: str
    kind: str = stated("group")
    group: int
    heads: int
    pattern: Sequence[Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class LikenessKept(Result):
    """The correlation between head similarities in two settings. A setting is a combination of checkpoint and task."""

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
    """The similarity of token vectors, or the entropy of attention, in one layer: the mean over n inputs."""

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
    scores: Sequence[Score],
    what: str,
    look: Callable[[Score], str],
    *,
    baseline: str,
    exception: str = "",
    of: str = "inputs",
) -> Headline:
    """State in one sentence how many heads are significantly above their baseline, and which head is the strongest.

    Only the first checkpoint is counted. `baseline` describes the baseline, `exception` where the baseline is another
    one, and `of` what the sample size counts.
    """
    first = scores[0].checkpoint if scores else None
    effects = [
        (score, score.effect)
        for score in scores
        if score.checkpoint == first and score.layer is not None and score.effect is not None
    ]
    if not effects:
        return Headline("No input contains the tokens or relations that this study measures, so it measured no head.")
    sure = [
        (score, effect) for score, effect in effects if score.q is not None and score.q < SIGNIFICANT and effect > 0
    ]
    best, _ = max(sure or effects, key=lambda pair: pair[1])
    numbers = f"{best.value:.2f}, compared with {best.baseline:.2f}"
    compared = "the baseline" if exception else f"for {baseline}"
    if sure:
        found = (
            f"In {len(sure):,} of {len(effects):,} {what}, attention is significantly higher than {compared}. "
            f"{look(best)}: {numbers}."
        )
    else:
        found = (
            f"Attention is not significantly higher than {compared} in any of {len(effects):,} {what}. The largest "
            f"difference is that of head {best.name} and {best.feature}: {numbers}."
        )
    return Headline(
        found,
        best.n,
        of,
        head_interval(best.name, best.low, best.high),
        f"The baseline ({'; '.join(filter(None, (baseline, exception)))}) has a value of {best.baseline:.2f}.",
    )


def outstanding(rows: Sequence[Row], by: str) -> list[list[Row] | str]:
    """Return a table of the rows with the largest values of `by`, then notes on missing values. The table has three
    rows for each checkpoint, task, statistic and feature."""
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
