"""Sums over a chunk of inputs, which are added over chunks. Does not import torch."""

from dataclasses import dataclass, field
from typing import Annotated, Generic, TypeVar

import numpy as np

from ...attention import Head, all_heads
from ...scoring.intervals import Means
from ..merging import MergedBy, OfFirst, Smallest, Summed


@dataclass(frozen=True)
class InputOffset:
    """Identifies a chunk of inputs by its checkpoint, its task and the index of its first input."""

    checkpoint: str
    task: str
    start: Smallest[int]


@dataclass(frozen=True)
class Sums:
    """Base class of attention measurements that are summed over inputs, for `layers` layers with `heads` heads each."""

    at: InputOffset
    layers: int
    heads: int
    causal: bool
    means: Summed[Means]
    attending: tuple[int, ...] = field(default=(), kw_only=True)

    @property
    def names(self) -> list[Head]:
        """Return all attention heads, layer by layer. Layers without attention are left out."""
        return all_heads(self.layers, self.heads, self.attending)

    @property
    def numbers(self) -> list[int]:
        """Return the flat index (layer × heads + head) of every attention head."""
        return [head.layer * self.heads + head.head for head in self.names]


S = TypeVar("S", bound=Sums)


@dataclass(frozen=True)
class FeatureSums(Sums):
    """Sums of attention to linguistic features and, if requested, of attention to word types."""

    features: tuple[str, ...]
    types: Summed[dict[int, np.ndarray]] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True)
class RelationSums(Sums):
    """Sums of attention along relations between words. `distances` counts the links of each relation by distance."""

    relations: tuple[str, ...]
    distances: Summed[tuple[dict[int, int], ...]]


@dataclass(frozen=True)
class StatisticsSums(Sums):
    """Head statistics, summed over inputs, and distances between heads, summed over `rows` rows of attention maps."""

    distances: Summed[np.ndarray]
    rows: Summed[int]


@dataclass(frozen=True)
class BudgetSums(Sums):
    """Sums of attention to each category of keys. If `syntax` is True, governors and dependents are categories too.

    `by_class`, `drawn`, `counts` and `even` are as in `core.scoring.budget.BudgetAttention`; empty unless requested.
    """

    syntax: bool
    by_class: Summed[Means] = field(default_factory=lambda: Means(0, 0, 0), kw_only=True)
    drawn: Summed[np.ndarray] = field(default_factory=lambda: np.zeros(0), kw_only=True)
    counts: Summed[np.ndarray] = field(default_factory=lambda: np.zeros(0), kw_only=True)
    even: Summed[np.ndarray] = field(default_factory=lambda: np.zeros(0), kw_only=True)


@dataclass(frozen=True)
class EffectiveSums(Sums):
    """Sums over inputs of raw and effective attention to each token type, and of the correlation r between the two.

    `by_length` has the sum of r and the number of inputs for each number of tokens; `squares` has sums of r squared.
    """

    by_length: Summed[dict[int, tuple[float, float]]]
    squares: Summed[dict[int, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class RoleSums(Sums):
    """Sums of the scores for all head roles. `copying` contains the OV copying score of each head, if available."""

    copying: OfFirst[np.ndarray]


@dataclass(frozen=True)
class NormSums(Sums):
    """Sums of norm-based attention over inputs: attention to features, statistics, and vector norms by token type."""

    features: FeatureSums
    statistics: StatisticsSums


@dataclass(frozen=True)
class PatternSums(Sums):
    """Sums over inputs: distances between heads, resized attention maps, and comparisons of heads across inputs.

    Attributes:
        distances: sums over `rows` map rows. *Shape:* (head, head).
        patterns: sums of `inputs` resized maps. *Shape:* (layer, head, size, size).
        nearer: how much nearer other heads are than the same head on another input, as sums and sums of squares over
            pairs of inputs; first for the checkpoint, then for random weights. *Shape:* (set of weights, half of the
            inputs, 2, head, head).
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
    """Sums of attention measurements from several work units. Sums for the same checkpoint and task are merged."""

    pieces: Annotated[tuple[S, ...], MergedBy("at.checkpoint", "at.task", order="at.start")]
