"""What was seen of a chunk of inputs, as sums that add up over chunks. Nothing here needs torch."""

from dataclasses import dataclass, field
from typing import Annotated, Generic, TypeVar

import numpy as np

from ...attention import Head, all_heads
from ...scoring.intervals import Means
from ..merging import MergedBy, OfFirst, Smallest, Summed


@dataclass(frozen=True)
class InputOffset:
    """The inputs that sums cover: those of a task on a checkpoint, from number `start` on."""

    checkpoint: str
    task: str
    start: Smallest[int]


@dataclass(frozen=True)
class Sums:
    """Sums over some inputs of a model with `layers` layers of `heads` heads."""

    at: InputOffset
    layers: int
    heads: int
    causal: bool
    means: Summed[Means]
    attending: tuple[int, ...] = field(default=(), kw_only=True)

    @property
    def names(self) -> list[Head]:
        """Return the names of the heads that exist, layer by layer."""
        return all_heads(self.layers, self.heads, self.attending)

    @property
    def numbers(self) -> list[int]:
        """Return the indices of these heads among the heads of all layers."""
        return [head.layer * self.heads + head.head for head in self.names]


S = TypeVar("S", bound=Sums)


@dataclass(frozen=True)
class FeatureSums(Sums):
    """Attention to features, in the order of their names. types: `FeatureAttention.types`, empty if not kept."""

    features: tuple[str, ...]
    types: Summed[dict[int, np.ndarray]] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True)
class RelationSums(Sums):
    """Attention along relations, in the order of their names. distances: links of each relation by distance."""

    relations: tuple[str, ...]
    distances: Summed[tuple[dict[int, int], ...]]


@dataclass(frozen=True)
class StatisticsSums(Sums):
    """Head statistics, and sums over `rows` map rows of distances between heads. *Shape:* (head, head)."""

    distances: Summed[np.ndarray]
    rows: Summed[int]


@dataclass(frozen=True)
class BudgetSums(Sums):
    """Attention budgets. syntax: whether syntactic heads and dependents are known."""

    syntax: bool


@dataclass(frozen=True)
class EffectiveSums(Sums):
    """Raw and effective attention to token types. by_length: sum of r and number of inputs, by input length in tokens;
    squares: sum of r squared, likewise."""

    by_length: Summed[dict[int, tuple[float, float]]]
    squares: Summed[dict[int, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class RoleSums(Sums):
    """Means of all roles. copying: OV copying scores; empty if they cannot be computed. *Shape:* (layer, head)."""

    copying: OfFirst[np.ndarray]


@dataclass(frozen=True)
class NormSums(Sums):
    """Norms: means of |f(x)| over tokens of each of TYPES, divided by the mean over the input's tokens; and features
    and statistics of norm-based maps."""

    features: FeatureSums
    statistics: StatisticsSums


@dataclass(frozen=True)
class PatternSums(Sums):
    """Distances between heads, mean patterns, and how patterns repeat (`core.scoring.repetition`).

    Attributes:
        distances: sums over `rows` map rows. *Shape:* (head, head).
        patterns: sums of `inputs` resized maps. *Shape:* (layer, head, size, size).
        nearer: sums, and sums of squares, over pairs of inputs of how much nearer other heads are than the head itself;
            for the checkpoint, then for random weights. *Shape:* (set of weights, half of the inputs, 2, head, head).
        pairs: number of pairs of inputs. *Shape:* (half of the inputs,), int.
    """

    distances: Summed[np.ndarray]
    rows: Summed[int]
    patterns: Summed[np.ndarray]
    inputs: Summed[int]
    nearer: Summed[np.ndarray] = field(default_factory=lambda: np.zeros((0, 2, 2, 0, 0)))
    pairs: Summed[np.ndarray] = field(default_factory=lambda: np.zeros(2, dtype=int))


@dataclass(frozen=True)
class Pieces(Generic[S]):
    """The sums of some units, for each chunk of inputs, or for each checkpoint and task."""

    pieces: Annotated[tuple[S, ...], MergedBy("at.checkpoint", "at.task", order="at.start")]
