"""What was seen of a chunk of inputs, as sums that add up over chunks. Nothing here needs torch."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from ...attention import Head, all_heads
from ...scoring.intervals import Means


@dataclass(frozen=True)
class InputOffset:
    """Which inputs sums are of: those of a task on a checkpoint, from number `start` on."""

    checkpoint: str
    task: str
    start: int


@dataclass(frozen=True)
class Sums:
    """Sums over some inputs of a model with `layers` layers of `heads` heads.

    Attributes:
        attending: as of `AttentionMaps`.
    """

    at: InputOffset
    layers: int
    heads: int
    causal: bool
    means: Means
    attending: tuple[int, ...] = field(default=(), kw_only=True)

    @property
    def names(self) -> list[Head]:
        """The heads that exist, layer by layer."""
        return all_heads(self.layers, self.heads, self.attending)

    @property
    def numbers(self) -> list[int]:
        """Their numbers among the heads of all layers."""
        return [head.layer * self.heads + head.head for head in self.names]

    def plus(self: "S", other: "S") -> "S":
        """The sums of both; the other has seen other inputs of the same task and checkpoint."""
        self.means.merge(other.means)
        return self


S = TypeVar("S", bound=Sums)


@dataclass(frozen=True)
class FeatureSums(Sums):
    """Attention to features, in the order of their names."""

    features: tuple[str, ...]


@dataclass(frozen=True)
class RelationSums(Sums):
    """Attention along relations, in the order of their names. distances: links of each relation by distance."""

    relations: tuple[str, ...]
    distances: tuple[dict[int, int], ...]

    def plus(self, other: "RelationSums") -> "RelationSums":
        """Links of both; one of an earlier version measured less of each relation and direction."""
        blocks = 2 * len(self.relations)
        for means, others in ((self.means, other.means), (other.means, self.means)):
            means.widen(others.sums.shape[-1], blocks=blocks)
        both = tuple(
            {d: mine.get(d, 0) + its.get(d, 0) for d in (mine | its)}
            for mine, its in zip(self.distances, other.distances, strict=True)
        )
        return replace(super().plus(other), distances=both)


@dataclass(frozen=True)
class StatisticsSums(Sums):
    """Head statistics, and distances between heads.

    Attributes:
        distances: sums over rows of maps, heads layer by layer. *Shape:* (head, head).
        rows: how many rows `distances` sums over.
    """

    distances: np.ndarray
    rows: int

    def plus(self, other: "StatisticsSums") -> "StatisticsSums":
        """The sums of both, and distances over the rows of both."""
        both = replace(super().plus(other), distances=self.distances + other.distances)
        return replace(both, rows=self.rows + other.rows)


@dataclass(frozen=True)
class EffectiveSums(Sums):
    """Raw and effective attention to token types.

    Attributes:
        by_length: sum of r and number of inputs, by pieces of an input.
        squares: sum of r squared, likewise; empty in partials of before r by length had an interval.
    """

    by_length: dict[int, tuple[float, float]]
    squares: dict[int, float] = field(default_factory=dict)

    def plus(self, other: "EffectiveSums") -> "EffectiveSums":
        """The sums of both, length by length."""
        both = dict(self.by_length)
        for length, (total, inputs) in other.by_length.items():
            before = both.get(length, (0.0, 0.0))
            both[length] = (before[0] + total, before[1] + inputs)
        squares = {
            length: self.squares.get(length, 0.0) + other.squares.get(length, 0.0)
            for length in {*self.squares, *other.squares}
        }
        return replace(super().plus(other), by_length=both, squares=squares)


@dataclass(frozen=True)
class RoleSums(Sums):
    """Means of all roles.

    Attributes:
        copying: OV copying scores; empty where the weights do not say. *Shape:* (layer, head).
    """

    copying: np.ndarray

    def plus(self, other: "RoleSums") -> "RoleSums":
        """The sums of both; copying is of the weights alone, so whichever has it."""
        return replace(super().plus(other), copying=self.copying if self.copying.size else other.copying)


@dataclass(frozen=True)
class NormSums(Sums):
    """Norms: means of |f(x)| over tokens of each of TYPES, each input's divided by the mean over its tokens.

    Attributes:
        features: attention to features, of norm-based maps whose rows sum to 1.
    """

    features: FeatureSums
    statistics: StatisticsSums

    def plus(self, other: "NormSums") -> "NormSums":
        """The sums of both."""
        both = super().plus(other)
        return replace(
            both, features=self.features.plus(other.features), statistics=self.statistics.plus(other.statistics)
        )


@dataclass(frozen=True)
class PatternSums(Sums):
    """Distances between heads, mean patterns, and how patterns repeat (`core.scoring.repetition`).

    Attributes:
        distances: sums over rows of maps, heads layer by layer. *Shape:* (head, head).
        rows: how many rows `distances` sums over.
        patterns: sums of resized maps. *Shape:* (layer, head, size, size).
        inputs: how many maps of a head `patterns` sums over.
        nearer: of pairs of inputs, sums and sums of squares of how much nearer other heads are than the head itself; of
            the checkpoint and then of random weights, no set where that was not asked for. *Shape:* (set of weights,
            half of the inputs, 2, head, head).
        pairs: of inputs. *Shape:* (half of the inputs,), int.
    """

    distances: np.ndarray
    rows: int
    patterns: np.ndarray
    inputs: int
    nearer: np.ndarray = field(default_factory=lambda: np.zeros((0, 2, 2, 0, 0)))
    pairs: np.ndarray = field(default_factory=lambda: np.zeros(2, dtype=int))

    def plus(self, other: "PatternSums") -> "PatternSums":
        """The sums of both."""
        names = ("distances", "rows", "patterns", "inputs", "nearer", "pairs")
        return replace(super().plus(other), **{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True)
class Pieces(Generic[S]):
    """The sums of some units: what was seen of each chunk of inputs, or of each checkpoint and task."""

    pieces: tuple[S, ...]


def added(pieces: Iterable[S]) -> list[S]:
    """The sums of each checkpoint and task, its pieces added in the order of their inputs."""
    whole: dict[tuple[str, str], S] = {}
    for piece in sorted(pieces, key=lambda piece: (piece.at.checkpoint, piece.at.task, piece.at.start)):
        key = (piece.at.checkpoint, piece.at.task)
        whole[key] = whole[key].plus(piece) if key in whole else piece
    return list(whole.values())
