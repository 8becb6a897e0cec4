"""Means over inputs with intervals and p, in memory that does not grow with the inputs.

Sums are kept per group of inputs, input k in group k modulo GROUPS: the same however inputs are batched, split over
workers or merged, and the same in another accumulator over the same inputs, so that differences are paired. Up to
GROUPS inputs each has a group of its own; beyond, the groups are the sample ("random groups", Wolter 2007, chapter 2),
whose means are the less skewed. `core.scoring.few_inputs` says how sure a mean is.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Real
from scipy.special import ndtri, stdtrit

from . import few_inputs
from .few_inputs import Spread

# ---------------------------------------------------------------- proportions


_REACH = float(-ndtri(0.025))


def wilson_interval(
    counts: Real[np.ndarray, "*share"], rows: int
) -> tuple[Float[np.ndarray, "*share"], Float[np.ndarray, "*share"]]:
    """The 95 % intervals of shares of rows (Wilson 1927): the shares that a score test does not reject.

    Args:
        counts: how many of the rows are counted in each share. *Range:* 0 to rows.
        rows: how many rows there are, at least 1.

    Returns:
        Lower and upper ends. *Range:* 0 to 1, but for what rounding adds.
    """
    share, squared = counts / rows, _REACH**2
    middle = share + squared / (2 * rows)
    reach = _REACH * np.sqrt(share * (1 - share) / rows + squared / (4 * rows**2))
    scale = 1 + squared / rows
    return np.asarray(middle / scale - reach / scale), np.asarray(middle / scale + reach / scale)


GROUPS = 64


@dataclass(frozen=True)
class StatisticEstimate:
    """Means with how sure they are.

    Attributes:
        value: NaN where nothing was seen.
        spread: of the means, each array with the axes of `value`.
        n: what the mean divides by (inputs, or links of all inputs); of the layer that has most.
    """

    value: Float[np.ndarray, "layer head statistic"]
    spread: Spread
    n: Float[np.ndarray, " statistic"]
    inputs: Float[np.ndarray, " statistic"]

    def part(self, index: int) -> "StatisticEstimate":
        """One statistic alone; arrays are [layer, head, 1]."""
        spread = Spread(*(getattr(self.spread, name)[..., index : index + 1] for name in _SPREAD))
        counts = (getattr(self, name)[..., index : index + 1] for name in ("n", "inputs"))
        return StatisticEstimate(self.value[..., index : index + 1], spread, *counts)

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        return few_inputs.ends(self.value, self.spread)

    @property
    def low(self) -> Float[np.ndarray, "layer head statistic"]:
        """The lower end of the 95 % interval."""
        return self._ends[0]

    @property
    def high(self) -> Float[np.ndarray, "layer head statistic"]:
        """The upper end of the 95 % interval."""
        return self._ends[1]

    def p_above(self) -> Float[np.ndarray, "layer head statistic"]:
        """One-sided p that the mean is not above 0; NaN where too few inputs differ from 0."""
        return few_inputs.p_above(self.value, self.spread)

    def p_either(self) -> Float[np.ndarray, "layer head statistic"]:
        """Two-sided p that the mean (of a difference) is 0; NaN where too few inputs differ from 0."""
        return few_inputs.p_either(self.value, self.spread)


_SPREAD = ("error", "lean", "different", "sign")


EVERY_LAYER = slice(None)


class Means:
    """Sum of x over sum of counts, per layer, head and statistic, and the same of every group of inputs.

    An accumulator: `update` with any batches in any order, `merge` with others of the same shape, `result`.
    """

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
        """Add a batch.

        Args:
            layer: from 0; EVERY_LAYER where sums are of all layers' heads, one layer's after another's.
            sums: of each input over what it has of each statistic; those whose count is 0 are not looked at and may be
                NaN.
            counts: how many it has, 0 where it is left out; with EVERY_LAYER they may differ by layer.
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

    def merge(self, other: "Means") -> None:
        """Add what another accumulator saw of other inputs, to this one in place.

        One of an earlier version, which measured fewer statistics, saw nothing of the others.
        """
        width = max(self.sums.shape[-1], other.sums.shape[-1])
        self.widen(width)
        for name in _ARRAYS:
            its_own, its = getattr(self, name), getattr(other, name)
            its_own[..., : its.shape[-1]] += its

    def widen(self, statistics: int, *, blocks: int = 1) -> None:
        """Take as many statistics at least; those that were not measured have no inputs.

        Args:
            blocks: how many equal blocks there are; the new statistics are the last of each.
        """
        more = (statistics - self.sums.shape[-1]) // max(1, blocks)
        for name in _ARRAYS if more > 0 else ():
            array = getattr(self, name)
            parts = array.reshape(*array.shape[:-1], blocks, -1)
            wide = np.pad(parts, [(0, 0)] * array.ndim + [(0, more)])
            setattr(self, name, wide.reshape(*array.shape[:-1], -1))

    def columns(self, places: Sequence[int]) -> "Means":
        """An accumulator of these statistics alone, in this order."""
        chosen = Means(0, 0, 0)
        for name in _ARRAYS:
            setattr(chosen, name, getattr(self, name)[..., list(places)])
        return chosen

    def half(self, parity: int) -> "Means":
        """An accumulator of the groups of even (0) or odd (1) number alone.

        How many inputs each half has is not kept; half of all are taken.
        """
        chosen = Means(0, 0, 0)
        for name in ("sums", "counts"):
            setattr(chosen, name, getattr(self, name)[parity::2])
        chosen.inputs = self.inputs / 2
        return chosen

    def result(self, *, minus: "Means | None" = None) -> StatisticEstimate:
        """The means and how sure they are.

        Args:
            minus: another accumulator over the same inputs; the result is then the difference of the means, paired
                input by input. n is that of this one.
        """
        value, parts, part_means, used = self._parts()
        if minus is not None:
            its_value, its_parts, its_own, its_used = minus._parts()
            value, parts, part_means, used = value - its_value, parts - its_parts, part_means - its_own, used & its_used
        spread = few_inputs.spread_of(parts, used, value, part_means)
        n, inputs = self.counts.sum(0).max(0, initial=0), self.inputs.max(0, initial=0)
        return StatisticEstimate(value, spread, n, inputs)

    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The means [layer, head, statistic]; what each group adds to them; its own mean; which groups have one.

        A ratio R = S / C of sums moves with group g by (S_g - R C_g) / C: R plus that, times the number of groups, has
        mean R and, over groups, the spread of R (linearisation of a ratio). With one count each it is the group's mean.
        """
        counts = self.counts[:, :, None, :]
        total, groups = counts.sum(0), (counts > 0).sum(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(total > 0, self.sums.sum(0) / total, np.nan)
            parts = value + (self.sums - value * counts) * groups / total
            part_means = self.sums / counts
        return value, parts, part_means, np.broadcast_to(counts > 0, self.sums.shape)

    def packed(self) -> str:
        """The sums as text that fits in JSON (base64 of an NPZ)."""
        stream = io.BytesIO()
        np.savez_compressed(stream, **{name: getattr(self, name) for name in _ARRAYS})
        return base64.b64encode(stream.getvalue()).decode()

    @classmethod
    def unpacked(cls, text: str) -> "Means":
        """The accumulator that `packed` wrote."""
        means = cls(0, 0, 0)
        with np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False) as stored:
            for name in _ARRAYS:
                setattr(means, name, stored[name])
        return means


_ARRAYS = ("sums", "counts", "inputs")


def student(total: float, squares: float, n: int) -> tuple[float, float] | None:
    """Student's 95% interval of a mean, from sums.

    Args:
        squares: the sum of their squares; NaN where nobody kept it.

    Returns:
        low and high; None of fewer than two values, or without squares.

    Source: Student (1908).
    """
    if n < 2 or np.isnan(squares):
        return None
    mean = total / n
    variance = max(0.0, squares - n * mean * mean) / (n - 1)
    half = float(stdtrit(n - 1, 0.975)) * (variance / n) ** 0.5
    return mean - half, mean + half
