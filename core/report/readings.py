"""What the studies left, as records: the only place of the report that knows the names of their columns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from core.attention import Head
from core.report.columns import record_of
from core.report.estimates import Estimate, mean_over
from core.store.rows import Row

R = TypeVar("R")


@dataclass(frozen=True)
class Score:
    """A number of a head or layer, as most studies store it; None where a study has no such column."""

    statistic: str | None = None
    feature: str | None = None
    checkpoint: str | None = None
    task: str | None = None
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
    kind: str | None = None
    dev: float | None = None
    distance: int | None = None
    survives: bool | None = None

    @property
    def name(self) -> str:
        """ "L1H2"."""
        return str(Head(int(self.layer or 0), int(self.head or 0)))

    @property
    def estimate(self) -> Estimate:
        """The value with its interval."""
        return Estimate(float(self.value or 0.0), self.low, self.high)

    @property
    def effect_estimate(self) -> Estimate:
        """The value less its baseline, with its interval."""
        return Estimate(float(self.effect or 0.0), self.effect_low, self.effect_high)


def scores(rows: Iterable[Row]) -> list[Score]:
    """Every row as a score."""
    return [record_of(Score, row) for row in rows]


def picked(some: Iterable[R], **wanted: object) -> list[R]:
    """The records whose fields have these values."""
    return [one for one in some if all(getattr(one, name) == value for name, value in wanted.items())]


def over_heads(some: Iterable[Score]) -> Estimate | None:
    """`mean_over` of the scores that have a value."""
    return mean_over(one.estimate for one in some if one.value is not None)


def by_layer(some: Sequence[Score]) -> list[Estimate | None]:
    """`over_heads` of each layer, first to last; [] where no row has a layer."""
    layers = [int(one.layer) for one in some if one.layer is not None]
    return [over_heads(one for one in some if one.layer == layer) for layer in range(max(layers, default=-1) + 1)]


@dataclass(frozen=True)
class SeparatorLayer:
    """One layer of `separators`. ratio: the loss's gradient by attention to separators over that to other tokens;
    weight, norm: the separators' share of each, None of norms in runs from before they were measured."""

    layer: int
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    weight_on_separators: float | None
    n: int | None
    norm_on_separators: float | None = None


def separator_layers(rows: Sequence[Row]) -> list[SeparatorLayer]:
    """The layers of `separators`, without the row of all together."""
    every = [row for row in rows if row.get("kind") == "layer" and row.get("layer") is not None]
    return [record_of(SeparatorLayer, row) for row in every]


# ---------------------------------------------------------------- frames


@dataclass(frozen=True)
class FrameSummary:
    """Of all heads together. line_99: the 99th percentile; above_99: heads that reach it; average: over what;
    survivors: of all nulls; beat_places: of the two on the place, None where only these two were asked."""

    n: int
    average: str
    line_99: float
    layers: int
    heads: int
    above_99: int
    survivors: list[str]
    beat_places: list[str] | None
    links: int
    links_before: int

    @property
    def nulls(self) -> str:
        """Which nulls a survivor survived."""
        return "both" if self.beat_places is None else "all"


@dataclass(frozen=True)
class Frames:
    """What `frame-heads` says: the summary, and every head."""

    summary: FrameSummary
    heads: list[Score]


def frames(rows: Sequence[Row]) -> Frames:
    """The rows of `frame-heads`."""
    return Frames(record_of(FrameSummary, rows[0]), picked(scores(rows), kind="head"))


# ---------------------------------------------------------------- fine-tuning


@dataclass(frozen=True)
class TunedScore:
    """Scores of runs of one initialisation (n: seeds), of one run, or of a constant predictor. constant: of how many
    runs the predictions were constant."""

    kind: str
    initialisation: str | None
    n: int | None
    accuracy: float | None
    f1: float | None
    pearson: float | None
    mse: float | None
    constant: int | None
    note: str | None
    dev_rows: int | None

    def of(self, metric: str) -> float | None:
        """The score by one metric."""
        return getattr(self, metric)


@dataclass(frozen=True)
class Tuning:
    """What `finetune` says of one task. metric: the one that ranks; rows: the fewest dev rows of its runs."""

    metric: str
    runs: list[TunedScore]
    means: list[TunedScore]
    constant: TunedScore | None

    @property
    def rows(self) -> int:
        """The fewest dev rows of a run."""
        return min(one.dev_rows or 0 for one in self.runs)

    def mean(self, initialisation: str) -> TunedScore | None:
        """The mean over seeds of an initialisation, or None."""
        return next((one for one in self.means if one.initialisation == initialisation), None)


def tuning(rows: Sequence[Row]) -> Tuning:
    """The rows of `finetune`."""
    read = [record_of(TunedScore, row) for row in rows]
    constant = next(iter(picked(read, kind="baseline")), None)
    return Tuning(rows[0]["metric"], picked(read, kind="run"), picked(read, kind="mean"), constant)


# ---------------------------------------------------------------- class shares


@dataclass(frozen=True)
class ClassShare:
    """A class's share of all maps of one checkpoint. inputs: that it was counted on; maps: of this class."""

    name: str
    checkpoint: str
    share: Estimate
    inputs: int
    maps: int
    classifier: str


def class_shares(rows: Iterable[Row]) -> list[ClassShare]:
    """The shares that `classify-maps` counted, uncorrected."""
    return [
        ClassShare(
            row["class"], row["checkpoint"], Estimate(row["share"], row.get("low"), row.get("high")), row["inputs"],
            row.get("maps", 0), row.get("classifier", ""),
        )
        for row in rows
        if row.get("part") == "share"
    ]  # fmt: skip


@dataclass(frozen=True)
class MovedShare:
    """How much a class's share changed with fine-tuning, paired by input. change: with its interval alone; among:
    with one that holds for all classes together."""

    name: str
    change: Estimate
    among: Estimate
    inputs: int


def moved_shares(rows: Iterable[Row]) -> list[MovedShare]:
    """The changes that `classify-maps` counted; none of a single checkpoint."""
    return [
        MovedShare(
            row["class"],
            Estimate(row["share"], row["low"], row["high"]),
            Estimate(row["share"], row["low_all"], row["high_all"]),
            row["inputs"],
        )
        for row in rows
        if row.get("part") == "moved"
    ]


# ---------------------------------------------------------------- disabling


@dataclass(frozen=True)
class Variant:
    """A head, layer or group taken away. change: of the metric, None where it is undefined; p: corrected over all."""

    name: str
    layer: int | None
    head: int | None
    change: Estimate | None
    p: float
    flipped: int | None
    n: int


@dataclass(frozen=True)
class HeldOut:
    """The gain of the variant that is best on one half of the rows, on the other half."""

    name: str
    gain: Estimate
    n: int


@dataclass(frozen=True)
class Sweep:
    """What `disable` says. variants: all, in order."""

    metric: str
    variants: list[Variant]
    held_out: HeldOut | None

    @property
    def known(self) -> list[tuple[Variant, Estimate]]:
        """Variants whose change is defined, each with it."""
        return [(one, one.change) for one in self.variants if one.change is not None]


def sweep(rows: Sequence[Row]) -> Sweep:
    """The rows of `disable`."""
    variants = [row for row in rows if row["kind"] == "variant"]
    metric = next(name for name in ("accuracy", "pearson", "f1") if f"{name}_change" in variants[0])
    held = next((row for row in rows if row["kind"] == "split half"), None)
    gain = None
    if held is not None:
        gain = HeldOut(held["name"], Estimate(held["held_out"], held["low"], held["high"]), held["n"])
    return Sweep(metric, [_variant(row, metric) for row in variants], gain)


def _variant(row: Row, metric: str) -> Variant:
    value, low, high = (row.get(f"{metric}_{end}") for end in ("change", "low", "high"))
    change = None if value is None else Estimate(value, low, high)
    return Variant(row["name"], row["layer"], row.get("head"), change, row["p"], row["flipped"], row["n"])


# ---------------------------------------------------------------- pruning, importance, effective attention


@dataclass(frozen=True)
class PruneStep:
    """One point of a curve: `removed` heads, a share of all, are gone. low, high: of the metric, not of its change."""

    order: str
    removed: int
    share: float
    metric: str
    baseline: float
    change: float
    low: float | None
    high: float | None
    n: int


def prune_curves(rows: Iterable[Row]) -> dict[str, list[PruneStep]]:
    """The curves of `prune` by order, each from the fewest heads removed to the most."""
    steps = [record_of(PruneStep, row) for row in rows]
    orders = dict.fromkeys(one.order for one in steps)
    return {order: sorted(picked(steps, order=order), key=lambda one: one.removed) for order in orders}


@dataclass(frozen=True)
class RankAgreement:
    """Spearman's rho over n heads of importance with another score."""

    name: str
    spearman: float
    p: float
    n: int


def agreements(rows: Iterable[Row]) -> list[RankAgreement]:
    """The correlations of `importance` that are defined."""
    return [
        record_of(RankAgreement, row) for row in rows if row["kind"] == "correlation" and row["spearman"] is not None
    ]


@dataclass(frozen=True)
class LengthCorrelation:
    """Mean r of raw and effective attention over n inputs of so many pieces."""

    task: str
    length_from: int
    length_to: int
    mean: float
    n: int


def length_correlations(rows: Iterable[Row]) -> list[LengthCorrelation]:
    """The rows of `effective` by length."""
    return [record_of(LengthCorrelation, row) for row in rows if row.get("statistic") == "correlation by length"]


def first_n(rows: Sequence[Row]) -> int:
    """n of the first row."""
    return rows[0]["n"]
