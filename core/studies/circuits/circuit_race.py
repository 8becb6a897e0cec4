"""What a circuit's study has measured so far, and what it measures next: attribution, looks of the race, the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...capture.edge_names import Edge, Graph
from ...scoring.racing import Rules, Standings, next_step, standings
from .circuit_pairs import Division, PairSet, division_of

if TYPE_CHECKING:
    from .circuit import CircuitOptions

EVERY_EDGE = 2500  # up to which all edges race; beyond, the strongest by attribution and a sample


@dataclass(frozen=True)
class CircuitPartial:
    """What units measured; None where a unit did not.

    Attributes:
        pairs: all pairs, from the first unit alone.
        numbers: which pairs were measured. *Shape:* (pair,), int.
        attribution: integrated attribution of edges. *Shape:* (edge, pair).
        exact: exact effects in logits; NaN where an edge was not run. *Shape:* (edge, pair).
        kept: m of circuits on pairs that judge. *Shape:* (circuit, pair).
    """

    pairs: PairSet | None = None
    numbers: np.ndarray | None = None
    attribution: np.ndarray | None = None
    exact: np.ndarray | None = None
    kept: np.ndarray | None = None


@dataclass(frozen=True)
class Wanted:
    """What is to be measured next. what: "attribution", "exact", "circuits" or nothing; edges: numbers of edges."""

    what: str
    numbers: tuple[int, ...] = ()
    edges: tuple[int, ...] = ()


def merged(partials: Sequence[CircuitPartial]) -> CircuitPartial:
    """All that was measured, by pair; NaN where nothing was."""
    pairs = next(part.pairs for part in partials if part.pairs is not None)
    edges, count = len(Graph(pairs.layers, pairs.heads).edges), len(pairs.firsts)
    whole = {name: np.full((edges, count), np.nan) for name in ("attribution", "exact")}
    judged = [part for part in partials if part.kept is not None]
    by_circuit = np.full((judged[0].kept.shape[0], count), np.nan) if judged else None  # type: ignore[union-attr]
    for part in partials:
        if part.numbers is None:
            continue
        for name, values in whole.items():
            new = getattr(part, name)
            if new is not None:
                values[:, part.numbers] = np.where(np.isnan(new), values[:, part.numbers], new)
        if part.kept is not None and by_circuit is not None:
            by_circuit[:, part.numbers] = part.kept
    return CircuitPartial(pairs, np.arange(count), whole["attribution"], whole["exact"], by_circuit)


@dataclass(frozen=True)
class CircuitState:
    """A circuit's study at some point, from all that was measured."""

    options: "CircuitOptions"
    taken: CircuitPartial

    @property
    def pairs(self) -> PairSet:
        """Every pair."""
        assert self.taken.pairs is not None  # noqa: S101 - the first unit says
        return self.taken.pairs

    @cached_property
    def graph(self) -> Graph:
        """The checkpoint's nodes."""
        return Graph(self.pairs.layers, self.pairs.heads)

    @cached_property
    def division(self) -> Division:
        """Which pairs are for what."""
        return division_of(self.options, self.pairs)

    @cached_property
    def attributed(self) -> np.ndarray:
        """The pairs that attribution is taken on: all that decide where it proposes, else the first look's."""
        deciding, count_of_edges = self.division.deciding, len(self.graph.edges)
        proposes = self.options.strongest > 0 or count_of_edges > EVERY_EDGE
        return deciding if proposes else deciding[: self.options.first]

    @cached_property
    def attribution(self) -> np.ndarray:
        """Attribution of the pairs that it is taken on [edge, pair]."""
        assert self.taken.attribution is not None  # noqa: S101
        return self.taken.attribution[:, self.attributed]

    @cached_property
    def exact(self) -> np.ndarray:
        """Exact effects on the pairs that decide [edge, pair]; NaN where an edge was not run."""
        assert self.taken.exact is not None  # noqa: S101
        return self.taken.exact[:, self.division.deciding]

    @cached_property
    def proposed(self) -> np.ndarray:
        """The edges that race because attribution says they are strong."""
        order = np.argsort(-np.abs(self.attribution.mean(1)), kind="stable")
        edge_count = len(self.graph.edges)
        count = (
            (edge_count if edge_count <= EVERY_EDGE else 1000)
            if self.options.strongest == 0
            else self.options.strongest
        )
        return np.sort(order[:count])

    @cached_property
    def sampled(self) -> np.ndarray:
        """Random other edges, which say what attribution misses."""
        others = np.setdiff1d(np.arange(len(self.graph.edges)), self.proposed)
        drawn = np.random.default_rng([self.options.seed, 11]).permutation(len(others))[: self.options.sample]
        return np.sort(others[drawn])

    @cached_property
    def raced(self) -> np.ndarray:
        """All edges that race, by number."""
        return np.sort(np.concatenate([self.proposed, self.sampled]))

    @cached_property
    def scale(self) -> float:
        """Mean |m(A) - m(B)| of the pairs that decide: what margins are a share of."""
        deciding = self.division.deciding
        return float(np.abs(self.pairs.first_m - self.pairs.second_m)[deciding].mean())

    @cached_property
    def rules(self) -> Rules:
        """What verdicts are held to, in logits."""
        margin, count = self.options.margin * self.scale, len(self.division.deciding)
        first = min(self.options.first, count)
        return Rules(margin, margin * self.options.clip, count, len(self.raced), self.options.alpha, first)

    @cached_property
    def standings(self) -> Standings:
        """Where each edge that races stands."""
        return standings(self.exact[self.raced], self.rules)

    @cached_property
    def mattering(self) -> np.ndarray:
        """Numbers of the edges that matter."""
        return self.raced[[verdict == "matters" for verdict in self.standings.verdicts]]

    def next(self) -> Wanted:
        """What is to be measured next."""
        deciding = self.division.deciding
        if np.isnan(self.attribution).any():
            return Wanted("attribution", tuple(map(int, self.attributed)))
        step = next_step(self.exact[self.raced], self.rules)
        if not step.over:
            numbers = deciding[step.start : step.stop]
            return Wanted("exact", tuple(map(int, numbers)), tuple(map(int, self.raced[step.heads])))
        pairs = map(int, [*deciding, *self.division.control])
        lacking = [pair for pair in pairs if np.isnan(self._exact_of(pair, self.mattering)).any()]
        if lacking:  # none where no edge matters
            return Wanted("exact", tuple(lacking), tuple(map(int, self.mattering)))
        if self.taken.kept is None:
            return Wanted("circuits", tuple(map(int, self.division.judging)), tuple(map(int, self.ranked)))
        return Wanted("nothing")

    def _exact_of(self, pair: int, edges: np.ndarray) -> np.ndarray:
        assert self.taken.exact is not None  # noqa: S101
        return self.taken.exact[edges, pair]

    @cached_property
    def ranked(self) -> np.ndarray:
        """All edges, strongest first: those that raced by |exact effect|, then the others by |attribution|."""
        means = np.zeros(len(self.graph.edges))
        raced = self.exact[self.raced]
        means[self.raced] = np.abs(np.nanmean(raced, 1)) + 1e-12
        return np.lexsort((-np.abs(self.attribution.mean(1)), -means))

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Every edge."""
        return self.graph.edges
