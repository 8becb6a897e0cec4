"""Means over inputs with bootstrap intervals, in memory that does not grow with the inputs.

Every input takes part in each of B resamples as often as a Poisson(1) draw says that its seed and number fix (Chamandy
et al. 2012, "Estimating uncertainty for massive data streams"). So resamples are the same however inputs are batched,
split over workers or merged, and only B sums per statistic are kept.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

RESAMPLES = 200
FEWEST = 8  # inputs below which a bootstrap says too little for a p
LEVEL = 0.95
WAITING = 512  # inputs whose resamples are added up at once


@lru_cache(maxsize=4096)
def draws(seed: int, number: int, resamples: int) -> Float[np.ndarray, " resample"]:
    """How often input `number` takes part in each resample."""
    return np.random.default_rng([seed, number]).poisson(1.0, resamples).astype(np.float32)


@dataclass(frozen=True)
class Estimate:
    """Means [layer, head, statistic] with the ends of their 95% intervals, standard errors, and n [statistic].

    NaN where nothing was seen. n: what the mean divides by (inputs, or links of all inputs); inputs: how many of them
    have the statistic.
    """

    value: Float[np.ndarray, "layer head statistic"]
    low: Float[np.ndarray, "layer head statistic"]
    high: Float[np.ndarray, "layer head statistic"]
    error: Float[np.ndarray, "layer head statistic"]
    n: Float[np.ndarray, " statistic"]
    inputs: Float[np.ndarray, " statistic"]

    def part(self, place: int) -> "Estimate":
        """One statistic alone; arrays are [layer, head, 1]."""
        names = ("value", "low", "high", "error", "n", "inputs")
        return Estimate(*(getattr(self, name)[..., place : place + 1] for name in names))

    def p_above(self, null: float = 0.0) -> Float[np.ndarray, "layer head statistic"]:
        """One-sided p that the mean is not above `null`, by the normal law with the bootstrap's standard error.

        Where every input has the same value the error is 0: p is 0 above the null and 1 elsewhere. NaN with fewer than
        FEWEST inputs.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (self.value - null) / self.error
        exact = np.where(self.value > null, 0.0, 1.0)
        unknown = np.isnan(self.value) | (self.inputs < FEWEST)
        return np.where(unknown, np.nan, np.where(self.error > 0, norm.sf(z), exact))

    def p_either(self) -> Float[np.ndarray, "layer head statistic"]:
        """Two-sided p that the mean (of a difference) is 0, likewise."""
        above = self.p_above()
        both = np.minimum(1.0, 2 * np.minimum(above, 1 - above))
        return np.where((self.value == 0) & (self.error == 0) & ~np.isnan(above), 1.0, both)


class Means:
    """Sum of x over sum of counts, per layer, head and statistic, and the same in every resample.

    An accumulator: `update` with any batches in any order, `merge` with others of the same shape and seed, `result`.
    """

    def __init__(self, layers: int, heads: int, statistics: int, *, seed: int = 0, resamples: int = RESAMPLES):
        self.seed, self.resamples = seed, resamples
        self.sums = np.zeros((layers, heads, statistics))
        self.counts = np.zeros((layers, statistics))
        self.inputs = np.zeros((layers, statistics))
        self.drawn_sums = np.zeros((resamples, layers, heads, statistics), dtype=np.float32)
        self.drawn_counts = np.zeros((resamples, layers, statistics), dtype=np.float32)
        self._waiting: list[list[tuple[np.ndarray, np.ndarray, list[int]]]] = [[] for _ in range(layers)]

    def update(
        self,
        layer: int,
        sums: Float[np.ndarray, "batch head statistic"],
        counts: Float[np.ndarray, "batch statistic"],
        numbers: Sequence[int],
    ) -> None:
        """Add a batch: per input the sum over what it has of each statistic, and how many it has (0: left out).

        numbers: of the inputs, stable between runs. Sums whose count is 0 are not looked at and may be NaN.
        """
        kept = np.where(counts[:, None, :] > 0, sums, 0.0)
        self.sums[layer] += kept.sum(0)
        self.counts[layer] += counts.sum(0)
        self.inputs[layer] += (counts > 0).sum(0)
        self._waiting[layer].append((kept.astype(np.float32), counts.astype(np.float32), list(numbers)))
        if sum(len(batch[2]) for batch in self._waiting[layer]) >= WAITING:
            self._resample(layer)

    def _resample(self, layer: int) -> None:
        """Add the waiting inputs of a layer to every resample: one product for many batches."""
        waiting, self._waiting[layer] = self._waiting[layer], []
        if not waiting or not self.resamples:
            return
        sums, counts = (np.concatenate([batch[k] for batch in waiting]) for k in (0, 1))
        times = np.stack([draws(self.seed, number, self.resamples) for batch in waiting for number in batch[2]]).T
        self.drawn_sums[:, layer] += (times @ sums.reshape(len(sums), -1)).reshape(self.resamples, *sums.shape[1:])
        self.drawn_counts[:, layer] += times @ counts

    def _settle(self) -> None:
        for layer in range(len(self._waiting)):
            self._resample(layer)

    def merge(self, other: "Means") -> None:
        """Add what another accumulator saw; it must not have seen the same inputs."""
        self._settle()
        other._settle()
        for name in _ARRAYS:
            getattr(self, name).__iadd__(getattr(other, name))

    def result(self, *, minus: "Means | None" = None) -> Estimate:
        """The means with their percentile intervals.

        minus: another accumulator over the same inputs; the result is then the difference of the means, paired,
        because both drew each input equally often. n is that of this one.
        """
        value, drawn = self._ratios()
        if minus is not None:
            its_value, its_drawn = minus._ratios()
            value, drawn = value - its_value, drawn - its_drawn
        ends, error = _spread(drawn)
        n, inputs = (one.max(0, initial=0) for one in (self.counts, self.inputs))
        return Estimate(value, ends[0], ends[1], error, n, inputs)

    def _ratios(self) -> tuple[np.ndarray, np.ndarray]:
        """Means [layer, head, statistic] and those of each resample; NaN where nothing was seen or drawn."""
        self._settle()
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(self.counts[:, None, :] > 0, self.sums / self.counts[:, None, :], np.nan)
            counts = self.drawn_counts[:, :, None, :].astype(float)
            return value, np.where(counts > 0, self.drawn_sums / counts, np.nan)

    def packed(self) -> str:
        """The sums as text that fits in JSON (base64 of an NPZ)."""
        self._settle()
        stream = io.BytesIO()
        np.savez_compressed(stream, seed=np.array(self.seed), **{name: getattr(self, name) for name in _ARRAYS})
        return base64.b64encode(stream.getvalue()).decode()

    @classmethod
    def unpacked(cls, text: str) -> "Means":
        """What `packed` wrote."""
        with np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False) as stored:
            resamples, layers, heads, statistics = stored["drawn_sums"].shape
            found = cls(layers, heads, statistics, seed=int(stored["seed"]), resamples=resamples)
            for name in _ARRAYS:
                setattr(found, name, stored[name])
        return found


_ARRAYS = ("sums", "counts", "inputs", "drawn_sums", "drawn_counts")


def _spread(drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends [2, ...] of the percentile interval and the standard error over resamples [resample, ...]."""
    empty = np.isnan(drawn).all(0) if len(drawn) else np.ones(drawn.shape[1:], dtype=bool)
    filled = np.where(empty, 0.0, drawn) if len(drawn) else np.zeros((1, *drawn.shape[1:]))
    tail = (1 - LEVEL) / 2
    ends = np.nanquantile(filled, [tail, 1 - tail], axis=0)
    error = np.nanstd(filled, axis=0)
    return np.where(empty, np.nan, ends), np.where(empty, np.nan, error)
