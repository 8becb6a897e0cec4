"""From effects of edges to rows: the circuit in one record, its edges, the curve of faithfulness, the pairs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...scoring import effects
from ...scoring.circuits import (
    THRESHOLD,
    circuit_sizes,
    curve_areas,
    half_level,
    selection_probabilities,
)
from ...scoring.recovered_share import recovered_share
from ..outcomes import finite
from ..records import Result
from .records import CircuitEdge, CircuitPair, CircuitSummary, EdgeMean, Faithfulness

if TYPE_CHECKING:
    from ...capture.edge_names import Graph
    from .circuit_race import CircuitState

DRAWS = 3  # random circuits of a size
NOT_RACED = "not raced"
NOT_CLIPPED = "mean"


def circuits_of(graph: "Graph") -> list[tuple[str, int, int]]:
    """The circuits of a curve: their order, how many edges they have, and which draw or layer it is."""
    edge_count = len(graph.edges)
    sizes = circuit_sizes(edge_count)
    circuits = [("none", 0, 0), *(("effect", size, 0) for size in sizes)]
    circuits += [("random", size, draw) for size in sizes[:-1] for draw in range(DRAWS)]
    for layer in range(graph.layers):
        circuits.append((f"without L{layer + 1}", sum(graph.layer_of(e.receiver) != layer for e in graph.edges), layer))
    return circuits


def masks_of(graph: "Graph", ranked: Sequence[int], *, seed: int) -> np.ndarray:
    """Which senders each receiver hears in every circuit of the curve.

    Returns:
        In the order of `circuits_of`. *Shape:* (circuit, receiver, sender), bool.
    """
    edges, masks = graph.edges, []
    for order, size, number in circuits_of(graph):
        if order == "random":
            drawn = np.random.default_rng([seed, size, number]).permutation(len(edges))[:size]
            drawn_edges = [edges[k] for k in drawn]
        elif order.startswith("without"):
            drawn_edges = [edge for edge in edges if graph.layer_of(edge.receiver) != number]
        else:
            drawn_edges = [edges[k] for k in ranked[:size]]
        masks.append(graph.mask(drawn_edges))
    return np.stack(masks)


def results(state: "CircuitState", task: str) -> list[Result]:
    """The circuit, its edges in their order, the curve, the pairs."""
    edges = _edges(state)
    curve = _curve(state)
    return [_summary(state, task, edges, curve), *edges, *_means(state, edges), *curve, *_pairs(state)]


def _edges(state: "CircuitState") -> list[CircuitEdge]:
    """Every edge, in the order of the graph."""
    graph, race = state.graph, state.standings
    index_of = {int(number): k for k, number in enumerate(state.raced)}
    is_within = np.array([verdict == "does not matter" for verdict in race.verdicts])
    exact = state.exact.copy()
    exact[state.raced[is_within]] = np.nan  # not selected, also where they were measured on all pairs
    selection = selection_probabilities(exact, half_level(len(state.edges)), seed=state.options.seed)
    ranks = {int(k): rank + 1 for rank, k in enumerate(state.ranked)}
    proposed, attribution = set(state.proposed.tolist()), state.attribution.mean(1)
    estimator = f"mean; a pair counts up to {state.rules.clip:.3g} logits"
    edge_rows = []
    for number, edge in enumerate(state.edges):
        (receiver, kind), at = graph.receiver_name(edge.receiver), index_of.get(number)
        arrow = f"{graph.sender_name(edge.sender)} to {receiver}{f' {kind}' if kind else ''}"
        edge_rows.append(CircuitEdge(
            name=arrow, sender=graph.sender_name(edge.sender), receiver=receiver, input=kind,
            edge_kind=graph.kind(edge),
            sender_layer=-1 if edge.sender == 0 else (edge.sender - 1) // (graph.heads + 1),
            receiver_layer=graph.layer_of(edge.receiver),
            estimator=estimator if at is not None else "",
            effect=finite(race.value[at]) if at is not None else None,
            low=finite(race.low[at]) if at is not None else None,
            high=finite(race.high[at]) if at is not None else None,
            verdict=race.verdicts[at] if at is not None else NOT_RACED, attribution=float(attribution[number]),
            rank=ranks[number], proposed=number in proposed, selection=float(selection[number]),
            stable=bool(selection[number] >= THRESHOLD), n=int(race.rows[at]) if at is not None else 0,
        ))  # fmt: skip
    return edge_rows


def _means(state: "CircuitState", edges: Sequence[CircuitEdge]) -> list[EdgeMean]:
    """Means that are not clipped, on the pairs that decide and on those of the same answer, of edges measured there."""
    assert state.taken.exact is not None  # noqa: S101
    found = []
    sets = (("different answers", state.division.deciding), ("same answer", state.division.control))
    for pairs, numbers in sets:
        values = state.taken.exact[:, numbers]
        measured = np.flatnonzero(np.isfinite(values).all(1)) if len(numbers) > 1 else np.zeros(0, int)
        ends = effects.mean_intervals(np.zeros(len(numbers)), values[measured], most=None) if len(measured) else []
        found += [
            EdgeMean(name=edges[int(number)].name, pairs=pairs, estimator=NOT_CLIPPED, effect=one.value,
                     low=one.low, high=one.high, n=len(numbers))
            for number, one in zip(measured, ends, strict=True) if one.value is not None
        ]  # fmt: skip
    return found


def _curve(state: "CircuitState") -> list[Faithfulness]:
    """Faithfulness of every circuit, the draws of random ones taken together."""
    assert state.taken.kept is not None  # noqa: S101 - all stages are there
    judging, circuits = state.division.judging, circuits_of(state.graph)
    kept = state.taken.kept[:, judging]
    first, none = state.pairs.first_m[judging], kept[0]
    rows: dict[tuple[str, int], list[int]] = {}
    for index, (order, size, _) in enumerate(circuits):
        rows.setdefault((order, size), []).append(index)
    names = [name for name in rows if name[0] != "none"]
    means = np.stack([kept[rows[name]].mean(0) for name in names])
    shares = recovered_share(first, none, means, floor=0.0, seed=state.options.seed)
    return [
        Faithfulness(order=order, size=size, value=float(shares.share[k]), low=finite(shares.low[k]),
                     high=finite(shares.high[k]), n=shares.n)
        for k, (order, size) in enumerate(names)
    ]  # fmt: skip


def _summary(
    state: "CircuitState", task: str, edges: Sequence[CircuitEdge], curve: Sequence[Faithfulness]
) -> CircuitSummary:
    options, division, rules = state.options, state.division, state.rules
    verdicts, count = state.standings.verdicts, len(state.edges)
    areas = {}
    for order in ("effect", "random"):
        points = [point for point in curve if point.order == order]
        areas[order] = curve_areas([point.size for point in points], [point.value for point in points], count)
    ratio = (state.pairs.first_m - state.pairs.second_m)[division.deciding]
    mattering = [edge for edge in edges if edge.verdict == "matters"]
    missed = _missed(state)
    return CircuitSummary(
        name="circuit", task=task, pairs_by="file" if options.pairs_file else options.kind, answers=options.answers,
        edges=count, raced=len(state.raced), matter=len(mattering),
        does_not_matter=verdicts.count("does not matter"), open=verdicts.count("open"),
        margin_share=options.margin, margin=rules.margin, clip=rules.clip, alpha=rules.alpha,
        difference=float(ratio.mean()), stable=sum(edge.stable for edge in edges), threshold=THRESHOLD,
        bound=1.0, level=half_level(count), cpr=areas["effect"][0], cmd=areas["effect"][1],
        random_cpr=areas["random"][0], of_matter_proposed=_proposed(state, mattering), missed=missed[0],
        missed_low=missed[1], missed_high=missed[2],
        evaluations=int(np.isfinite(state.exact).sum()), of_evaluations=count * len(division.deciding),
        n=len(division.deciding), judging=len(division.judging), control=len(division.control),
        not_made=state.pairs.not_made, under_floor=state.pairs.under_floor,
    )  # fmt: skip


def _proposed(state: "CircuitState", mattering: Sequence[CircuitEdge]) -> int:
    """How many of the edges that matter are among as many strongest by attribution: what proposing alone would find."""
    order = np.argsort(-np.abs(state.attribution.mean(1)), kind="stable")[: len(mattering)]
    return len(set(order.tolist()) & set(state.mattering.tolist()))


def _missed(state: "CircuitState") -> tuple[float | None, float | None, float | None]:
    """Of the edges that attribution did not propose the share that matters, with Clopper and Pearson's interval."""
    if not len(state.sampled):
        return None, None, None
    from scipy.stats import binomtest  # half a second of start-up

    count = len(set(state.sampled.tolist()) & set(state.mattering.tolist()))
    ends = binomtest(count, len(state.sampled)).proportion_ci(0.95, "exact")
    return count / len(state.sampled), float(ends.low), float(ends.high)


def _pairs(state: "CircuitState") -> list[CircuitPair]:
    division, pairs = state.division, state.pairs
    sets = (("decides", division.deciding), ("judges", division.judging), ("control", division.control))
    return [
        CircuitPair(
            use=use,
            first=int(pairs.firsts[k]),
            second=int(pairs.seconds[k]),
            first_m=float(pairs.first_m[k]),
            second_m=float(pairs.second_m[k]),
            same=bool(pairs.same[k]),
        )
        for use, numbers in sets
        for k in numbers.tolist()
    ]


def said_of_stability(circuit: CircuitSummary) -> str:
    """Which edges are stable, in one sentence."""
    if circuit.level is None:
        return "an earlier version chose stable edges by a rule that does not hold: run the study again."
    if not circuit.stable:
        return "no edge is stable: none differs from 0 in 90 % of half-samples."
    return (
        f"{circuit.stable} {'is' if circuit.stable == 1 else 'are'} stable (different from 0 in "
        f"{circuit.threshold:.0%} of half-samples), of which at most {circuit.bound:.1f} is expected to have no effect."
    )
