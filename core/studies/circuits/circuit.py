"""Circuits: which connections between components a prediction depends on, with error control.

A pair consists of an input A and a contrasting input B: another example of equal length, a perturbed example, or a line
of a file. An edge leads from a component to the query, key or value of a head, to a feed-forward sublayer, or to the
output. Its effect is the fall of the logit difference m of A if the edge carries the contribution from B instead.
Integrated edge attribution proposes edges, and a sequential test of exact effects decides whether they exceed a margin;
all verdicts hold jointly at 95 %. On held-out pairs, circuits of growing size are evaluated: the fraction of the
difference that they preserve (faithfulness), compared with random circuits and with the model without the edges of one
layer. Half-samples show which edges are stable. An edge that also matters for pairs with equal answers does not (only)
carry the answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import psutil
import pydantic.dataclasses
import scipy  # its parts load when they are used

from ... import capture, studies
from ...capture.components import Graph
from ...errors import InputError, check_choice
from ...interval import finite
from ...reading import lines_of, read_text
from ...scoring import effects
from ...scoring.circuits import (
    THRESHOLD,
    circuit_sizes,
    curve_areas,
    half_level,
    selection_probabilities,
)
from ...scoring.effects import recovered_share
from ...scoring.sequential_test import Rules, Standings, next_step, standings
from ...store.rows import Row
from ...tasks.glue import TaskRow, task_of
from ..ablation import setup
from ..ablation.perturb import DEFAULT, made_of
from ..ablation.setup import ExampleOptions
from ..contract import Done, ExampleUnit, Flag, Need, Study, Unit, provenance
from ..headline import Headline
from ..options import Limit
from ..records import Result
from .records import CircuitEdge, CircuitPair, CircuitSummary, EdgeMean, Faithfulness

if TYPE_CHECKING:
    from torch import Tensor

    from ...capture.edges import AlignedPairs
    from ...models.checkpoint import Checkpoint
    from ...models.encoding import Encoding


OTHER_ROW = "row"  # B is another row of as many tokens
PAIR_KINDS = (OTHER_ROW, *DEFAULT)
ANSWERS = ("different", "same", "any")
FLOOR = 0.1  # logits: pairs whose m differ less have nothing to trace
Texts = tuple[str, str | None]
SHOWN_EDGES = 30  # of a terminal's table
PAIRS_A_UNIT = 8
FILE_HELP = (
    "file of pairs, one per line: two sentences separated by a tab; for a language model, two more columns with a word "
    "and its foil"
)
BYTES_AN_EDGE = 8 * 6  # of one edge and pair: what is held of it at once
MASK = "[MASK]"
WITHOUT_WORDS, WITH_WORDS = 2, 4
DRAWS = 3  # random circuits of a size
NOT_RACED = "not raced"
NOT_CLIPPED = "mean"
EVERY_EDGE = 2500  # up to which all edges race; beyond, the strongest by attribution and a sample


@pydantic.dataclasses.dataclass(frozen=True)
class CircuitOptions(ExampleOptions):
    """Options for a circuit search: the checkpoint, the input pairs, and the settings of the statistical test."""

    limit: Limit = 400
    kind: Annotated[str, Flag(f"how the second input of a pair is found: {', '.join(PAIR_KINDS)}")] = OTHER_ROW
    pairs_file: Annotated[str | None, Flag(FILE_HELP)] = None
    answers: Annotated[
        str,
        Flag(
            "which pairs of inputs to use: different (inputs with different answers), same (inputs with the "
            "same answer) or any"
        ),
    ] = "different"
    pairs: Annotated[int, Flag("number of input pairs on which edges are tested", least=1)] = 100
    judging: Annotated[int, Flag("number of held-out input pairs on which circuits are evaluated", least=1)] = 50
    control: Annotated[int, Flag("number of control pairs, which are input pairs with the same answer", least=0)] = 30
    margin: Annotated[
        float,
        Flag(
            "smallest relevant effect of an edge; 1 is the mean change in the logit difference from one input of a "
            "pair to the other"
        ),
    ] = 0.05
    clip: Annotated[
        float,
        Flag("value at which the effect of an edge on one pair of inputs is clipped, as a multiple of the margin"),
    ] = 2.0
    alpha: Annotated[
        float, Flag("probability that at least one verdict is wrong, over all edges and interim analyses")
    ] = 0.05
    first: Annotated[int, Flag("number of input pairs at the first interim analysis", least=4)] = 24
    strongest: Annotated[
        int,
        Flag(
            (
                "number of edges to test, chosen by largest attribution; 0 tests all edges, or 1,000 edges in models "
                "with more than 2,500"
            ),
            least=0,
        ),
    ] = 0
    sample: Annotated[int, Flag("number of further edges to test, which are drawn at random", least=0)] = 200


@dataclass(frozen=True)
class CircuitPartial:
    """Measurements from one or more units of work of a circuit search. Fields without measurements are None.

    Attributes:
        pairs: all pairs, from the first unit.
        numbers: which pairs were measured.
        attribution, exact: integrated attribution and exact effects, in logits. *Shape:* (edge, pair).
        kept: m of each circuit on evaluation pairs. *Shape:* (circuit, pair).
    """

    pairs: "PairSet | None" = None
    numbers: np.ndarray | None = None
    attribution: np.ndarray | None = None
    exact: np.ndarray | None = None
    kept: np.ndarray | None = None


class CircuitStudy(Study[CircuitOptions, CircuitPartial]):
    """Find the edges that cause the logit difference between two inputs, and control the family-wise error rate."""

    name, options, partial, arguments = "circuit", CircuitOptions, CircuitPartial, ExampleUnit
    question = "Which connections does the prediction depend on?"
    kinds = (CircuitSummary, CircuitEdge, EdgeMean, Faithfulness, CircuitPair)
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})
    counts = "pairs"

    def title(self, options: CircuitOptions) -> str:
        return f"Circuit of {options.checkpoint}, {options.pairs_file or options.kind}"

    def needs_of(self, options: Mapping[str, Any]) -> frozenset[Need]:
        """Return the requirements of a job, such as labels. There are none for a file of pairs with answer words."""
        return frozenset() if names_words(options.get("pairs_file")) else self.needs

    def units(self, options: CircuitOptions) -> list[Unit]:
        if not 0 < options.margin < 1:
            raise InputError(
                "The margin (a fraction of the difference between the two inputs) must be between 0 and 1; got "
                f"{options.margin:g}. Choose a value in this range."
            )
        if not options.clip > 1:
            raise InputError(
                "The clip (the limit for the effect on one pair, in units of the margin) must be above 1; got "
                f"{options.clip:g}. Raise the clip."
            )
        if not 0 < options.alpha < 1:
            raise InputError(
                f"The probability of a wrong verdict (alpha) must be between 0 and 1; got {options.alpha:g}. "
                "Choose a value such as 0.05."
            )
        check_choice("The kind of pair", options.kind, PAIR_KINDS)
        check_choice("Answers", options.answers, ANSWERS)
        if options.pairs < 12:
            raise InputError(f"Testing edges needs at least 12 pairs of inputs; got {options.pairs}. Raise --pairs.")
        if options.judging < 4:
            raise InputError(
                f"Evaluating circuits needs at least 4 held-out pairs of inputs; got {options.judging}. Raise "
                "--judging."
            )
        texts_of(options)
        return [Unit("pairs", ExampleUnit((), "pairs"), 1)]

    def more(self, options: CircuitOptions, partials: Sequence[CircuitPartial]) -> list[Unit]:
        state = CircuitState(options, self.merge(options, partials))
        wanted, done = state.next(), sum(part.numbers is not None for part in partials)
        order = sorted(wanted.positions, key=lambda k: (int(state.pairs.lengths[k]), k))
        slices = [tuple(order[k : k + PAIRS_A_UNIT]) for k in range(0, len(order), PAIRS_A_UNIT)]
        return [Unit(f"{wanted.step}-{done + k}", replace(wanted, positions=some), len(some))
                for k, some in enumerate(slices)] if wanted.step else []  # fmt: skip

    def run(self, options: CircuitOptions, unit: Unit) -> Done[CircuitPartial]:
        opened, wanted = opened_model(options), unit.arguments
        pairs = _pairs(options, opened.checkpoint.weights_hash)
        numbers = range(len(pairs.firsts)) if wanted.step == "pairs" else wanted.positions
        if wanted.step == "pairs":
            division_of(options, pairs)
            _fits_in_memory(pairs)
            partial = CircuitPartial(pairs)
            first = encoded(opened.checkpoint, texts_of(options)[int(pairs.firsts[0])][0])
            _stack(options, opened, first)
        else:
            partial = measured(options, opened, pairs, wanted)
        return Done(partial, provenance(opened.checkpoint, _ids(options, pairs, numbers)))

    def merge(self, options: CircuitOptions, partials: Sequence[CircuitPartial]) -> CircuitPartial:
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

    def results(self, options: CircuitOptions, merged: CircuitPartial) -> list[Result]:
        if merged.kept is None:
            return []
        state = CircuitState(options, merged)
        graph, race = state.graph, state.standings
        index_of = {int(number): k for k, number in enumerate(state.patched)}
        is_within = np.array([verdict == "does not matter" for verdict in race.verdicts])
        exact = state.exact.copy()
        exact[state.patched[is_within]] = np.nan  # not selected, also where they were measured on all pairs
        selection = selection_probabilities(exact, half_level(len(graph.edges)), seed=state.options.seed)
        ranks = {int(k): rank + 1 for rank, k in enumerate(state.ranked)}
        proposed, attribution = set(state.proposed.tolist()), state.attribution.mean(1)
        estimator = f"mean; a pair counts up to {state.rules.clip:.3g} logits"
        edges = []
        for number, edge in enumerate(graph.edges):
            (receiver, kind), sender = graph.receiver_name(edge.receiver), graph.sender_name(edge.sender)
            tested: Row = {"verdict": NOT_RACED, "n": 0}
            if (at := index_of.get(number)) is not None:
                effect, low, high = (finite(values[at]) for values in (race.value, race.low, race.high))
                tested = {"estimator": estimator, "effect": effect, "low": low, "high": high,
                          "verdict": race.verdicts[at], "n": int(race.rows[at])}  # fmt: skip
            edges.append(CircuitEdge(
                name=f"{sender} to {receiver}{f' {kind}' if kind else ''}", sender=sender, receiver=receiver,
                input=kind, edge_kind=graph.kind(edge),
                sender_layer=-1 if edge.sender == 0 else (edge.sender - 1) // (graph.heads + 1),
                receiver_layer=graph.layer_of(edge.receiver), attribution=float(attribution[number]),
                rank=ranks[number], proposed=number in proposed, selection=float(selection[number]),
                stable=bool(selection[number] >= THRESHOLD), **tested,
            ))  # fmt: skip
        curve = _curve(state)
        division, pairs = state.division, state.pairs
        sets = (("decides", division.deciding), ("judges", division.judging), ("control", division.control))
        return [
            _summary(state, task_of(options.task).key, edges, curve),
            *edges,
            *_means(state, edges),
            *curve,
            *[
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
            ],
        ]

    def headline(self, rows: Sequence[Row]) -> Headline:
        circuit, edges = CircuitSummary.among(rows)[0], CircuitEdge.among(rows)
        most = min(edges, key=lambda edge: edge.rank)
        strong = [edge.name.replace(" to ", " → ") for edge in edges if edge.verdict == "matters"]
        edges_change, names = "edges changes" if circuit.matter == 1 else "edges change", ", ".join(strong[:NAMED])
        names += ", ..." if len(strong) > NAMED else ""
        found = (
            f"{circuit.matter} of {circuit.raced:,} {edges_change} the logit difference by more than "
            f"{circuit.margin_share:.0%}: {names}."
            if circuit.matter
            else f"None of {circuit.raced:,} edges changes the logit difference by more than "
            f"{circuit.margin_share:.0%}. The strongest edge is {most.name}."
        )
        edges_are = "edge is" if circuit.open == 1 else "edges are"
        return Headline(
            f"{found} {circuit.open} {edges_are} undecided. All other tested edges change the logit difference by less "
            f"than {circuit.margin_share:.0%}.",
            circuit.n,
            "pairs of inputs",
            f"An edge matters if its mean effect exceeds {circuit.margin_share:.0%} of the mean change in the logit "
            "difference between the inputs of a pair. With "
            f"{1 - circuit.alpha:.0%} confidence, all verdicts are correct.",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        edges = sorted(CircuitEdge.among(rows), key=lambda edge: edge.rank)[:SHOWN_EDGES]
        shown = {edge.name for edge in edges}
        of_edge = ("name", "effect", "low", "high", "n", "verdict", "selection", "attribution")
        of_mean = ("name", "pairs", "effect", "low", "high", "n")
        (summary,) = CircuitSummary.among(rows)
        return [
            [edge.columns(*of_edge) for edge in edges],
            f"The column effect contains the {edges[0].estimator}.",
            [mean.columns(*of_mean) for mean in EdgeMean.among(rows) if mean.name in shown],
            "The column effect contains the mean, which is not clipped.",
            f"{summary.matter} of {summary.raced} edges change the logit difference by more than {summary.margin:.3f} "
            f"logits, and {summary.open} edges are undecided. {said_of_stability(summary)}",
        ]


STUDY = CircuitStudy()
NAMED = 3  # edges that the headline names


# ---------------------------------------------------------------- what was measured so far, and what is measured next


@dataclass(frozen=True)
class CircuitState:
    """The current state of a circuit search: its options and all measurements so far."""

    options: "CircuitOptions"
    taken: CircuitPartial

    @property
    def pairs(self) -> "PairSet":
        assert self.taken.pairs is not None  # noqa: S101 - the first unit says
        return self.taken.pairs

    @cached_property
    def graph(self) -> Graph:
        return Graph(self.pairs.layers, self.pairs.heads)

    @cached_property
    def division(self) -> "Division":
        return division_of(self.options, self.pairs)

    @cached_property
    def attributed(self) -> np.ndarray:
        """Return the indices of the pairs of inputs on which attribution is computed."""
        deciding, count_of_edges = self.division.deciding, len(self.graph.edges)
        proposes = self.options.strongest > 0 or count_of_edges > EVERY_EDGE
        return deciding if proposes else deciding[: self.options.first]

    @cached_property
    def attribution(self) -> np.ndarray:
        """Return the gradient-based estimates (attributions) of the effects of edges, as [edge, pair]."""
        assert self.taken.attribution is not None  # noqa: S101
        return self.taken.attribution[:, self.attributed]

    @property
    def effects(self) -> np.ndarray:
        """Return the exact effects of edges on all pairs of inputs, as [edge, pair]. Unmeasured effects are NaN."""
        assert self.taken.exact is not None  # noqa: S101
        return self.taken.exact

    @cached_property
    def exact(self) -> np.ndarray:
        """Return the exact effects of edges on the input pairs reserved for testing edges, as [edge, pair]."""
        return self.effects[:, self.division.deciding]

    @cached_property
    def proposed(self) -> np.ndarray:
        """Return the indices of the edges with the strongest attribution. Their effects are then measured exactly."""
        order = np.argsort(-np.abs(self.attribution.mean(1)), kind="stable")
        every = len(order) if len(order) <= EVERY_EDGE else 1000
        return np.sort(order[: self.options.strongest or every])

    @cached_property
    def sampled(self) -> np.ndarray:
        """Return the indices of random edges outside `proposed`. They show how many edges attribution misses."""
        others = np.setdiff1d(np.arange(len(self.graph.edges)), self.proposed)
        drawn = np.random.default_rng([self.options.seed, 11]).permutation(len(others))[: self.options.sample]
        return np.sort(others[drawn])

    @cached_property
    def patched(self) -> np.ndarray:
        """Return the indices of all edges that are patched to measure their effects."""
        return np.sort(np.concatenate([self.proposed, self.sampled]))

    @cached_property
    def scale(self) -> float:
        """Return the unit of margins: the mean absolute change in the logit difference from input A to input B."""
        deciding = self.division.deciding
        return float(np.abs(self.pairs.first_m - self.pairs.second_m)[deciding].mean())

    @cached_property
    def rules(self) -> Rules:
        """Return the rules of the sequential test: its margin and clipping limit, both in logits, and its significance
        level."""
        margin, count = self.options.margin * self.scale, len(self.division.deciding)
        first = min(self.options.first, count)
        return Rules(margin, margin * self.options.clip, count, len(self.patched), self.options.alpha, first)

    @cached_property
    def standings(self) -> Standings:
        return standings(self.exact[self.patched], self.rules)

    @cached_property
    def mattering(self) -> np.ndarray:
        """Return the indices of the edges whose effect exceeds the margin, according to the sequential test."""
        return self.patched[[verdict == "matters" for verdict in self.standings.verdicts]]

    def next(self) -> ExampleUnit:
        """Return the next measurement of the circuit search, and the pairs of inputs to measure."""
        deciding = self.division.deciding
        if np.isnan(self.attribution).any():
            return ExampleUnit(tuple(map(int, self.attributed)), "attribution")
        step = next_step(self.exact[self.patched], self.rules)
        if not step.over:
            numbers = deciding[step.start : step.stop]
            return ExampleUnit(tuple(map(int, numbers)), "exact", tuple(map(int, self.patched[step.heads])))
        pairs = map(int, [*deciding, *self.division.control])
        lacking = [pair for pair in pairs if np.isnan(self.effects[self.mattering, pair]).any()]
        if lacking:  # none where no edge matters
            return ExampleUnit(tuple(lacking), "exact", tuple(map(int, self.mattering)))
        if self.taken.kept is None:
            return ExampleUnit(tuple(map(int, self.division.judging)), "circuits", tuple(map(int, self.ranked)))
        return ExampleUnit(())

    @cached_property
    def ranked(self) -> np.ndarray:
        """Rank all edges: first tested edges by absolute effect, then the other edges by absolute attribution."""
        means = np.zeros(len(self.graph.edges))
        means[self.patched] = np.abs(np.nanmean(self.exact[self.patched], 1)) + 1e-12
        return np.lexsort((-np.abs(self.attribution.mean(1)), -means))


# ---------------------------------------------------------------- result records


def circuits_of(graph: "Graph") -> list[tuple[str, int, int]]:
    """List the circuits to evaluate, as (name, number of edges, index). The index is the draw for random circuits, the
    layer for circuits that omit one layer, and otherwise 0."""
    edge_count = len(graph.edges)
    sizes = circuit_sizes(edge_count)
    circuits = [("none", 0, 0), *(("effect", size, 0) for size in sizes)]
    circuits += [("random", size, draw) for size in sizes[:-1] for draw in range(DRAWS)]
    for layer in range(graph.layers):
        circuits.append((f"without L{layer + 1}", sum(graph.layer_of(e.receiver) != layer for e in graph.edges), layer))
    return circuits


def masks_of(graph: "Graph", ranked: Sequence[int], *, seed: int) -> np.ndarray:
    """Build boolean masks [circuit, receiver, sender] that mark the edges of each circuit."""
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


def _means(state: "CircuitState", edges: Sequence[CircuitEdge]) -> list[EdgeMean]:
    """Return mean effects without clipping, on the pairs that test edges and on the control pairs."""
    found = []
    answers = {"different": "different answers", "same": "same answer", "any": "any answers"}[state.options.answers]
    sets = ((answers, state.division.deciding), ("same answer", state.division.control))
    for pairs, numbers in sets:
        values = state.effects[:, numbers]
        measured = np.flatnonzero(np.isfinite(values).all(1)) if len(numbers) > 1 else np.zeros(0, int)
        ends = effects.mean_intervals(np.zeros(len(numbers)), values[measured], most=None) if len(measured) else []
        found += [
            EdgeMean(name=edges[int(number)].name, pairs=pairs, estimator=NOT_CLIPPED, effect=one.value,
                     low=one.low, high=one.high, n=len(numbers))
            for number, one in zip(measured, ends, strict=True) if one.value is not None
        ]  # fmt: skip
    return found


def _curve(state: "CircuitState") -> list[Faithfulness]:
    """Return the faithfulness of every circuit. Random circuits of one size are averaged."""
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
    verdicts, count = state.standings.verdicts, len(state.graph.edges)
    areas = {}
    for order in ("effect", "random"):
        points = [point for point in curve if point.order == order]
        areas[order] = curve_areas([point.size for point in points], [point.value for point in points], count)
    ratio = (state.pairs.first_m - state.pairs.second_m)[division.deciding]
    mattering = [edge for edge in edges if edge.verdict == "matters"]
    missed = _missed(state)
    strongest = np.argsort(-np.abs(state.attribution.mean(1)), kind="stable")[: len(mattering)]  # by attribution
    proposed = set(strongest.tolist()) & set(state.mattering.tolist())
    return CircuitSummary(
        name="circuit", task=task, pairs_by="file" if options.pairs_file else options.kind, answers=options.answers,
        edges=count, raced=len(state.patched), matter=len(mattering),
        does_not_matter=verdicts.count("does not matter"), open=verdicts.count("open"),
        margin_share=options.margin, margin=rules.margin, clip=rules.clip, alpha=rules.alpha,
        difference=float(ratio.mean()), stable=sum(edge.stable for edge in edges), threshold=THRESHOLD,
        bound=1.0, level=half_level(count), cpr=areas["effect"][0], cmd=areas["effect"][1],
        random_cpr=areas["random"][0], of_matter_proposed=len(proposed), missed=missed[0],
        missed_low=missed[1], missed_high=missed[2],
        evaluations=int(np.isfinite(state.exact).sum()), of_evaluations=count * len(division.deciding),
        n=len(division.deciding), judging=len(division.judging), control=len(division.control),
        not_made=state.pairs.not_made, under_floor=state.pairs.under_floor,
    )  # fmt: skip


def _missed(state: "CircuitState") -> tuple[float | None, float | None, float | None]:
    """Return the fraction of randomly drawn edges that matter but were not proposed, with its exact interval."""
    if not len(state.sampled):
        return None, None, None
    count = len(set(state.sampled.tolist()) & set(state.mattering.tolist()))
    ends = scipy.stats.binomtest(count, len(state.sampled)).proportion_ci(0.95, "exact")
    return count / len(state.sampled), float(ends.low), float(ends.high)


def said_of_stability(circuit: CircuitSummary) -> str:
    """Describe how stable the circuit is: how many of its edges recur in most random halves of the input pairs."""
    if circuit.level is None:
        return "An earlier version chose stable edges by an invalid rule. Run the study again."
    if not circuit.stable:
        return "No edge is stable, because none differs from 0 in 90 % of half-samples."
    return (
        f"{circuit.stable} {'edge is' if circuit.stable == 1 else 'edges are'} stable (different from 0 in "
        f"{circuit.threshold:.0%} of half-samples). At most {circuit.bound:.1f} of them is expected to have no effect."
    )


# ---------------------------------------------------------------- pairs of a language model


def columns_of(path: str) -> list[list[str]]:
    """Read a file of input pairs with two or four columns. Raises InputError for an invalid file."""
    try:
        lines = lines_of(read_text(path, given=True))
    except OSError as error:
        raise InputError(
            f"The file of pairs must be a readable text file; {path} cannot be opened ({error.strerror or error}). "
            "Check its name and size."
        ) from error
    split = [[part.strip() for part in line.split("\t")] for line in lines if line.strip()]
    if not split:
        raise InputError(
            f"A file of pairs must have at least one pair; {path} is empty. Write one pair into each line."
        )
    wanted = WITH_WORDS if len(split[0]) == WITH_WORDS else WITHOUT_WORDS
    for number, parts in enumerate(split, 1):
        if len(parts) != wanted or not all(parts):
            raise InputError(
                "All lines in a file of pairs must have 2 filled columns (two sentences), or all must have 4 (also a "
                f"word and its foil); line {number} has {sum(map(bool, parts))}. Correct the line."
            )
    return split


def names_words(path: str | None) -> bool:
    """Return True if every line of a file of input pairs also has a correct word and a wrong word (foil)."""
    return path is not None and len(columns_of(path)[0]) == WITH_WORDS


def opened_model(options: "CircuitOptions") -> setup.Opened:
    """Load the classifier, or a language model for pairs with answer words. Raises CheckpointError if loading fails."""
    if not names_words(options.pairs_file):
        return setup.opened(options)
    model = studies.worker_cache.get_checkpoint(options.checkpoint, head="language")
    return setup.Opened(model, task_of(options.task), ())


def encoded(checkpoint: "Checkpoint", texts: tuple[str, str | None]) -> "Encoding":
    """Tokenise a text or pair of texts. [MASK] is first replaced with the mask token of the checkpoint."""
    mask = checkpoint.tokenizer.mask_token or MASK
    return checkpoint.encode(texts[0].replace(MASK, mask), texts[1])


def place_of(checkpoint: "Checkpoint", encoding: "Encoding") -> int:
    """Return the position at which a word is predicted: that of [MASK] or, in a decoder, the last position. Raises
    InputError unless the input of an encoder has exactly one [MASK]."""
    if checkpoint.causal:
        return len(encoding) - 1
    places = [k for k, piece in enumerate(encoding.ids) if piece == checkpoint.tokenizer.mask_token_id]
    if len(places) != 1:
        raise InputError(
            f'A sentence with a masked word must have exactly one {MASK}; "{encoding.text[:60]}" has '
            f"{len(places)}. Correct the sentence."
        )
    return places[0]


def piece_of(checkpoint: "Checkpoint", word: str) -> int:
    """Return the vocabulary ID of a word that is a single token. Raises InputError for words with several tokens."""
    tokenizer = checkpoint.tokenizer
    pieces = tokenizer.encode(f" {word}", add_special_tokens=False)
    if len(pieces) != 1 or pieces[0] == tokenizer.unk_token_id:
        raise InputError(
            f'A word and its foil must each be one token of the vocabulary; "{word[:40]}" is {len(pieces)} tokens or '
            "unknown. Choose another word."
        )
    return int(pieces[0])


def word_differences(
    checkpoint: "Checkpoint", sides: "Sequence[Sequence[Encoding]]", words: Sequence[tuple[str, str]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For both inputs of every pair, compute the logit of the correct word minus that of its foil. Also find the token
    IDs of these words.

    `sides` holds the encodings of all A, then of all B. Raises InputError for a word that is not a single token or
    equals its foil.
    """
    pieces = np.array([[piece_of(checkpoint, word) for word in both] for both in words])
    if (pieces[:, 0] == pieces[:, 1]).any():
        number = int((pieces[:, 0] == pieces[:, 1]).argmax()) + 1
        raise InputError(
            f"A foil must differ from the word that it replaces; line {number} has the same word twice. Change "
            "the foil."
        )
    at, found = np.arange(len(pieces)), []
    for encodings in sides:
        places = [place_of(checkpoint, encoding) for encoding in encodings]
        logits = capture.running.answers(checkpoint, encodings, places).double().cpu().numpy()
        found.append(logits[at, pieces[:, 0]] - logits[at, pieces[:, 1]])
    return found[0], found[1], pieces[:, 0], pieces[:, 1]


# ---------------------------------------------------------------- pairs of inputs


@dataclass(frozen=True)
class PairSet:
    """Pairs of inputs A and B with different logit differences m(A) and m(B). Each array has one item per pair.

    Attributes:
        firsts: position of A in the task, or its line in a file of pairs.
        seconds: position of B; -1 if B was created from A, or both are in a file.
        answer, rival: outputs whose logits are subtracted (token IDs for a language model); rival is -1 for a score.
        same: whether A and B have the same answer.
        under_floor: number of pairs left out because their m differ by less than FLOOR.
    """

    layers: int
    heads: int
    firsts: np.ndarray
    seconds: np.ndarray
    first_m: np.ndarray
    second_m: np.ndarray
    answer: np.ndarray
    rival: np.ndarray
    same: np.ndarray
    lengths: np.ndarray
    not_made: int
    under_floor: int


@dataclass(frozen=True)
class Division:
    """How input pairs are divided, as indices: pairs for testing edges, pairs for evaluating circuits, and controls."""

    deciding: np.ndarray
    judging: np.ndarray
    control: np.ndarray


def texts_of(options: "CircuitOptions") -> list[tuple[Texts, Texts | None]]:
    """Return the texts of every input A and, if the pairs come from a file, of every input B."""
    if options.pairs_file is None:
        return [((row.text, row.pair), None) for row in setup.rows_of(options)]
    return [((parts[0], None), (parts[1], None)) for parts in columns_of(options.pairs_file)]


def made_pairs(options: "CircuitOptions", opened: setup.Opened) -> PairSet:
    """Create all pairs of inputs with their logit differences. Raises InputError if no pair can be created."""
    every = texts_of(options)
    if names_words(options.pairs_file):
        words = [(parts[2], parts[3]) for parts in columns_of(options.pairs_file or "")]
        sides = [
            [encoded(opened.checkpoint, texts) for texts in side if texts is not None]
            for side in zip(*every, strict=True)
        ]
        first, second, answer, rival = word_differences(opened.checkpoint, sides, words)
        columns = (np.arange(len(every)), np.full(len(every), -1), first, second, answer, rival,
                   np.sign(first) == np.sign(second), np.array([len(encoding) for encoding in sides[0]]))  # fmt: skip
        return _far(opened, columns, 0)
    encodings = [opened.checkpoint.encode(*first) for first, _ in every]
    logits = capture.running.predict(opened.checkpoint, encodings).double().numpy()
    if options.pairs_file is None and options.kind == OTHER_ROW:
        firsts, seconds = _other_rows(encodings, _answers(logits), options.seed)
        others = logits[seconds]
        not_made = 0
    else:
        texts = [other_text(options, opened, text, number) for number, text in enumerate(every)]
        firsts = np.array([k for k, text in enumerate(texts) if text is not None], dtype=int)
        seconds, not_made = np.full(len(firsts), -1), len(every) - len(firsts)
        made = [opened.checkpoint.encode(*text) for text in texts if text is not None]
        others = capture.running.predict(opened.checkpoint, made).double().numpy() if made else logits[:0]
    if not len(firsts):
        raise InputError(
            f'The examples must allow at least one pair of the kind "{options.kind}"; got no pair from {len(every)} '
            "examples. Choose another kind of pair, or more examples."
        )
    # the answer on A minus the answer on B, or minus its strongest rival if both answers are equal
    first, second = logits[firsts], others
    at = np.arange(len(first))
    if first.shape[1] == 1:
        answer, rival = np.zeros(len(first), dtype=int), np.full(len(first), -1)
        same = _answers(np.concatenate([first, second])).reshape(2, -1)
        alike, whole = same[0] == same[1], (first[:, 0], second[:, 0])
    else:
        answer, rival = first.argmax(1), second.argmax(1)
        alike = answer == rival
        rival = np.where(alike, setup.strongest_rival(first, answer), rival)
        whole = (first[at, answer] - first[at, rival], second[at, answer] - second[at, rival])
    lengths = np.array([len(encodings[k]) for k in firsts])
    columns = (firsts, seconds, *whole, answer, rival, alike, lengths)
    return _far(opened, columns, not_made)


def _far(opened: setup.Opened, columns: tuple[np.ndarray, ...], not_made: int) -> PairSet:
    """Return the pairs whose logit differences are far enough apart."""
    far = np.abs(columns[2] - columns[3]) >= FLOOR
    return PairSet(
        opened.checkpoint.layers,
        opened.checkpoint.heads,
        *(column[far] for column in columns),
        not_made=not_made,  # type: ignore[misc]
        under_floor=int((~far).sum()),
    )


def _answers(logits: np.ndarray) -> np.ndarray:
    """Return the answer of the model to each input: a class, or whether a score is above the median."""
    return logits.argmax(1) if logits.shape[1] > 1 else (logits[:, 0] > np.median(logits[:, 0])).astype(int)


def other_text(
    options: "CircuitOptions", opened: setup.Opened, text: tuple[Texts, Texts | None], number: int
) -> Texts | None:
    """Create input B, or read it from the file of pairs. Return None if input A cannot be perturbed."""
    if text[1] is not None:
        return text[1]
    row = TaskRow(str(number), text[0][0], text[0][1], 0)
    return made_of(options.kind, row, options.seed + number, opened.checkpoint.tokenizer.mask_token)


def _other_rows(encodings: "Sequence[Encoding]", answers: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pair examples of equal length, each once: first with different answers, then with the same answer."""
    generator = np.random.default_rng(seed)
    by_length: dict[int, list[int]] = {}
    for number in generator.permutation(len(encodings)).tolist():
        by_length.setdefault(len(encodings[number]), []).append(number)
    pairs: list[tuple[int, int]] = []
    for length in sorted(by_length):
        left = by_length[length]
        while len(left) > 1:
            first = left.pop()
            other = next((k for k in left if answers[k] != answers[first]), left[0])
            left.remove(other)
            pairs.append((first, other))
    columns = np.array(pairs, dtype=int).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def division_of(options: "CircuitOptions", pairs: PairSet) -> Division:
    """Divide the pairs at random into pairs that test edges and pairs that evaluate circuits. Raises InputError if
    there are too few pairs."""
    same = pairs.same.astype(bool)
    wanted = np.ones(len(same), dtype=bool) if options.answers == "any" else same == (options.answers == "same")
    order = np.random.default_rng([options.seed, len(same)]).permutation(len(same))
    chosen = order[wanted[order]]
    if len(chosen) < 18:
        raise InputError(
            f"A circuit needs at least 18 usable pairs of inputs with {options.answers} answers; got {len(chosen)} of "
            f"{len(same)} usable pairs. Among the other examples, {pairs.not_made} had no second input. For "
            f"{pairs.under_floor}, the logit difference changes by less than {FLOOR:g}. Use more examples, or another "
            "kind of pair."
        )
    deciding = options.pairs
    if len(chosen) < options.pairs + options.judging:
        deciding = min(options.pairs, max(12, len(chosen) * 2 // 3))
    control = order[same[order] & ~np.isin(order, chosen)][: options.control]
    return Division(chosen[:deciding], chosen[deciding : deciding + options.judging], control)


def run_inputs(
    options: "CircuitOptions", opened: setup.Opened, pairs: PairSet, numbers: Sequence[int]
) -> "list[tuple[list[int], AlignedPairs]]":
    """Group pairs into batches in which all inputs A have the same length and the same position of the predicted word.
    Return the indices and the aligned pairs of each batch."""
    every, checkpoint = texts_of(options), opened.checkpoint
    firsts, seconds = [every[int(pairs.firsts[k])][0] for k in numbers], []
    for k in numbers:
        first = int(pairs.firsts[k])
        other = int(pairs.seconds[k])
        made = every[other][0] if other >= 0 else other_text(options, opened, every[first], first)
        if made is None:
            raise InputError(
                f"All units of a job must use the same pairs of inputs; the pair for example {first + 1} could not be "
                "recreated. Start the job again."
            )
        seconds.append(made)
    batches: dict[tuple[int, int], list[int]] = {}
    if options.pairs_file is None and options.kind == OTHER_ROW:
        a, b = ([checkpoint.encode(*texts) for texts in side] for side in (firsts, seconds))
        alignments = [capture.patching.everywhere(x, y) for x, y in zip(a, b, strict=True)]
    else:
        a, b = ([encoded(checkpoint, texts) for texts in side] for side in (firsts, seconds))
        alignments = [studies.ablation.input_pairs.positions(x, y) for x, y in zip(a, b, strict=True)]
    read = names_words(options.pairs_file)
    for place, encoding in enumerate(a):
        batches.setdefault((len(encoding), place_of(checkpoint, encoding) if read else -1), []).append(place)
    return [
        (some, capture.edges.AlignedPairs([a[k] for k in some], [b[k] for k in some], [alignments[k] for k in some]))
        for _, some in sorted(batches.items())
    ]


# ---------------------------------------------------------------- units and passes


@lru_cache(maxsize=2)
def _pairs(options: CircuitOptions, weights_hash: str) -> PairSet:
    """Return the pairs of inputs that the options describe, computed once per worker."""
    return made_pairs(options, opened_model(options))


def _ids(options: CircuitOptions, pairs: PairSet, numbers: Sequence[int]) -> list[str]:
    if options.pairs_file is not None:
        return [f"line {int(pairs.firsts[k]) + 1}" for k in numbers]
    rows = setup.rows_of(options)
    return [rows[int(pairs.firsts[k])].id for k in numbers]


def _fits_in_memory(pairs: PairSet) -> None:
    """Raise InputError, before anything is measured, if the effects of all edges would not fit into memory."""
    graph = capture.components.Graph(pairs.layers, pairs.heads)
    count = sum(graph.before(receiver) for receiver in range(graph.receivers))
    needed, free = count * len(pairs.firsts) * BYTES_AN_EDGE, psutil.virtual_memory().available
    if needed > free:
        raise InputError(
            f"The effects of {count:,} edges on {len(pairs.firsts)} pairs must fit into memory; they take "
            f"{needed / 1e9:.1f} GB, but only {free / 1e9:.1f} GB are free. Use fewer examples."
        )


def _stack(
    options: CircuitOptions, opened: setup.Opened, encoding: "Encoding", *, gradients: bool = False
) -> "capture.stacks.Stack":
    """Return the checkpoint's layers as a stack, checked to reproduce the logits of an input."""
    place = place_of(opened.checkpoint, encoding) if names_words(options.pairs_file) else None
    return capture.edges.checked_stack(opened.checkpoint, encoding, place=place, gradients=gradients)


def measured(options: CircuitOptions, opened: setup.Opened, pairs: PairSet, wanted: ExampleUnit) -> CircuitPartial:
    """Measure attribution, exact edge effects or circuit faithfulness on the input pairs of one unit of work."""
    import torch  # 1.3 s of start-up

    numbers = np.array(wanted.positions, dtype=int)
    every = list(capture.components.Graph(pairs.layers, pairs.heads).edges)
    inputs = run_inputs(options, opened, pairs, wanted.positions)
    encoding = inputs[0][1].firsts[0]
    whole = _stack(options, opened, encoding)
    sloping = _stack(options, opened, encoding, gradients=True) if wanted.step == "attribution" else whole
    found: np.ndarray | None = None
    has_words = names_words(options.pairs_file)
    for places, some in inputs:
        stack, slopes = (
            replace(one, place=place_of(opened.checkpoint, some.firsts[0])) if has_words else one
            for one in (whole, sloping)
        )
        run, difference = capture.edges.run_pairs(stack, some), differences(pairs, numbers[places])
        if wanted.step == "attribution":
            part = capture.edges.edge_attributions(run, slopes, every, difference).numpy()
        elif wanted.step == "circuits":
            masks = torch.from_numpy(masks_of(run.graph, wanted.targets, seed=options.seed))
            part = difference(capture.edges.circuit_logits(run, masks).double()).numpy()
        else:
            part = np.full((len(every), len(places)), np.nan)
            edges = [every[k] for k in wanted.targets]
            part[list(wanted.targets)] = capture.edges.edge_effects(run, edges, difference).numpy()
        found = np.full((len(part), len(numbers)), np.nan) if found is None else found
        found[:, places] = part
    return CircuitPartial(numbers=numbers, **{"kept" if wanted.step == "circuits" else wanted.step: found})  # type: ignore[arg-type]


def differences(pairs: PairSet, numbers: np.ndarray) -> "capture.edges.Difference":
    """Return a function that maps logits [..., pair, choice] to one logit difference per pair."""
    at, answer, rival = np.arange(len(numbers)), pairs.answer[numbers], pairs.rival[numbers]

    def difference(logits: "Tensor") -> "Tensor":
        own = logits[..., at, answer]
        return own if (rival < 0).any() else own - logits[..., at, rival]

    return difference
