"""Counterparts: which head of one checkpoint corresponds to which head of another, on common inputs.

Kinds of rows: "counterpart", the one-to-one match of a head, its similarity, the margin to the runner-up, whether both
halves of the inputs agree, and p compared with random weights of equal entropy, corrected over heads; "match", the
summary; with several other checkpoints, "recurrence" and "recurring", the number of checkpoints that have the head.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from ... import scoring, studies
from ...attention import Head
from ...errors import InputError
from ...interval import finite
from ...store.rows import Row
from ...tasks.glue import task_of
from ..attention.inputs import PASTED, AttendingOptions, SourceText, sources
from ..contract import ChunkUnit, Done, Flag, Study, Unit, provenance
from ..headline import Headline
from ..merging import MergedBy, Summed
from ..options import Limit
from ..records import Result
from .records import Counterpart, CounterpartsSummary, Recurrence, RecurrenceSummary

INPUTS, RANDOM = "inputs", "random"
INPUTS_A_UNIT, DRAWS_A_UNIT = 100, 11
LEAST_DRAWS = 99
LEAST_RUNS = 2


@pydantic.dataclasses.dataclass(frozen=True)
class CounterpartsOptions(AttendingOptions):
    """Options for finding counterparts of heads: which checkpoints are compared, and on which inputs."""

    compare: Annotated[
        str | None,
        Flag("checkpoint in which the study searches for counterparts of the heads", argument=True, required=True),
    ] = None
    also: Annotated[
        tuple[str, ...],
        Flag(
            "further checkpoint in which the study searches for counterparts; repeat the option for several "
            "checkpoints",
            name="--also",
        ),
    ] = ()
    limit: Limit = 200
    queries: Annotated[
        int, Flag("number of map rows (queries) per input that are compared; 0 compares all rows", least=0)
    ] = 8
    draws: Annotated[
        int, Flag("number of models with random weights from which p-values are computed", least=LEAST_DRAWS)
    ] = LEAST_DRAWS
    random_inputs: Annotated[int, Flag("number of inputs on which the models with random weights run", least=2)] = 24

    @property
    def others(self) -> tuple[str, ...]:
        """Return the checkpoints in which counterparts are searched for, without duplicates."""
        return tuple(dict.fromkeys(name for name in (self.compare, *self.also) if name))


@dataclass(frozen=True)
class Compared:
    """Similarities between all heads of one checkpoint and all heads of another, summed over inputs.

    Attributes:
        keys: "tokens" or "words".
        backward: whether keys after the query are left out because one checkpoint cannot see them.
        layers, other_layers: layers with attention in each checkpoint, from 0; () for all.
    """

    sums: Summed[np.ndarray]
    inputs: Summed[np.ndarray]
    heads: int
    others: int
    keys: str
    backward: bool
    weights_hash: str
    compare_hash: str
    compare: str
    layers: tuple[int, ...] = ()
    other_layers: tuple[int, ...] = ()

    def head_of(self, number: int) -> Head:
        layer, head = divmod(number, self.heads)
        return Head(self.layers[layer] if self.layers else layer, head)

    def other_of(self, number: int) -> Head:
        layer, head = divmod(number, self.others)
        return Head(self.other_layers[layer] if self.other_layers else layer, head)


@dataclass(frozen=True)
class Drawn:
    """Head similarities between two checkpoints and, as a baseline, between the first and random copies of the other.

    Attributes:
        similarity: between all heads of both checkpoints on the inputs used here. *Shape:* (head, other head).
        largest: largest similarity of each head to any head of a draw. *Shape:* (draw, head).
    """

    similarity: np.ndarray
    largest: np.ndarray
    rows: int
    compare: str


@dataclass(frozen=True)
class CounterpartsPartial:
    """Similarities between heads of different checkpoints, from one or more units of work."""

    compared: Annotated[tuple[Compared, ...], MergedBy("compare")] = ()
    drawn: tuple[Drawn, ...] = ()


class CounterpartsStudy(Study[CounterpartsOptions, CounterpartsPartial]):
    """Find the counterpart of each head in another checkpoint, with random weights as the baseline."""

    name, options, partial, arguments = "counterparts", CounterpartsOptions, CounterpartsPartial, ChunkUnit
    question = "Which heads have a counterpart in another model?"
    kinds = (Counterpart, CounterpartsSummary, Recurrence, RecurrenceSummary)

    def title(self, options: CounterpartsOptions) -> str:
        others = options.others
        return f"Heads of {options.checkpoint} in {others[0] if len(others) == 1 else f'{len(others)} others'}"

    def checkpoints(self, options: CounterpartsOptions) -> list[str]:
        return [options.checkpoint, *options.others]

    def units(self, options: CounterpartsOptions) -> list[Unit]:
        if not options.compare:
            raise InputError(
                "A second checkpoint must be given; got none. Name the checkpoint in which to search for counterparts."
            )
        inputs = inputs_of(options)
        if len(inputs) < 2:
            raise InputError(
                "At least 2 inputs must be given, because counterparts are determined in each half of the inputs; got "
                f"{len(inputs)}. Add inputs."
            )
        pieces = [
            ChunkUnit(other, what, start, min(start + step, count))
            for other in options.others
            for what, count, step in (
                (INPUTS, len(inputs), INPUTS_A_UNIT),
                (RANDOM, options.draws, DRAWS_A_UNIT),
            )
            for start in range(0, count, step)
        ]
        return [
            Unit(f"{piece.inputs}|{piece.start}|{piece.checkpoint}", piece, size=piece.stop - piece.start)
            for piece in pieces
        ]

    def run(self, options: CounterpartsOptions, unit: Unit) -> Done[CounterpartsPartial]:
        piece: ChunkUnit = unit.arguments
        first, other = (
            studies.worker_cache.get_checkpoint(name, dtype=options.dtype)
            for name in (options.checkpoint, piece.checkpoint)
        )
        inputs = inputs_of(options)
        shared = studies.comparison.head_similarity.common_inputs(
            first, other, inputs, queries=options.queries or None, seed=options.seed
        )
        if piece.inputs == RANDOM:
            sample = shared.part(range(min(options.random_inputs, len(shared.numbers))))
            seeds = [options.seed * options.draws + draw for draw in range(piece.start, piece.stop)]
            similarity, largest = studies.comparison.head_similarity.beside_random(first, other, sample, seeds)
            partial = CounterpartsPartial(drawn=(Drawn(similarity, largest, len(sample.numbers), piece.checkpoint),))
        else:
            places = [k for k, number in enumerate(shared.numbers) if piece.start <= number < piece.stop]
            compared: tuple[Compared, ...] = ()
            if places:
                own, sets = shared.part(places), (first.sets[0], other.sets[0])
                sums = studies.comparison.head_similarity.compared(first, other, own)
                compared = (
                    Compared(
                        sums.sums, sums.inputs, sets[0].heads, sets[1].heads, own.keys, own.backward,
                        first.weights_hash, other.weights_hash, piece.checkpoint,
                        tuple(sets[0].numbers), tuple(sets[1].numbers),
                    ),
                )  # fmt: skip
            partial = CounterpartsPartial(compared=compared)
        chosen = inputs[piece.start : piece.stop] if piece.inputs == INPUTS else ()
        both = f"{first.weights_hash} and {other.weights_hash}"
        return Done(partial, replace(provenance(first, [source.row_id for source in chosen]), weights_hash=both))

    def results(self, options: CounterpartsOptions, merged: CounterpartsPartial) -> Sequence[Result]:
        by_name = {whole.compare: whole for whole in merged.compared}
        rows: list[Result] = []
        counterparts_of_all: list[Counterpart] = []
        for name in (name for name in options.others if name in by_name):
            of_pair = CounterpartsPartial(
                (by_name[name],), tuple(piece for piece in merged.drawn if piece.compare == name)
            )
            heads = counterparts(options, of_pair)
            rows += [*heads, summary(options, of_pair, heads)]
            counterparts_of_all += heads
        return [*rows, *recurrences(counterparts_of_all)]

    def headline(self, rows: Sequence[Row]) -> Headline | None:
        for several in RecurrenceSummary.among(rows):
            return Headline(
                (
                    f"{several.everywhere} of {several.heads} heads of {several.checkpoint} have a counterpart "
                    f"in all {several.runs} other checkpoints. The number of heads without any counterpart is "
                    f"{several.nowhere}. On average, {100 * several.share:.0f} % of the heads (95 % CI "
                    f"{100 * several.low:.0f} to {100 * several.high:.0f}) have a counterpart in another checkpoint."
                ),
                several.n,
                "inputs",
                "",
                "The baseline consists of models with random weights. These models have the same architecture and the "
                "same attention entropy as the compared checkpoints.",
            )
        for record in CounterpartsSummary.among(rows):
            matched = (
                f"{record.matched} of {record.heads} heads of {record.checkpoint} have a counterpart in "
                f"{record.compare}"
            )
            if record.identical:
                return Headline(
                    f"{matched}. Both checkpoints have the same weights, so every head is most similar to itself.",
                    record.n,
                    "inputs",
                )
            count = "All" if record.same_place == record.matched else str(record.same_place)
            have = "has" if count == "1" else "have"
            where = f" {count} of these pairs {have} the same layer and head number." if record.same_place else ""
            words = f", on {record.keys}" if record.keys != "tokens" else ""
            cells = ", over cells that both see" if record.visible != "all" else ""
            return Headline(
                f"{matched}{words}{cells}.{where}",
                record.n,
                "inputs",
                "A counterpart is a significant match that is the same in both halves of the inputs, and clearly more "
                "similar than every other head. A head with several equally good matches has no counterpart.",
                f"The baseline consists of {record.draws} models with random weights. Their attention has the same "
                "entropy as the attention of the compared checkpoint.",
            )
        return None

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        names = ("match", "similarity", "margin", "p", "agrees", "matched")
        return [[{"head": head.name} | head.columns(*names) for head in Counterpart.among(rows)]]


STUDY = CounterpartsStudy()


def inputs_of(options: CounterpartsOptions) -> list[SourceText]:
    """Return all inputs selected by the options, numbered consecutively. Raises InputError if there are none."""
    tasks = [PASTED] if options.texts else list(dict.fromkeys(task_of(task).key for task in options.tasks))
    sources_of_tasks = [source for task in tasks for source in sources(options, task)]
    return [replace(source, number=number) for number, source in enumerate(sources_of_tasks)]


def counterparts(options: CounterpartsOptions, merged: CounterpartsPartial) -> list[Counterpart]:
    """Match each head of the first checkpoint with a head of the other checkpoint, and return one record per head."""
    whole = merged.compared[0]
    sums = scoring.counterparts.SimilaritySums(whole.sums, whole.inputs)
    similarity, widths, matches = sums.similarity(), sums.half_widths(), scoring.counterparts.matching(sums)
    to_match = np.where(matches.match >= 0, similarity[np.arange(len(similarity)), matches.match], np.nan)
    p = np.full(len(to_match), np.nan)
    if merged.drawn:  # on the inputs that were also measured with random weights
        same = merged.drawn[0].similarity
        observed = np.where(matches.match >= 0, same[np.arange(len(same)), matches.match], np.nan)
        p = scoring.counterparts.beyond_chance(observed, np.concatenate([piece.largest for piece in merged.drawn]))
    found = scoring.counterparts.counterparts(to_match, p, matches)
    records = []
    for number, (match, best) in enumerate(zip(matches.match.tolist(), matches.best.tolist(), strict=True)):
        value = float(similarity[number, match]) if match >= 0 else None
        width = float(widths[number, match]) if match >= 0 else float("nan")
        ends = (None, None) if value is None or width != width else (max(0.0, value - width), min(1.0, value + width))
        mine = None if match < 0 else finite(p[number])
        mine_at, match_at, best_at = whole.head_of(number), whole.other_of(match), whole.other_of(best)
        records.append(
            Counterpart(
                checkpoint=options.checkpoint, compare=whole.compare, layer=mine_at.layer, head=mine_at.head,
                match_layer=match_at.layer if match >= 0 else None,
                match_head=match_at.head if match >= 0 else None,
                similarity=value, low=ends[0], high=ends[1],
                margin=finite(matches.margin[number]), margin_low=finite(matches.low[number]),
                margin_high=finite(matches.high[number]), p=mine, agrees=bool(matches.agrees[number]),
                matched=bool(found[number]),
                best_layer=best_at.layer, best_head=best_at.head, best=float(similarity[number, best]),
                n=sums.n,
            )
        )  # fmt: skip
    return records


def summary(
    options: CounterpartsOptions, merged: CounterpartsPartial, heads: Sequence[Counterpart]
) -> CounterpartsSummary:
    """Summarise the comparison of two checkpoints, including how many heads have a counterpart."""
    whole, matched = merged.compared[0], [head for head in heads if head.matched]
    places = [(head.layer, head.head) == (head.match_layer, head.match_head) for head in matched]
    return CounterpartsSummary(
        checkpoint=options.checkpoint, compare=whole.compare, keys=whole.keys,
        visible="up to the query" if whole.backward else "all", identical=whole.weights_hash == whole.compare_hash,
        matched=len(matched), same_place=sum(places), heads=len(heads), others=whole.sums.shape[2],
        draws=sum(len(piece.largest) for piece in merged.drawn),
        rows=max((piece.rows for piece in merged.drawn), default=0), n=int(whole.inputs.sum()),
        weights_hash=whole.weights_hash, compare_hash=whole.compare_hash,
    )  # fmt: skip


# ---------------------------------------------------------------- heads that recur over runs


def recurrences(heads: Sequence[Counterpart]) -> list[Recurrence | RecurrenceSummary]:
    """For each head, count the other checkpoints that have a counterpart for this head. Then summarise the counts."""
    runs = list(dict.fromkeys(head.compare for head in heads))
    if len(runs) < LEAST_RUNS:
        return []
    by_run = [[head for head in heads if head.compare == run] for run in runs]
    recurring = scoring.circuits.recurring(np.array([[head.matched for head in run] for run in by_run]))
    records: list[Recurrence | RecurrenceSummary] = []
    for number, head in enumerate(by_run[0]):
        head_runs = [run[number] for run in by_run]
        alike = [other.similarity for other in head_runs if other.similarity is not None]
        count = int(recurring.found[number])
        records.append(
            Recurrence(
                checkpoint=head.checkpoint, layer=head.layer, head=head.head, runs=len(runs), found=count,
                same_place=sum(other.matched and other.match == head.name for other in head_runs),
                share=count / len(runs), low=float(recurring.low[number]), high=float(recurring.high[number]),
                similarity=float(np.mean(alike)) if alike else None, n=head.n,
            )
        )  # fmt: skip
    first = by_run[0][0]
    whole = RecurrenceSummary(
        checkpoint=first.checkpoint, runs=len(runs), heads=len(by_run[0]), everywhere=recurring.everywhere,
        nowhere=recurring.nowhere, share=recurring.share, low=recurring.share_low, high=recurring.share_high, n=first.n,
    )  # fmt: skip
    return [*records, whole]
