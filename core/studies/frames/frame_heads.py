"""Which heads carry frame-semantic relations? (Kovaleva et al. 2019, section 4.2, Fig 3.)

For each head the mean over sentences of the largest weight between the pieces of a frame element and of its target;
then whether that is more than the head's habits: four permutation nulls (the place, and which word looks), an interval,
and a correction over heads.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from ... import config, studies
from ...errors import InputError
from ...frames.filters import NO_FILTER, Filter, Selection, select
from ...frames.papers import read_list
from ...frames.records import FrameReading
from ...frames.rows import parse_rows, read_rows
from ...scoring import link_tests
from ...scoring.few_inputs import FEWEST
from ...scoring.links import pairs_of
from ...scoring.registry import link_score
from ...store.rows import Row
from ...store.runs import Provenance
from ..contract import Done, Flag, Study, Unit
from ..head_facts import SURE, Fact, HeadScores, each, number
from ..headline import Headline, percent
from ..options import Checkpoint, Seed
from ..records import Result
from .frame_partials import HABITS, Draws, Scored, Scores, contrasts_of, unpacked
from .records import NAMED_LINES, FrameHead, FrameSentence, FrameSummary, SkippedLine

BUNDLED = config.SAMPLES / "frames" / "sentences.jsonl"
MOST_SKIPPED = 50  # lines that a summary names
SENTENCES_A_UNIT = 400  # so that most lengths have many sentences to exchange links with


@pydantic.dataclasses.dataclass(frozen=True)
class FrameHeadsOptions:
    """Which sentences, how they are scored, and the paper's selection (`core.frames.filters.Filter`; None: off).

    rows: sentences as JSON lines instead of a file.
    """

    checkpoint: Checkpoint = config.ENCODER
    sentences: Annotated[str | None, Flag("JSONL of ours, or the papers' JSON lists; default: the bundled 137")] = None
    rows: str | None = None
    direction: Annotated[str, Flag("element_to_target, target_to_element or later_to_earlier")] = "element_to_target"
    pairing: Annotated[str, Flag("product of word pieces, or the paper's zip")] = "product"
    average: Annotated[str, Flag("over sentences, or over links as the replication does")] = "sentences"
    without_first: Annotated[bool, Flag("leave out the first position", name="--without-first/--with-first")] = False
    filter: Annotated[bool, Flag("the paper's selection", name="--filter/--no-filter")] = True
    longest_sentence: Annotated[int | None, Flag("most tokens of a sentence (paper: 12)")] = 12
    longest_element: Annotated[int | None, Flag("most tokens of an element (paper: 3)")] = 3
    nearest: Annotated[int | None, Flag("least distance of target and element (paper's code: 3)")] = 3
    distance: Annotated[str, Flag("strings (the paper's code) or places")] = "strings"
    one_span: bool = True
    one_word: bool = True
    core: Annotated[str, Flag("core_sets (the paper's code), core_type, or any")] = "core_sets"
    draws: Annotated[int | None, Flag("of each permutation null; default: enough for the heads")] = None
    seed: Seed = 0
    dtype: str = "float32"


@dataclass(frozen=True)
class Inputs:
    """Some of the sentences that pass, by their places."""

    inputs: tuple[int, ...]


class FrameHeads(Study[FrameHeadsOptions, Scores]):
    """Score every head on frame-semantic links and say which survive four permutation nulls (section 4.2, Fig 3)."""

    name, options, partial, arguments = "frame-heads", FrameHeadsOptions, Scores, Inputs
    kinds = (FrameSummary, FrameHead, FrameSentence)
    short_in = ("table", "csv", "latex")
    head_scores = (
        link_score("frames", "frame score", "mean over sentences of the largest weight between the pieces of a frame "
                   "element and of its target"),
    )  # fmt: skip
    called = "Frame heads of {checkpoint}"
    section = "relations and frames"
    said_at = 5
    counts = "words"

    def units(self, options: FrameHeadsOptions) -> list[Unit]:
        """Slices of the sentences that pass, similar lengths together."""
        _check(options)
        links = chosen(options)[0].kept
        order = sorted(range(len(links)), key=lambda k: (len(links[k].text.split()), k))
        slices = [tuple(order[k : k + SENTENCES_A_UNIT]) for k in range(0, len(order), SENTENCES_A_UNIT)]
        return [
            Unit(f"sentences-{number}", Inputs(part), size=sum(len(links[k].text.split()) for k in part))
            for number, part in enumerate(slices)
        ]

    def run(self, options: FrameHeadsOptions, unit: Unit) -> Done[Scores]:
        """Scores of these sentences, and the sums of both nulls."""
        checkpoint = studies.worker_cache.get_checkpoint(options.checkpoint, dtype=options.dtype)
        links = chosen(options)[0].kept
        sentences = [links[k] for k in unit.arguments.inputs]
        provenance = Provenance(
            weights_hash=checkpoint.weights_hash,
            device=str(checkpoint.device),
            row_ids=tuple(sentence.id for sentence in sentences),
        )
        return Done(studies.frames.frame_scoring.score_sentences(checkpoint, sentences, options), provenance)

    def results(self, options: FrameHeadsOptions, merged: Scores) -> list[Result]:
        """All heads together, each head (best score first), each scored sentence or link."""
        if not merged.draws:
            raise InputError(
                "No link can be scored: in a decoder a query never sees a later key, so choose the direction "
                "later_to_earlier or target_to_element, or sentences with elements on the other side."
            )
        scores = np.array([scored.scores for scored in merged.sentences])
        distance, exchange, query, share = (
            np.sum([unpacked(getattr(part, name), part.draws) for part in merged.draws], axis=0)
            for name in ("distance", "exchange", "query", "share")
        )
        query_null = link_tests.Null(np.sum([part.query_observed for part in merged.draws], axis=0), query)
        share_null = link_tests.Null(np.sum([part.share_observed for part in merged.draws], axis=0), share)
        test = link_tests.verdict(scores, distance, exchange, query_null, share_null, contrasts_of(merged.draws))
        heads = _heads(test, merged.draws, options)
        best_first = sorted(heads, key=lambda head: -head.value)
        return [_summary(test, heads, merged, options), *best_first, *map(_sentence, merged.sentences)]

    def facts(self, scores: HeadScores) -> list[Fact]:
        some = scores.own[scores.own["score"].str.startswith("frames") & scores.own["q"].notna()]
        said = {True: "survives its nulls", False: "does not survive its nulls"}
        return [
            Fact("frames", f"frame score {number(row)}, {said[bool(row['q'] < SURE)]}", row["source"])
            for row in each(some)
        ]

    def headline(self, rows: Sequence[Row]) -> Headline:
        summary, heads = FrameSummary.of(rows[0]), FrameHead.among(rows)
        survivors, best = summary.survivors, heads[0]
        interval = percent(best.low, best.high, "{:.2f}", 1)
        baseline = f"{best.name} {best.value:.2f}, same distance elsewhere {best.baseline:.2f}"
        if summary.n < FEWEST:
            return Headline(
                f"{summary.n} {summary.average} are too few to test heads on, which takes {FEWEST}; the largest mean "
                f"weight has {best.name}.",
                summary.n,
                summary.average,
                interval,
                baseline,
            )
        return Headline(
            f"{len(survivors)} of {len(heads)} heads carry frame relations beyond all four nulls"
            + (f": {', '.join(survivors[:6])}." if survivors else f"; the largest mean weight has {best.name}."),
            summary.n,
            summary.average,
            interval,
            baseline,
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        names = ("name", "value", "low", "high", "n", "baseline", "exchanged", "excess", "q", "survives", "q_places",
                 "beats_places")  # fmt: skip
        summary = FrameSummary.of(rows[0])
        read = f"{summary.read} sentences read, {summary.kept} pass the filter; lines skipped: {summary.skipped}."
        tested = [
            f"{summary.n} {summary.average} scored; survive all four nulls: "
            f"{', '.join(summary.survivors) or 'no head'}.",
            "Beat the two place nulls alone (any word may look there): "
            f"{', '.join(summary.beat_places or ()) or 'no head'}.",
        ]
        few = [f"{summary.n} {summary.average} scored: too few to test heads on, which takes {FEWEST}."]
        table = [head.columns(*names) for head in FrameHead.among(rows)]
        return [table, read, *(few if summary.n < FEWEST else tested)]

    def warnings(self, rows: Sequence[Row]) -> list[str]:
        skipped = FrameSummary.of(rows[0]).skipped_lines[:NAMED_LINES]
        return [f"skipped {line.where}: {line.why}" for line in map(SkippedLine.of, skipped)]


STUDY = FrameHeads()


def read(options: FrameHeadsOptions) -> FrameReading:
    """The sentences that the options name: JSON lines given as text, a file, or the bundled ones.

    A .json file is one of the papers' lists. Raises InputError.
    """
    if options.rows:
        return parse_rows(options.rows)
    file = config.inside(options.sentences or BUNDLED)
    return read_list(file) if file.suffix == ".json" else read_rows(file)


def rules_of(options: FrameHeadsOptions) -> Filter:
    """The filter that the options name; without it only the rule for core elements stays."""
    named = {name: getattr(options, name) for name in asdict(Filter())}
    return Filter(**named) if options.filter else Filter(**(asdict(NO_FILTER) | {"core": options.core}))


def chosen(options: FrameHeadsOptions) -> tuple[Selection, FrameReading]:
    """The sentences that pass the filter. Raises InputError when none does."""
    reading = read(options)
    selection = select(reading.sentences, rules_of(options))
    if not selection.kept:
        reasons = ", ".join(f"{number} {reason}" for reason, number in selection.dropped.items())
        raise InputError(
            f"At least one sentence must pass the filter; of {len(reading.sentences)} none does ({reasons}): relax it."
        )
    return selection, reading


def _check(options: FrameHeadsOptions) -> None:
    if options.average not in ("sentences", "links"):
        raise InputError(f'The average is over "sentences" or "links"; seen {options.average!r}: choose one.')
    if options.draws is not None and options.draws < 1:
        raise InputError(f"A null needs at least one draw; seen {options.draws}: leave it empty for enough.")
    pairs_of((), direction=options.direction, pairing=options.pairing)


def _sentence(scored: Scored) -> FrameSentence:
    values = {field.name: getattr(scored, field.name) for field in fields(scored)}
    return FrameSentence(**values | {"scores": scored.scores.tolist()})


def _heads(test: link_tests.LinkTest, parts: Sequence[Draws], options: FrameHeadsOptions) -> list[FrameHead]:
    width = parts[0].heads
    line = float(np.quantile(test.score, 0.99))
    contrasted = ~np.isnan(test.p_contrast)  # not in earlier partials of an encoder
    habit = {name: np.sum([part.habits[name] for part in parts], axis=0) / test.n for name in HABITS}
    return [
        FrameHead(
            statistic="frames", feature=options.direction, layer=k // width, head=k % width,
            value=float(test.score[k]), low=float(test.low[k]),
            high=float(test.high[k]), n=test.n, baseline=float(test.distance[k]), exchanged=float(test.exchange[k]),
            p_distance=float(test.p_distance[k]), p_exchange=float(test.p_exchange[k]), p_query=float(test.p_query[k]),
            p_share=float(test.p_share[k]),
            p=float(max(test.p_distance[k], test.p_exchange[k], test.p_query[k], test.p_share[k])),
            excess=float(test.excess[k]), contrast=float(test.contrast[k]) if contrasted[k] else None,
            p_contrast=float(test.p_contrast[k]) if contrasted[k] else None, q=float(test.q[k]),
            survives=bool(test.survives[k]), q_places=float(test.q_places[k]), beats_places=bool(test.beats_places[k]),
            above_99=bool(test.score[k] >= line), to_previous=float(habit["previous"][k]),
            to_next=float(habit["next"][k]), to_first=float(habit["first"][k]),
        )
        for k in range(len(test.score))
    ]  # fmt: skip


def _summary(
    test: link_tests.LinkTest, heads: Sequence[FrameHead], scores: Scores, options: FrameHeadsOptions
) -> FrameSummary:
    selection, reading = chosen(options)
    parts, sentences = scores.draws, scores.sentences
    return FrameSummary(
        checkpoint=options.checkpoint, direction=options.direction, pairing=options.pairing, n=test.n,
        average=options.average, layers=parts[0].layers, heads=parts[0].heads, causal=parts[0].causal,
        links=sum(scored.links for scored in sentences), links_before=sum(scored.before for scored in sentences),
        survivors=[head.name for head in heads if head.survives],
        beat_places=[head.name for head in heads if head.beats_places],
        line_99=float(np.quantile(test.score, 0.99)), above_99=sum(bool(head.above_99) for head in heads),
        draws=parts[0].draws, movable=sum(part.movable for part in parts),
        exchangeable=sum(part.exchangeable for part in parts), comparable=sum(part.comparable for part in parts),
        mean=float(test.score.mean()),
        fixed={name: sum(part.fixed[name] for part in parts) / test.n for name in parts[0].fixed},
        read=len(reading.sentences), kept=len(selection.kept), dropped=selection.dropped,
        skipped=len(reading.skipped),
        skipped_lines=[{"where": line.where, "why": line.why} for line in reading.skipped[:MOST_SKIPPED]],
    )  # fmt: skip
