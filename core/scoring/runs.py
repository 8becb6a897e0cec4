"""Metrics of several runs (seeds) on the same rows: means with intervals over rows and runs, paired differences."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Shaped

from core.scoring.effects import counted

RESAMPLES = 1000
Rows = Shaped[np.ndarray, " row"]
Runs = Shaped[np.ndarray, "run row"]


@dataclass(frozen=True)
class Score:
    """A mean over runs, or a difference of two, with its 95 % interval; None where the metric is undefined."""

    value: float | None
    low: float | None
    high: float | None

    def fields(self, prefix: str = "") -> dict[str, float | None]:
        """As fields of a row: value, low, high, or with a prefix."""
        names = (prefix, f"{prefix}_low", f"{prefix}_high") if prefix else ("value", "low", "high")
        return dict(zip(names, (self.value, self.low, self.high), strict=True))


def score(name: str, gold: Rows, predicted: Runs, *, seed: int = 0) -> Score:
    """The mean metric of the runs: bootstrap over rows, and over runs where there are several.

    name: accuracy, f1 or pearson.
    """
    whole, drawn = _drawn(name, gold, predicted, seed)
    return _score(whole.mean(), drawn)


def difference(name: str, gold: Rows, first: Runs, second: Runs) -> Score:
    """Mean of the first runs less that of the second: the same rows are drawn for both."""
    firsts, seconds = _drawn(name, gold, first, 0), _drawn(name, gold, second, 0)
    return _score(firsts[0].mean() - seconds[0].mean(), firsts[1] - seconds[1])


def _drawn(name: str, gold: np.ndarray, predicted: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The metric of each run [run], and means over drawn runs on drawn rows [draw]."""
    predicted = np.atleast_2d(predicted)
    rows, runs = len(gold), len(predicted)
    counts = np.random.default_rng(seed).multinomial(rows, np.full(rows, 1 / rows), size=RESAMPLES)
    shares = np.random.default_rng([seed, runs]).multinomial(runs, np.full(runs, 1 / runs), size=RESAMPLES) / runs
    whole = counted(name, gold, predicted, np.ones((1, rows)))[0]
    return whole, (counted(name, gold, predicted, counts) * shares).sum(1)


def _score(value: float, drawn: np.ndarray) -> Score:
    known = drawn[np.isfinite(drawn)]
    if not np.isfinite(value) or len(known) < len(drawn) / 2:
        return Score(None, None, None)
    low, high = np.quantile(known, [0.025, 0.975])
    return Score(float(value), float(low), float(high))
