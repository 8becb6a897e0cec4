"""Result records of studies that fine-tune."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...store.findings import Number
from ...store.rows import Row
from ..records import Figure, Result, Valued, picked, stated


@dataclass(frozen=True, kw_only=True)
class TunedScore(Result):
    """Scores of a fine-tuned model, means over seeds, or scores of a constant prediction. NaN or None if undefined.

    Attributes:
        kind: "run"; "mean" over runs of an initialisation; "baseline", a constant prediction.
        constant: whether all predictions are equal, or for how many runs they are.
        epochs: the training log.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("run", "mean", "baseline")
    FIGURE = Figure(None, "{metric} on {task}", "{initialisation} {kind} {seed}")
    kind: str
    task: str
    initialisation: str | None = None
    seed: int | None = None
    metric: str
    n: int | None = None
    accuracy: float | None = None
    accuracy_sd: float | None = None
    f1: float | None = None
    f1_sd: float | None = None
    pearson: float | None = None
    pearson_sd: float | None = None
    spearman: float | None = None
    spearman_sd: float | None = None
    mse: float | None = None
    mse_sd: float | None = None
    constant: int | None = None
    note: str | None = None
    train_rows: int | None = None
    dev_rows: int | None = None
    cut_rows: int | None = None
    seconds: float | None = None
    last_loss: float | None = None
    folder: str | None = None
    majority: str | None = None
    baseline: Mapping[str, float | None] | None = None
    epochs: Sequence[Mapping[str, Any]] = ()
    kept_epoch: int | None = None
    kept_because: str | None = None
    held_heads: int | None = None

    def of_metric(self, metric: str) -> float | None:
        return getattr(self, metric)

    def spread(self, metric: str) -> float | None:
        return getattr(self, f"{metric}_sd")

    def numbers(self) -> list[Number]:
        score = self.of_metric(self.metric)
        return [] if score is None else [self.number(score, "{metric} on {task}", None, None)]


@dataclass(frozen=True, kw_only=True)
class TunedRunScore(TunedScore):
    """The scores of one fine-tuning run, with its training log."""

    KINDS: ClassVar[tuple[str, ...]] = ("run",)
    kind: str = stated("run")
    last_loss: float | None = stated()
    epochs: Sequence[Mapping[str, Any]] = stated(())
    kept_epoch: int | None = stated()


@dataclass(frozen=True, kw_only=True)
class FixedPatternChange(Result):
    """The change in task score, averaged over seeds, if attention patterns are fixed instead of learned."""

    KINDS: ClassVar[tuple[str, ...]] = ("change",)
    FIGURE = Figure("score", "change of {metric} with heads held|{task}", "{initialisation}")
    task: str
    initialisation: str | None = None
    metric: str
    score: float | None
    low: float | None
    high: float | None
    n: int
    seeds: int
    held_heads: int


# ---------------------------------------------------------------- transfer


@dataclass(frozen=True, kw_only=True)
class Transferred(Valued):
    """The task score of a classifier on one layer, a model fine-tuned with frozen layers, or a constant prediction."""

    KINDS: ClassVar[tuple[str, ...]] = ("classifier", "frozen", "baseline")
    FIGURE = Figure("value", "{kind}|{task}|{metric}")
    kind: str
    task: str
    metric: str
    reading: str | None = None
    layer: int | None = None
    random_weights: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    frozen: int | None = None
    layers: int | None = None
    seeds: int | None = None
    change: float | None = None
    change_low: float | None = None
    change_high: float | None = None
    constant: float | None = None
    train_rows: int | None = None


@dataclass(frozen=True, kw_only=True)
class BestLayer(Valued):
    """The best layer on one half of the dev examples, and its gain over the last layer on the other half."""

    KINDS: ClassVar[tuple[str, ...]] = ("best layer",)
    FIGURE = Figure("value", "best layer beyond the last|{task}|{metric}")
    task: str | None = None
    reading: str
    layer: int
    layers: int
    metric: str | None = None


# ---------------------------------------------------------------- one task of a fine-tuning


@dataclass(frozen=True)
class FinetunedTask:
    """Fine-tuning results, with the main metric and the constant prediction of the first task."""

    metric: str
    runs: list[TunedScore]
    means: list[TunedScore]
    constant: TunedScore | None

    @property
    def rows(self) -> int:
        return min(run.dev_rows or 0 for run in self.runs)

    def mean(self, initialisation: str) -> TunedScore | None:
        return next(iter(picked(self.means, initialisation=initialisation)), None)


def finetuned_task(rows: Sequence[Row]) -> FinetunedTask:
    """Collect fine-tuning results from the result rows of a run, which may be about several tasks."""
    scores = TunedScore.among(rows)
    constant = next(iter(picked(scores, kind="baseline")), None)
    return FinetunedTask(scores[0].metric, picked(scores, kind="run"), picked(scores, kind="mean"), constant)


def constant_score(rows: Sequence[Row], task: str, metric: str) -> float | None:
    """Return the score of the constant prediction for a task and metric, or None if there is none."""
    constant = next(iter(picked(TunedScore.among(rows), kind="baseline", task=task)), None)
    return None if constant is None else constant.of_metric(metric)
