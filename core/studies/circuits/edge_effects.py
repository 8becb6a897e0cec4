"""Exact effects of named edges between heads on pairs of examples, defined as in `circuit` but without a search.

Each edge is compared with the edges from the other heads in the same layer to the same input.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from ...attention import Head
from ...capture.components import INPUTS, Graph, edge_name, ends_of
from ...errors import InputError
from ...scoring.few_inputs import mean_interval
from ...store.rows import Row
from ..ablation import setup
from ..ablation.setup import ExampleOptions
from ..contract import Done, ExampleUnit, Flag, Need, Study, Unit, provenance
from ..headline import Headline, percent
from ..options import Limit
from . import circuit
from .circuit import CircuitOptions, measured
from .records import EdgeEffect


@pydantic.dataclasses.dataclass(frozen=True)
class EdgeEffectsOptions(ExampleOptions):
    """Options for a test of named edges: the edges, the checkpoint, and the pairs of inputs."""

    limit: Limit = 100
    kind: Annotated[str, Flag(f"how the second input of a pair is found: {', '.join(circuit.PAIR_KINDS)}")] = (
        circuit.OTHER_ROW
    )
    edges: Annotated[
        tuple[str, ...],
        Flag(
            "edge to measure, such as L1H2>L3H4.q (from L1H2 to the query of L3H4); repeat the option for "
            "several edges",
            name="--edge",
        ),
    ] = ()


@dataclass(frozen=True)
class EdgePartial:
    """The effects of the named edges and of their comparison edges, on the input pairs of one unit of work.

    Attributes:
        names: such as "L1H2>L3H4.q".
        effects: fall of m, in logits. *Shape:* (edge, pair).
        gap, same: m(A) - m(B), and whether both have the same answer. *Shape:* (pair,).
    """

    names: tuple[str, ...]
    layers: int
    heads: int
    effects: np.ndarray
    gap: np.ndarray
    same: np.ndarray


class EdgeEffectsStudy(Study[EdgeEffectsOptions, EdgePartial]):
    """Patch the connection from one head to another, and measure how the logit difference changes."""

    name, options, partial = "edge-effects", EdgeEffectsOptions, EdgePartial
    typed_after = None
    kinds = (EdgeEffect,)
    called = "Edges {edges} of {checkpoint}"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})
    counts = "rows"

    def units(self, options: EdgeEffectsOptions) -> list[Unit]:
        if not options.edges:
            raise InputError("At least one edge must be named; got none. Name an edge such as L1H2>L3H4.q.")
        for name in options.edges:
            ends_of(name)
        return [Unit("pairs", size=len(setup.rows_of(options)))]

    def run(self, options: EdgeEffectsOptions, unit: Unit) -> Done[EdgePartial]:
        opened = setup.opened(options)
        about = {name: value for name, value in vars(options).items() if name != "edges"}
        circuit_options = CircuitOptions(**about, answers="any")
        pairs = circuit.made_pairs(circuit_options, opened)
        if not len(pairs.firsts):
            raise InputError(
                "At least one pair of inputs must have different logit differences; in all "
                f"{pairs.under_floor} pairs of the kind “{options.kind}”, the two logit differences are almost equal. "
                "Use more examples, or another kind of pair."
            )
        graph = Graph(pairs.layers, pairs.heads)
        names: dict[str, int] = {}  # the index of each edge among all edges of the graph
        for edge in options.edges:
            sender, reader, kind = ends_of(edge)
            for end in (sender, reader):
                end.within(graph.layers, graph.heads)
            receiver = graph.receiver(reader.layer, reader.head, INPUTS.index(kind))  # was checked
            first = sum(graph.before(k) for k in range(receiver)) + graph.before_head(sender.layer)
            others = (head for head in range(graph.heads) if head != sender.head)
            for head in (sender.head, *others):  # followed by the other heads of its layer
                names[edge_name(Head(sender.layer, head), str(reader), kind)] = first + head
        numbers = list(names.values())
        wanted = ExampleUnit(tuple(range(len(pairs.firsts))), "exact", tuple(numbers))
        exact = measured(circuit_options, opened, pairs, wanted).exact
        assert exact is not None  # noqa: S101 - exact effects were wanted
        gap = pairs.first_m - pairs.second_m
        partial = EdgePartial(tuple(names), pairs.layers, pairs.heads, exact[numbers], gap, pairs.same)
        return Done(partial, provenance(opened.checkpoint, [row.id for row in setup.rows_of(options)]))

    def results(self, options: EdgeEffectsOptions, merged: EdgePartial) -> list[EdgeEffect]:
        different, results = ~merged.same.astype(bool), []
        for number, name in enumerate(merged.names):
            sender, reader, kind = ends_of(name)
            own_effects = merged.effects[number, different]
            low, high = mean_interval(own_effects[:, None]) if len(own_effects) > 1 else ([None], [None])
            alike = merged.effects[number, ~different]
            results.append(EdgeEffect(
                name=name, sender=str(sender), receiver=str(reader), input=kind,
                effect=float(own_effects.mean()) if len(own_effects) else None,
                low=None if low[0] is None else float(low[0]), high=None if high[0] is None else float(high[0]),
                same=float(alike.mean()) if len(alike) else None,
                difference=float(merged.gap[different].mean()) if different.any() else None, n=int(different.sum()),
            ))  # fmt: skip
        return results

    def headline(self, rows: Sequence[Row]) -> Headline:
        edges = [edge for edge in EdgeEffect.among(rows) if edge.effect is not None]
        if not edges:
            return Headline(
                "The two inputs of every pair have the same answer, so the effects of edges could not be measured.",
                0,
                "pairs",
            )
        most = max(edges, key=lambda edge: abs(edge.effect or 0))
        return Headline(
            (
                f"Among {len(edges)} edges, the edge {most.name} has the largest effect on the logit difference: "
                f"{most.effect:+.3f}."
            ),
            most.n,
            "pairs",
            percent(most.low, most.high, "{:+.3f}", 1),
            f"On average, the two inputs of a pair differ by {most.difference:.2f} in the logit difference.",
        )


STUDY = EdgeEffectsStudy()
