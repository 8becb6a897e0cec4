"""What the steps of a report left in the store, and how it is asked for; intervals of means over heads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from core.report.plan import Step
from core.studies.study import Row


@dataclass(frozen=True)
class Found:
    """One step with what it left. run: in the store; error: why it has none; about: provenance and seconds."""

    step: Step
    run: str | None
    rows: tuple[Row, ...] = ()
    error: str = ""
    about: Row | None = None


@dataclass(frozen=True)
class Evidence:
    """All that is known of one checkpoint. official: tasks whose dev rows are GLUE's own."""

    checkpoint: str
    causal: bool
    official: tuple[str, ...]
    found: tuple[Found, ...]

    def of(self, part: str, task: str | None = None) -> list[Found]:
        """The steps of a part that have rows, in the order of the plan; with `task`, those of that task."""
        known = [one for one in self.found if one.step.part == part and one.rows]
        return [one for one in known if task is None or one.step.task == task]

    def one(self, part: str, task: str | None = None) -> Found | None:
        """The only step of a part and task, or None."""
        return next(iter(self.of(part, task)), None)

    def missing(self, part: str, task: str | None = None) -> str:
        """Why there is nothing of a part (and task): its error, or that it was not part of the report."""
        steps = [one for one in self.found if one.step.part == part and (task is None or one.step.task in (task, None))]
        errors = [one.error for one in steps if one.error]
        return errors[0] if errors else f"{task or part} was not measured"


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval; low and high None where there is none."""

    value: float
    low: float | None = None
    high: float | None = None


def picked(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """The rows whose fields have these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def mean_over(rows: Sequence[Row], value: str = "value", low: str = "low", high: str = "high") -> Estimate | None:
    """Mean over heads (or layers) of a number and of both ends of its interval; None without any.

    The mean of the ends is at least as wide as the interval of the mean, whatever heads have in common, because the
    standard deviation of a mean never exceeds the mean of the standard deviations.
    """
    known = [row for row in rows if row.get(value) is not None]
    if not known:
        return None
    ends = [float(np.mean([row[end] for row in known])) if _all(known, end) else None for end in (low, high)]
    return Estimate(float(np.mean([row[value] for row in known])), *ends)


def _all(rows: Sequence[Row], name: str) -> bool:
    return all(row.get(name) is not None for row in rows)


def by_layer(rows: Sequence[Row], **columns: str) -> list[Estimate | None]:
    """`mean_over` of each layer, first to last; [] where no row has a layer."""
    layers = [int(row["layer"]) for row in rows if row.get("layer") is not None]
    return [
        mean_over([row for row in rows if row.get("layer") == layer], **columns)
        for layer in range(max(layers, default=-1) + 1)
    ]


def metric_of(rows: Sequence[Row]) -> str:
    """The metric that ranks a sweep's variants."""
    row = next(row for row in rows if row["kind"] == "variant")
    return next(name for name in ("accuracy", "pearson", "f1") if f"{name}_change" in row)


def share_interval(share: float, n: int) -> Estimate:
    """A share of n rows with Wilson's interval."""
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(round(share * n), n, method="wilson")
    return Estimate(share, float(low), float(high))


def f1_interval(f1: float, accuracy: float, n: int) -> Estimate:
    """F1 of n rows with an interval: F1 = 2J / (1 + J), and J = TP / (TP + FP + FN) is a share of rows.

    The counts follow from F1 and accuracy: FP + FN = n (1 - accuracy), and TP = F1 (FP + FN) / (2 (1 - F1)).
    """
    wrong = n * (1 - accuracy)
    if f1 >= 1 or wrong <= 0:
        return Estimate(f1)
    hits = f1 * wrong / (2 * (1 - f1))
    inner = share_interval(hits / (hits + wrong), max(1, round(hits + wrong)))
    ends = [2 * end / (1 + end) for end in (inner.low, inner.high) if end is not None]
    return Estimate(f1, *ends)


def correlation_interval(r: float, n: int) -> Estimate:
    """Pearson's r of n rows with Fisher's interval."""
    if n < 4 or abs(r) >= 1:
        return Estimate(r)
    z, half = np.arctanh(r), 1.959964 / np.sqrt(n - 3)
    return Estimate(r, float(np.tanh(z - half)), float(np.tanh(z + half)))
