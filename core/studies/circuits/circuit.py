"""Which component feeds which, and how sure that is: edges decided by exact effects, circuits judged on other pairs.

A pair is a row A and an input B that stands against it (another row of as many tokens with another answer, or what
`perturb` makes of A, or a line of a file). An edge goes from a component's contribution to the query, key or value of
a head, to a feed-forward block or to the output; its effect is how far the logit difference of A falls when that one
input is computed with the contribution from B, all else as in A, and everything after it runs on. Integrated edge
attribution proposes; exact effects race against a margin, a share of the mean difference between A and B. All verdicts
of a run hold together with 95 %. On pairs that decided nothing: how much of the difference circuits of growing size
keep (faithfulness), beside random circuits and the model without one layer's edges. Tests on half-samples say which
edges come again, and a bound says how many of the stable ones have no effect. An edge that matters for pairs of the
same answer too carries something else than the answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import psutil
import pydantic.dataclasses

from ... import capture
from ...errors import InputError
from ...store.rows import Row
from ...tasks.glue import task_of
from ..ablation import disabling
from ..ablation.disabling import RowOptions
from ..contract import Done, Flag, Need, Study, Unit
from ..headline import Headline
from ..options import Limit
from ..provenance import provenance
from ..records import Result
from . import circuit_pairs, circuit_race, circuit_table, foils
from .circuit_race import CircuitPartial, CircuitState, Wanted
from .records import CircuitEdge, CircuitPair, CircuitSummary, EdgeMean, Faithfulness

if TYPE_CHECKING:
    from torch import Tensor

    from ...models.encoding import Encoding

SHOWN_EDGES = 30  # of a terminal's table
PAIRS_A_UNIT = 8
FILE_HELP = "pairs of your own: two sentences a line, a tab between; for a language model then a word and its foil"
BYTES_AN_EDGE = 8 * 6  # of one edge and pair: what is held of it at once


@pydantic.dataclasses.dataclass(frozen=True)
class CircuitOptions(RowOptions):
    """Which checkpoint, on which pairs, held to what."""

    limit: Limit = 400
    kind: Annotated[str, Flag(f"how B is found: {', '.join(circuit_pairs.KINDS)}")] = circuit_pairs.OTHER_ROW
    pairs_file: Annotated[str | None, Flag(FILE_HELP)] = None
    answers: Annotated[str, Flag("pairs whose A and B have different answers, the same, or any")] = "different"
    pairs: Annotated[int, Flag("that decide about edges", least=1)] = 100
    judging: Annotated[int, Flag("other pairs, on which circuits are judged", least=1)] = 50
    control: Annotated[int, Flag("pairs of the same answer, as a control", least=0)] = 30
    margin: Annotated[float, Flag("share of the mean difference between A and B that an edge must carry")] = 0.05
    clip: Annotated[float, Flag("times the margin that one pair counts at most")] = 2.0
    alpha: Annotated[float, Flag("chance of any wrong verdict over all edges and looks")] = 0.05
    first: Annotated[int, Flag("pairs at the first look", least=4)] = 24
    strongest: Annotated[int, Flag("edges that race by attribution; 0: all up to 2,500, else 1,000", least=0)] = 0
    sample: Annotated[int, Flag("random other edges that race", least=0)] = 200


class CircuitStudy(Study[CircuitOptions, CircuitPartial]):
    """Find the edges between components that carry the difference between two inputs, with error control."""

    name, options, partial, arguments = "circuit", CircuitOptions, CircuitPartial, Wanted
    kinds = (CircuitSummary, CircuitEdge, EdgeMean, Faithfulness, CircuitPair)
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})
    counts = "pairs"

    def title(self, options: CircuitOptions) -> str:
        """Name the checkpoint and the pairs."""
        return f"Circuit of {options.checkpoint}, {options.pairs_file or options.kind}"

    def needs_of(self, options: Mapping[str, Any]) -> frozenset[Need]:
        """A classifier and labels, unless the pairs name words that a language model fills in."""
        return frozenset() if foils.names_words(options.get("pairs_file")) else self.needs

    def units(self, options: CircuitOptions) -> list[Unit]:
        """First which pairs there are."""
        if not 0 < options.margin < 1:
            raise InputError(f"A margin is a share of the difference, above 0 and below 1; seen {options.margin:g}.")
        if not options.clip > 1:
            raise InputError(f"A pair counts up to a multiple of the margin above 1; seen {options.clip:g}: raise it.")
        if not 0 < options.alpha < 1:
            raise InputError(f"The chance of a wrong verdict lies between 0 and 1; seen {options.alpha:g}: change it.")
        circuit_pairs.check(options)
        circuit_pairs.texts_of(options)
        return [Unit("pairs", Wanted("pairs"), 1)]

    def more(self, options: CircuitOptions, partials: Sequence[CircuitPartial]) -> list[Unit]:
        """What the study wants next; verdicts depend on effects alone, so that any number of workers agrees."""
        state = CircuitState(options, self.merge(options, partials))
        wanted, done = state.next(), sum(part.numbers is not None for part in partials)
        order = sorted(wanted.numbers, key=lambda k: (int(state.pairs.lengths[k]), k))
        slices = [tuple(order[k : k + PAIRS_A_UNIT]) for k in range(0, len(order), PAIRS_A_UNIT)]
        return [Unit(f"{wanted.what}-{done + k}", Wanted(wanted.what, some, wanted.edges), len(some))
                for k, some in enumerate(slices)] if wanted.what != "nothing" else []  # fmt: skip

    def run(self, options: CircuitOptions, unit: Unit) -> Done[CircuitPartial]:
        """One unit: which pairs there are, or what was wanted of some of them."""
        opened, wanted = foils.opened(options), unit.arguments
        pairs = _pairs(options, opened.checkpoint.weights_hash)
        numbers = range(len(pairs.firsts)) if wanted.what == "pairs" else wanted.numbers
        if wanted.what == "pairs":
            circuit_pairs.division_of(options, pairs)
            _fits_in_memory(pairs)
            partial = CircuitPartial(pairs)
            first = foils.encoded(opened.checkpoint, circuit_pairs.texts_of(options)[int(pairs.firsts[0])][0])
            _stack(options, opened, first)
        else:
            partial = measured(options, opened, pairs, wanted)
        return Done(partial, provenance(opened.checkpoint, _ids(options, pairs, numbers)))

    def merge(self, options: CircuitOptions, partials: Sequence[CircuitPartial]) -> CircuitPartial:
        """All that was measured."""
        return circuit_race.merged(partials)

    def results(self, options: CircuitOptions, merged: CircuitPartial) -> list[Result]:
        """The circuit in one record, its edges, its curve, and the pairs; nothing while it is under way."""
        if merged.kept is None:
            return []
        return circuit_table.results(CircuitState(options, merged), task_of(options.task).key)

    def headline(self, rows: Sequence[Row]) -> Headline:
        circuit, edges = CircuitSummary.among(rows)[0], CircuitEdge.among(rows)
        most = min(edges, key=lambda edge: edge.rank)
        matter = "matters" if circuit.matter == 1 else "matter"
        return Headline(
            f"Of {circuit.raced} edges {circuit.matter} {matter} beyond the margin "
            f"and {circuit.open} {'is' if circuit.open == 1 else 'are'} open; "
            f"{circuit_table.said_of_stability(circuit)} The strongest is {most.name}.",
            circuit.n,
            "pairs",
            f"all verdicts hold together with {1 - circuit.alpha:.0%}",
            f"margin {circuit.margin_share:.0%} of the difference between A and B",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        edges = sorted(CircuitEdge.among(rows), key=lambda edge: edge.rank)[:SHOWN_EDGES]
        shown = {edge.name for edge in edges}
        of_edge = ("name", "effect", "low", "high", "n", "verdict", "selection", "attribution")
        of_mean = ("name", "pairs", "effect", "low", "high", "n")
        (summary,) = CircuitSummary.among(rows)
        return [
            [edge.columns(*of_edge) for edge in edges],
            f"effect: {edges[0].estimator}",
            [mean.columns(*of_mean) for mean in EdgeMean.among(rows) if mean.name in shown],
            "effect: mean, not clipped",
            f"{summary.matter} of {summary.raced} edges matter beyond {summary.margin:.3f} logits, {summary.open} are "
            f"open; {circuit_table.said_of_stability(summary)}",
        ]


STUDY = CircuitStudy()


@lru_cache(maxsize=2)
def _pairs(options: CircuitOptions, weights_hash: str) -> circuit_pairs.PairSet:
    """The pairs of the options, made once in a worker."""
    return circuit_pairs.made_pairs(options, foils.opened(options))


def _ids(options: CircuitOptions, pairs: circuit_pairs.PairSet, numbers: Sequence[int]) -> list[str]:
    if options.pairs_file is not None:
        return [f"line {int(pairs.firsts[k]) + 1}" for k in numbers]
    rows = disabling.rows_of(options)
    return [rows[int(pairs.firsts[k])].id for k in numbers]


def _fits_in_memory(pairs: circuit_pairs.PairSet) -> None:
    """Raises InputError, before anything is measured, where effects of all edges would not fit."""
    graph = capture.edge_names.Graph(pairs.layers, pairs.heads)
    count = sum(graph.before(receiver) for receiver in range(graph.receivers))
    needed, free = count * len(pairs.firsts) * BYTES_AN_EDGE, psutil.virtual_memory().available
    if needed > free:
        raise InputError(
            f"{count:,} edges on {len(pairs.firsts)} pairs take {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} "
            "GB are free: ask for fewer rows."
        )


def _stack(
    options: CircuitOptions, opened: disabling.Opened, encoding: "Encoding", *, gradients: bool = False
) -> "capture.stacks.Stack":
    """The checkpoint's layers, which must give its own logits of an input where it is read."""
    place = foils.place_of(opened.checkpoint, encoding) if foils.fills_words(options) else None
    return capture.edges.checked_stack(opened.checkpoint, encoding, place=place, gradients=gradients)


def _reading(
    options: CircuitOptions, opened: disabling.Opened, stack: "capture.stacks.Stack", encoding: "Encoding"
) -> "capture.stacks.Stack":
    """The stack, read where this input's word is filled in."""
    return replace(stack, place=foils.place_of(opened.checkpoint, encoding)) if foils.fills_words(options) else stack


def measured(
    options: CircuitOptions, opened: disabling.Opened, pairs: circuit_pairs.PairSet, wanted: Wanted
) -> CircuitPartial:
    """Attribution, exact effects, or what circuits keep, of some pairs.

    Returns:
        What `wanted.what` says, of the pairs `wanted.numbers`; the rest None.
    """
    numbers = np.array(wanted.numbers, dtype=int)
    every = list(capture.edge_names.Graph(pairs.layers, pairs.heads).edges)
    inputs = circuit_pairs.run_inputs(options, opened, pairs, wanted.numbers)
    encoding = inputs[0][1].firsts[0]
    whole = _stack(options, opened, encoding)
    sloping = _stack(options, opened, encoding, gradients=True) if wanted.what == "attribution" else whole
    found: np.ndarray | None = None
    for places, some in inputs:
        stack, slopes = (_reading(options, opened, one, some.firsts[0]) for one in (whole, sloping))
        run, difference = capture.edges.run_pairs(stack, some), differences(pairs, numbers[places])
        if wanted.what == "attribution":
            part = capture.edge_attribution.edge_attributions(run, slopes, every, difference).numpy()
        elif wanted.what == "circuits":
            part = circuit_values(options, run, wanted, difference)
        else:
            part = np.full((len(every), len(places)), np.nan)
            edges = [every[k] for k in wanted.edges]
            part[list(wanted.edges)] = capture.edges.edge_effects(run, edges, difference).numpy()
        found = np.full((len(part), len(numbers)), np.nan) if found is None else found
        found[:, places] = part
    if wanted.what == "circuits":
        return CircuitPartial(numbers=numbers, kept=found)
    return CircuitPartial(numbers=numbers, **{wanted.what: found})  # type: ignore[arg-type]


def differences(pairs: circuit_pairs.PairSet, numbers: np.ndarray) -> "capture.edges.Difference":
    """The logit difference that is traced in some pairs, as a function.

    Args:
        numbers: which of them the logits are of. *Shape:* (pair,), int.

    Returns:
        From logits (..., pair, choice) to m (..., pair): the answer's less the rival's; of a score, the score.
    """
    at, answer, rival = np.arange(len(numbers)), pairs.answer[numbers], pairs.rival[numbers]

    def difference(logits: "Tensor") -> "Tensor":
        own = logits[..., at, answer]
        return own if (rival < 0).any() else own - logits[..., at, rival]

    return difference


def circuit_values(options: CircuitOptions, run: object, wanted: Wanted, difference: object) -> np.ndarray:
    """m of every circuit of the curve.

    Args:
        run: the pairs, run once, as `capture.edges.run_pairs` gives them.
        difference: as `differences` gives it.

    Returns:
        In the order of `circuit_table.circuits_of`. *Shape:* (circuit, pair), float64.
    """
    import torch  # 1.3 s of start-up

    graph = run.graph  # type: ignore[attr-defined]
    masks = circuit_table.masks_of(graph, wanted.edges, seed=options.seed)
    logits = capture.circuit_runs.circuit_logits(run, torch.from_numpy(masks))  # type: ignore[arg-type]
    return difference(logits.double()).numpy()  # type: ignore[operator]
