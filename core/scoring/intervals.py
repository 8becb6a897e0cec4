"""Proportions, means over inputs and ratios of sums, with intervals and p values.

Fractions of right words have bootstrap intervals over sentences, whose percentiles are expanded for few sentences
(Hesterberg 2015, "expanded percentiles").

Means take constant memory. Sums are stored per group of inputs, with input k in group k modulo GROUPS. Groups do not
depend on batches, workers or merging, and are the same in other accumulators over the same inputs, so differences are
paired. Up to GROUPS inputs, each has its own group; beyond, the groups are the sample ("random groups", Wolter 2007,
chapter 2).
"""

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float, Real

from ..interval import Interval
from . import few_inputs
from .few_inputs import Spread

# ---------------------------------------------------------------- proportions


def wilson_interval(
    counts: Real[np.ndarray, "*share"], rows: int
) -> tuple[Float[np.ndarray, "*share"], Float[np.ndarray, "*share"]]:
    """Return the bounds of 95 % Wilson intervals (1927) for the proportions counts / rows, with at least one row."""
    quantile = float(-scipy.special.ndtri(0.025))
    share, squared = counts / rows, quantile**2
    middle = share + squared / (2 * rows)
    reach = quantile * np.sqrt(share * (1 - share) / rows + squared / (4 * rows**2))
    scale = 1 + squared / rows
    return np.asarray(middle / scale - reach / scale), np.asarray(middle / scale + reach / scale)


RESAMPLES = 2000


def share_of(hits: Sequence[int] | np.ndarray, totals: Sequence[int] | np.ndarray, *, seed: int = 0) -> Interval:
    """Return an accuracy over all words, sum(hits) / sum(totals), with a 95 % bootstrap interval over sentences.

    `hits` are right words of each sentence, and `totals` counted words. None if nothing is counted; no bounds for fewer
    than two sentences.
    """
    hits, totals = np.asarray(hits, dtype=float), np.asarray(totals, dtype=float)
    n, sentences = int(totals.sum()), len(totals)
    value = hits.sum() / n if n else math.nan
    if not n or sentences < 2:
        return Interval.of(value, math.nan, math.nan, n)
    counts = _draws(sentences, seed)
    below = counts @ totals
    drawn = np.divide(counts @ hits, below, out=np.full(len(below), np.nan), where=below > 0)
    farther = scipy.special.stdtrit(sentences - 1, 0.025) * np.sqrt(sentences / (sentences - 1))
    level = float(scipy.special.ndtr(farther))
    low, high = np.nanquantile(drawn, [level, 1 - level])
    return Interval.of(value, low, high, n)


def share_difference(
    first: Sequence[int] | np.ndarray,
    second: Sequence[int] | np.ndarray,
    totals: Sequence[int] | np.ndarray,
    *,
    seed: int = 0,
) -> Interval:
    """Return the difference in accuracy between two predictions for the same words, paired by sentence.

    `first` and `second` are right words of each sentence, and `totals` counted words. None as for `share_of`.
    """
    return share_of(np.asarray(first, dtype=float) - np.asarray(second, dtype=float), totals, seed=seed)


@lru_cache(maxsize=4)
def _draws(sentences: int, seed: int) -> Float[np.ndarray, "draw sentence"]:
    """How often each sentence is drawn: the same for all fractions of the same sentences."""
    return (
        np.random.default_rng(seed).multinomial(sentences, np.full(sentences, 1 / sentences), RESAMPLES).astype(float)
    )


# ---------------------------------------------------------------- comparison with chance level


def not_above_constant(share: float, constant: float, rows: int) -> str:
    """Return a warning if an accuracy is not significantly above that of a constant prediction, otherwise "". The test
    uses the 95 % Wilson interval. There must be at least one example."""
    low, high = wilson_interval(np.array(round(share * rows)), rows)
    if low > constant:
        return ""
    return (
        f"an accuracy of {100 * share:.1f} (95 % CI {100 * low:.1f} to {100 * high:.1f}, n = {rows} examples) is not "
        f"significantly above the accuracy of a constant prediction ({100 * constant:.1f})"
    )


def fisher_interval(correlation: float, rows: int) -> tuple[float, float]:
    """Return the 95 % interval of Pearson's r over 4 or more examples (Fisher 1921): arctanh r, SE 1 / sqrt(n - 3)."""
    reach = NormalDist().inv_cdf(0.975) / math.sqrt(rows - 3)
    centre = math.atanh(min(max(correlation, -1 + 1e-12), 1 - 1e-12))
    return math.tanh(centre - reach), math.tanh(centre + reach)


def not_above_zero(correlation: float, rows: int) -> str:
    """Return a warning if the 95 % interval of Pearson's r is not entirely above 0, otherwise "". There must be at
    least 4 examples."""
    low, high = fisher_interval(correlation, rows)
    if low > 0:
        return ""
    return (
        f"a correlation of {100 * correlation:.1f} (Pearson's r × 100, 95 % CI {100 * low:.1f} to {100 * high:.1f}, "
        f"n = {rows} examples) is not significantly above the chance level of 0"
    )


# ---------------------------------------------------------------- means over inputs


GROUPS = 64


@dataclass(frozen=True)
class StatisticEstimate:
    """Means of head statistics over inputs, and the uncertainty of these means.

    Attributes:
        value: NaN without inputs.
        n: the denominator of the mean (inputs, or links of all inputs), in the layer that has most.
    """

    value: Float[np.ndarray, "layer head statistic"]
    spread: Spread
    n: Float[np.ndarray, " statistic"]
    inputs: Float[np.ndarray, " statistic"]

    def part(self, index: int) -> "StatisticEstimate":
        """Return the estimate of one statistic, as arrays [layer, head, 1]."""
        spread = Spread(*(getattr(self.spread, name)[..., index : index + 1] for name in _SPREAD))
        counts = (getattr(self, name)[..., index : index + 1] for name in ("n", "inputs"))
        return StatisticEstimate(self.value[..., index : index + 1], spread, *counts)

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        return few_inputs.ends(self.value, self.spread)

    @property
    def low(self) -> Float[np.ndarray, "layer head statistic"]:
        return self._ends[0]

    @property
    def high(self) -> Float[np.ndarray, "layer head statistic"]:
        return self._ends[1]

    def p_above(self) -> Float[np.ndarray, "layer head statistic"]:
        """Return the one-sided p value for the null hypothesis that the mean is at most 0; NaN if too few inputs have
        nonzero values."""
        return few_inputs.p_above(self.value, self.spread)

    def p_either(self) -> Float[np.ndarray, "layer head statistic"]:
        """Return the two-sided p value for the null hypothesis that the mean is 0; NaN for too few nonzero values."""
        return few_inputs.p_either(self.value, self.spread)


_SPREAD = ("error", "lean", "different", "sign")


EVERY_LAYER = slice(None)


class Means:
    """An accumulator for means over inputs, for each layer, head and statistic. A mean is a sum of values divided by a
    sum of counts. Batches may be added in any order."""

    def __init__(self, layers: int, heads: int, statistics: int):
        self.sums = np.zeros((GROUPS, layers, heads, statistics))
        self.counts = np.zeros((GROUPS, layers, statistics))
        self.inputs = np.zeros((layers, statistics))

    def update(
        self,
        layer: int | slice,
        sums: Float[np.ndarray, "batch head statistic"],
        counts: Float[np.ndarray, "batch *layer statistic"],
        numbers: Sequence[int],
    ) -> None:
        """Add the values of a batch of inputs to the running sums.

        Args:
            layer: EVERY_LAYER if `sums` has the heads of all layers concatenated.
            sums: of each input over its items; may be NaN if the count is 0.
            counts: number of items; 0 leaves the input out. With EVERY_LAYER, they may differ by layer.
        """
        groups = np.asarray(numbers) % GROUPS
        if isinstance(layer, slice):
            batch, layers, width = len(sums), len(self.inputs), sums.shape[-1]
            sums = sums.reshape(batch, layers, -1, width)
            counts = np.broadcast_to(counts.reshape(batch, -1, width), (batch, layers, width))
        filled = np.where(counts[..., None, :] > 0, sums, 0.0)
        for group, added, count in zip(groups.tolist(), filled, counts, strict=True):  # some of them may be the same
            self.sums[group, layer] += added
            self.counts[group, layer] += count
        self.inputs[layer] += (counts > 0).sum(0)

    def merge(self, other: "Means") -> "Means":
        """Add the sums of another accumulator to this accumulator in place. Statistics are matched by index. The
        accumulators may have different numbers of statistics."""
        self.widen(other.sums.shape[-1])
        for name in _ARRAYS:
            sums, others = getattr(self, name), getattr(other, name)
            sums[..., : others.shape[-1]] += others
        return self

    def widen(self, statistics: int, *, blocks: int = 1) -> None:
        """Append empty statistics at the end of each block, until there are `statistics` in total. All blocks have the
        same size."""
        more = (statistics - self.sums.shape[-1]) // max(1, blocks)
        for name in _ARRAYS if more > 0 else ():
            array = getattr(self, name)
            parts = array.reshape(*array.shape[:-1], blocks, -1)
            wide = np.pad(parts, [(0, 0)] * array.ndim + [(0, more)])
            setattr(self, name, wide.reshape(*array.shape[:-1], -1))

    def columns(self, places: Sequence[int]) -> "Means":
        """Return an accumulator with only the statistics at the given indices, in the order of the indices."""
        chosen = Means(0, 0, 0)
        for name in _ARRAYS:
            setattr(chosen, name, getattr(self, name)[..., list(places)])
        return chosen

    def half(self, parity: int) -> "Means":
        """Return an accumulator with only the even (`parity` 0) or only the odd (`parity` 1) groups of inputs."""
        chosen = Means(0, 0, 0)
        for name in ("sums", "counts"):
            setattr(chosen, name, getattr(self, name)[parity::2])
        chosen.inputs = self.inputs / 2
        return chosen

    def result(self, *, minus: "Means | None" = None) -> StatisticEstimate:
        """Return the means over inputs with their uncertainty. With `minus`, return the paired differences from the
        means of another accumulator over the same inputs."""
        value, parts, part_means, used = self._parts()
        if minus is not None:
            its_value, its_parts, its_own, its_used = minus._parts()
            value, parts, part_means, used = value - its_value, parts - its_parts, part_means - its_own, used & its_used
        spread = few_inputs.spread_of(parts, used, value, part_means)
        n, inputs = self.counts.sum(0).max(0, initial=0), self.inputs.max(0, initial=0)
        return StatisticEstimate(value, spread, n, inputs)

    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Means [layer, head, statistic], the contribution and the mean of each group, and which groups have one.

        A ratio R = S / C of sums changes with group g by (S_g - R C_g) / C. R plus this, times the number of groups,
        has mean R and the spread of R over groups (linearisation of a ratio).
        """
        counts = self.counts[:, :, None, :]
        total, groups = counts.sum(0), (counts > 0).sum(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(total > 0, self.sums.sum(0) / total, np.nan)
            parts = value + (self.sums - value * counts) * groups / total
            part_means = self.sums / counts
        return value, parts, part_means, np.broadcast_to(counts > 0, self.sums.shape)

    def packed(self) -> str:
        """Return the accumulated sums as text that JSON can store (a base64-encoded NPZ file)."""
        stream = io.BytesIO()
        np.savez_compressed(stream, **{name: getattr(self, name) for name in _ARRAYS})
        return base64.b64encode(stream.getvalue()).decode()

    @classmethod
    def unpacked(cls, text: str) -> "Means":
        means = cls(0, 0, 0)
        with np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False) as stored:
            for name in _ARRAYS:
                setattr(means, name, stored[name])
        return means


_ARRAYS = ("sums", "counts", "inputs")


def student(total: float, squares: float, n: int) -> tuple[float, float] | None:
    """Return the 95 % interval of a mean by Student's t distribution, from the sum and the sum of squares of n values.
    None for fewer than two values, or if `squares` is NaN."""
    if n < 2 or np.isnan(squares):
        return None
    mean = total / n
    variance = max(0.0, squares - n * mean * mean) / (n - 1)
    half = float(scipy.special.stdtrit(n - 1, 0.975)) * (variance / n) ** 0.5
    return mean - half, mean + half


# ---------------------------------------------------------------- ratios of sums


@dataclass(frozen=True)
class RatioMoments:
    """Sums over inputs from which ratios and their confidence intervals are computed.

    Attributes:
        parts, squares, crossed: sums of the numerators x, of x squared, and of x times the denominator.
    """

    n: int
    parts: Float[np.ndarray, "head part"]
    squares: Float[np.ndarray, "head part"]
    crossed: Float[np.ndarray, "head part"]
    whole: Float[np.ndarray, " head"]
    whole_squares: Float[np.ndarray, " head"]

    @classmethod
    def of(cls, parts: Float[np.ndarray, "input head part"], whole: Float[np.ndarray, "input head"]) -> "RatioMoments":
        return cls(
            len(whole),
            parts.sum(0),
            np.einsum("ihp,ihp->hp", parts, parts),
            np.einsum("ihp,ih->hp", parts, whole),
            whole.sum(0),
            (whole**2).sum(0),
        )

    def merge(self, other: "RatioMoments") -> "RatioMoments":
        return RatioMoments(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def ratios(self) -> "Ratios":
        """Return each ratio of two sums over inputs, with its 95 % interval (Student's t, infinitesimal jackknife). A
        ratio is NaN if its denominator is 0, and has no interval for fewer than two inputs."""
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = self.parts / self.whole[:, None]
            spread = self.squares - 2 * ratio * self.crossed + ratio**2 * self.whole_squares[:, None]
            error = np.sqrt(np.clip(spread, 0, None) * self.n / max(self.n - 1, 1)) / self.whole[:, None]
        reach = scipy.stats.t.ppf(0.975, self.n - 1) * error if self.n > 1 else np.full_like(ratio, np.nan)
        return Ratios(ratio, ratio - reach, ratio + reach, self.n)


@dataclass(frozen=True)
class Ratios:
    """Ratios of sums, with their 95 % intervals over inputs. Bounds are NaN for fewer than two inputs."""

    value: Float[np.ndarray, "head part"]
    low: Float[np.ndarray, "head part"]
    high: Float[np.ndarray, "head part"]
    n: int

    def p_above(self, least: float | Float[np.ndarray, "head part"]) -> Float[np.ndarray, "head part"]:
        """Return the one-sided p value (Student's t) for the null hypothesis that a ratio is at most `least`; NaN for
        fewer than two inputs."""
        if self.n < 2:
            return np.full_like(self.value, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            error = (self.high - self.low) / (2 * scipy.stats.t.ppf(0.975, self.n - 1))
            return np.asarray(scipy.stats.t.sf((self.value - least) / error, self.n - 1))
