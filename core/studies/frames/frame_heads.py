"""Heads that attend along frame-semantic relations (Kovaleva et al. 2019, section 4.2, Fig 3).

The score is the mean over sentences of the largest weight between the tokens of a frame element and of its target. Four
permutation baselines (position, and which word attends) test whether it exceeds what the head always does.
"""

import base64
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import capture, config, models, scoring, studies
from ...errors import InputError, check_choice
from ...frames.papers import read_list
from ...frames.records import (
    CORE_RULES,
    AnnotatedSentence,
    CoreRule,
    FrameReading,
    Span,
    covered,
    distance,
    links_of,
    word_spans,
    words,
)
from ...frames.rows import BUNDLED_SENTENCES, parse_sentences, read_sentences
from ...map_sums import MapSums, Needs, Reducer, keys_as_values
from ...scoring.few_inputs import FEWEST
from ...scoring.links import (
    ALONE,
    Links,
    Looked,
    PairScores,
    Placement,
    Positions,
    QueryResiduals,
    exchange_groups,
    fixed_scores,
    habits,
    links_in_pieces,
    pairs_of,
    shifted,
    without_key,
)
from ...scoring.registry import link_score
from ...store.rows import Row
from ..contract import Done, ExampleUnit, Flag, Study, Unit, provenance
from ..headline import SIGNIFICANT, Fact, Headline, HeadScores, each, number, percent
from ..options import Checkpoint, LinkDirection, LinkPairing, Seed
from ..records import Result
from .records import NAMED_LINES, FrameHead, FrameSentence, FrameSummary, SkippedLine

if TYPE_CHECKING:
    from ...scoring.link_contrasts import LinkEnds, MeanContrasts


# ---------------------------------------------------------------- which sentences (section 4.2 and notebook)


@dataclass(frozen=True)
class Filter:
    """Rules for selecting annotated sentences. The defaults are those of the paper or its notebook. None: no limit.

    Attributes:
        longest_sentence: at most this many tokens of nltk.word_tokenize (section 4.2).
        longest_element: drop a sentence if an overt element has a longer span in tokens (notebook).
        nearest: smallest distance in tokens between target and element; the paper says "2 apart", the notebook drops
            distances up to 2.
        distance: "strings" compares spellings near the first occurrence of the target (notebook); "places" compares
            positions.
        one_span: the target must be one span (notebook).
        one_word: the target must be one token (notebook).
        core: "core_sets" for elements in the frame's FEcoreSets (notebook), "core_type" for FrameNet's coreType, or
            "any". A sentence without such an element is dropped.
    """

    longest_sentence: int | None = 12
    longest_element: int | None = 3
    nearest: int | None = 3
    distance: str = "strings"
    one_span: bool = True
    one_word: bool = True
    core: CoreRule = "core_sets"

    def __post_init__(self) -> None:
        check_choice("The rule for core elements", self.core, CORE_RULES)
        check_choice("The measure of distance", self.distance, ("strings", "places"))
        for name in ("longest_sentence", "longest_element", "nearest"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(
                    f"The option {name} must be at least 1, or None to turn the rule off; got {value}. Choose a "
                    "larger value."
                )


NO_FILTER = Filter(None, None, None, "places", one_span=False, one_word=False, core="any")


@dataclass(frozen=True)
class Selection:
    """The selected sentences, and how many each rule excluded. Only the first rule that a sentence fails counts."""

    kept: tuple[AnnotatedSentence, ...]
    dropped: dict[str, int]


def select(sentences: Iterable[AnnotatedSentence], rules: Filter | None = None) -> Selection:
    """Select the sentences that pass all rules, and count how many sentences each rule excluded."""
    kept, dropped = [], Counter[str]()
    for sentence in sentences:
        reason = why_dropped(sentence, rules or Filter())
        if reason is None:
            kept.append(sentence)
        else:
            dropped[reason] += 1
    return Selection(tuple(kept), dict(dropped))


def why_dropped(sentence: AnnotatedSentence, rules: Filter) -> str | None:
    """Return the name of the first selection rule that a sentence fails, or None if it passes all rules."""
    if not links_of(sentence, core=rules.core):
        return f"no core element ({rules.core})"
    if rules.one_span and len(sentence.target) != 1:
        return "target in several spans"
    if rules == NO_FILTER or not (
        rules.one_word or any(x is not None for x in (rules.longest_sentence, rules.longest_element, rules.nearest))
    ):
        return None
    tokens = word_spans(sentence.text)
    if rules.longest_sentence is not None and len(tokens) > rules.longest_sentence:
        return f"more than {rules.longest_sentence} tokens"
    lengths = (len(covered((span,), tokens)) for element in sentence.elements for span in element.spans)
    if rules.longest_element is not None and max(lengths, default=0) > rules.longest_element:
        return f"an element of more than {rules.longest_element} tokens"
    if rules.one_word and len(covered(sentence.target, tokens)) != 1:
        return "target is not one token"
    if rules.nearest is not None and _too_near(sentence, tokens, rules):
        return f"an element nearer than {rules.nearest} tokens"
    return None


def _too_near(sentence: AnnotatedSentence, tokens: list[Span], rules: Filter) -> bool:
    nearest = rules.nearest or 1
    if rules.distance == "places":
        return any(distance(element.spans, sentence.target, tokens) < nearest for element in sentence.elements)
    spelled = [sentence.text[start:end] for start, end in tokens]
    inside = {spelled[k] for element in sentence.elements for k in covered(element.spans, tokens)}
    target = [spelled[k] for k in covered(sentence.target, tokens)]
    middle = spelled.index(target[0]) if target else 0
    return not inside.isdisjoint(spelled[max(0, middle - nearest + 1) : middle + nearest])


# ---------------------------------------------------------------- frame heads


MOST_SKIPPED = 50  # lines that a summary names
HABITS = ("previous", "next", "first")
SENTENCES_A_UNIT = 400  # so that most lengths have many sentences to exchange links with


@pydantic.dataclasses.dataclass(frozen=True)
class FrameHeadsOptions:
    """Options for a test of attention between the elements of a frame and its target (the word that evokes it)."""

    checkpoint: Checkpoint = config.ENCODER
    sentences: Annotated[
        str | None,
        Flag(
            "JSONL file of sentences with frames, or JSON file of sentences by Kovaleva et al. 2019 or the GPT-2 "
            "replication (default: 137 bundled sentences)"
        ),
    ] = None
    rows: str | None = None
    direction: LinkDirection = "element_to_target"
    pairing: LinkPairing = "product"
    average: Annotated[
        str,
        Flag(
            "units over which weights are averaged: sentences (as in Kovaleva et al. 2019) or links (as in the "
            "GPT-2 replication)"
        ),
    ] = "sentences"
    without_first: Annotated[bool, Flag("ignore attention to the first token", name="--without-first/--with-first")] = (
        False
    )
    filter: Annotated[
        bool, Flag("select sentences by the rules of Kovaleva et al. 2019", name="--filter/--no-filter")
    ] = True
    longest_sentence: Annotated[
        int | None, Flag("largest number of tokens in a selected sentence (Kovaleva et al. 2019: 12)")
    ] = 12
    longest_element: Annotated[
        int | None,
        Flag(
            "largest number of tokens in a frame element; longer ones exclude their sentence (Kovaleva et al. 2019: 3)"
        ),
    ] = 3
    nearest: Annotated[
        int | None,
        Flag("smallest distance in tokens between a target and a frame element (code of Kovaleva et al. 2019: 3)"),
    ] = 3
    distance: Annotated[
        str,
        Flag(
            "how --nearest locates words: strings (by spelling, as in the code of Kovaleva et al. 2019, which can "
            "confuse repeated words) or places (by annotated token positions)"
        ),
    ] = "strings"
    one_span: bool = True
    one_word: bool = True
    core: Annotated[
        str,
        Flag(
            "which frame elements count as core elements: core_sets (those in the FEcoreSets of the frame, as in the "
            "code of Kovaleva et al. 2019), core_type (those of FrameNet's type Core), or any (all elements)"
        ),
    ] = "core_sets"
    draws: Annotated[
        int | None, Flag("number of random draws in each permutation test (default: enough for the number of heads)")
    ] = None
    seed: Seed = 0
    dtype: str = "float32"


@dataclass(frozen=True)
class Draws:
    """The sums of frame-link scores over n sentences or links, as observed and in random draws from each null model.

    Attributes:
        habits: attention of each head to the previous, next and first position. *Shape:* (head,) each.
        distance, query, share: sums in every draw, in the form of `packed`: of scores moved to other positions, and of
            the largest residual weight (or share of weight) at other queries.
        query_observed, share_observed: the observed sums. *Shape:* (head,).
        contrasts: mean contrast of the links of each sentence; NaN if none can be drawn. *Shape:* (sentence, head).
    """

    n: int
    draws: int
    layers: int
    heads: int
    causal: bool
    habits: dict[str, np.ndarray]
    movable: int
    exchangeable: int
    comparable: int
    distance: str
    exchange: str
    query_observed: np.ndarray
    query: str
    share_observed: np.ndarray
    share: str
    fixed: dict[str, float]
    contrasts: np.ndarray | None = None


@dataclass(frozen=True)
class Scores:
    """The scores of heads on frame links, as observed and in random draws from the null models."""

    sentences: tuple[FrameSentence, ...]
    draws: tuple[Draws, ...]


class FrameHeadsStudy(Study[FrameHeadsOptions, Scores]):
    """Test which heads attend to frame links more than each of four null models predicts (Kovaleva et al., Fig. 3)."""

    name, options, partial, arguments = "frame-heads", FrameHeadsOptions, Scores, ExampleUnit
    question = "Which heads attend to frame elements?"
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
        check_choice("The unit over which attention is averaged", options.average, ("sentences", "links"))
        if options.draws is not None and options.draws < 1:
            raise InputError(
                f"A permutation test needs at least one random draw; got {options.draws}. Leave the number empty "
                "to use a sufficient number."
            )
        pairs_of((), direction=options.direction, pairing=options.pairing)
        links = chosen(options)[0].kept
        order = sorted(range(len(links)), key=lambda k: (len(links[k].text.split()), k))
        slices = [tuple(order[k : k + SENTENCES_A_UNIT]) for k in range(0, len(order), SENTENCES_A_UNIT)]
        return [
            Unit(f"sentences-{number}", ExampleUnit(part), size=sum(len(links[k].text.split()) for k in part))
            for number, part in enumerate(slices)
        ]

    def run(self, options: FrameHeadsOptions, unit: Unit) -> Done[Scores]:
        checkpoint = studies.worker_cache.get_checkpoint(options.checkpoint, dtype=options.dtype)
        links = chosen(options)[0].kept
        sentences = [links[k] for k in unit.arguments.positions]
        facts = provenance(checkpoint, [sentence.id for sentence in sentences])
        return Done(score_sentences(checkpoint, sentences, options), facts)

    def results(self, options: FrameHeadsOptions, merged: Scores) -> list[Result]:
        if not merged.draws:
            raise InputError(
                "At least one sentence must have a frame link that heads can attend to; got none. In a decoder, "
                "queries cannot attend to later keys. Choose the direction later_to_earlier or target_to_element, or "
                "other sentences."
            )
        # Heads in layers with attention
        known = np.flatnonzero(~np.isnan([scored.scores for scored in merged.sentences]).any(0))
        test = verdict_of(merged, known)
        width = merged.draws[0].heads
        line = float(np.quantile(test.score, 0.99))
        contrasted = ~np.isnan(test.p_contrast)  # not in earlier partials of an encoder
        habit = {name: np.sum([part.habits[name] for part in merged.draws], axis=0)[known] / test.n for name in HABITS}
        heads = [
            FrameHead(
                statistic="frames", feature=options.direction, layer=number // width, head=number % width,
                value=float(test.score[k]), low=float(test.low[k]),
                high=float(test.high[k]), n=test.n, baseline=float(test.distance[k]), exchanged=float(test.exchange[k]),
                p_distance=float(test.p_distance[k]), p_exchange=float(test.p_exchange[k]),
                p_query=float(test.p_query[k]), p_share=float(test.p_share[k]),
                p=float(max(test.p_distance[k], test.p_exchange[k], test.p_query[k], test.p_share[k])),
                excess=float(test.excess[k]), contrast=float(test.contrast[k]) if contrasted[k] else None,
                p_contrast=float(test.p_contrast[k]) if contrasted[k] else None, q=float(test.q[k]),
                survives=bool(test.survives[k]), q_places=float(test.q_places[k]),
                beats_places=bool(test.beats_places[k]), above_99=bool(test.score[k] >= line),
                to_previous=float(habit["previous"][k]), to_next=float(habit["next"][k]),
                to_first=float(habit["first"][k]),
            )
            for k, number in enumerate(known.tolist())
        ]  # fmt: skip
        best_first = sorted(heads, key=lambda head: -head.value)
        selection, reading = chosen(options)
        parts = merged.draws
        summary = FrameSummary(
            checkpoint=options.checkpoint, direction=options.direction, pairing=options.pairing, n=test.n,
            average=options.average, layers=parts[0].layers, heads=parts[0].heads, causal=parts[0].causal,
            links=sum(scored.links for scored in merged.sentences),
            links_before=sum(scored.before for scored in merged.sentences),
            survivors=[head.name for head in heads if head.survives],
            beat_places=[head.name for head in heads if head.beats_places],
            line_99=line, above_99=sum(bool(head.above_99) for head in heads),
            draws=parts[0].draws, movable=sum(part.movable for part in parts),
            exchangeable=sum(part.exchangeable for part in parts), comparable=sum(part.comparable for part in parts),
            mean=float(test.score.mean()),
            fixed={name: sum(part.fixed[name] for part in parts) / test.n for name in parts[0].fixed},
            read=len(reading.sentences), kept=len(selection.kept), dropped=selection.dropped,
            skipped=len(reading.skipped),
            skipped_lines=[{"where": line.where, "why": line.why} for line in reading.skipped[:MOST_SKIPPED]],
        )  # fmt: skip
        return [summary, *best_first, *merged.sentences]

    def facts(self, scores: HeadScores) -> list[Fact]:
        some = scores.own[scores.own["score"].str.startswith("frames") & scores.own["q"].notna()]
        facts = []
        for row in each(some):
            sentence = f"The mean weight of this head on frame-semantic links is {number(row)}"
            sentence += (
                ", significantly above all four baselines."
                if row["q"] < SIGNIFICANT
                else ". The difference from at least one of four baselines is not significant."
            )
            facts.append(Fact("frames", sentence, row["source"]))
        return facts

    def headline(self, rows: Sequence[Row]) -> Headline:
        summary, heads = FrameSummary.of(rows[0]), FrameHead.among(rows)
        survivors, best = summary.survivors, heads[0]
        if survivors:
            best = max((head for head in heads if head.name in survivors), key=lambda head: head.value)
        interval = percent(best.low, best.high, "{:.2f}", 1)
        interval = f"Head {best.name} has a mean weight of {best.value:.2f} on frame-semantic links ({interval})."
        baseline = f"The mean weight of this head on other token pairs at the same distance is {best.baseline:.2f}."
        if summary.n < FEWEST:
            return Headline(
                (
                    f"A significance test needs at least {FEWEST} {summary.average}, but there are only {summary.n}. "
                    f"The head with the largest mean weight is {best.name}."
                ),
                summary.n,
                summary.average,
                interval,
                baseline,
            )
        return Headline(
            (
                "A head attends to frame elements if its attention weight is significantly above all four baselines. "
                f"{len(survivors)} of {len(heads)} heads {'meets' if len(survivors) == 1 else 'meet'} this condition: "
                f"{', '.join(survivors[:6])}."
            )
            if survivors
            else (
                "A head attends to frame elements if its attention weight is significantly above all four baselines. "
                f"None of {len(heads)} heads meets this condition. The head with the largest mean weight is "
                f"{best.name}."
            ),
            summary.n,
            summary.average,
            interval,
            baseline,
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        names = ("name", "value", "low", "high", "n", "baseline", "exchanged", "excess", "q", "survives", "q_places",
                 "beats_places")  # fmt: skip
        summary = FrameSummary.of(rows[0])
        read = (
            f"The study read {summary.read} sentences, of which {summary.kept} pass the filter, and skipped "
            f"{summary.skipped} lines."
        )
        tested = [
            f"On {summary.n} {summary.average}, the weight on frame-semantic links is significantly above all four "
            f"baselines for {', '.join(summary.survivors) or 'no head'}.",
            "The weight is significantly above the two position baselines, which ignore the word that attends, for "
            f"{', '.join(summary.beat_places or ()) or 'no head'}.",
        ]
        few = [f"A significance test needs at least {FEWEST} {summary.average}, but the study scored only {summary.n}."]
        table = [head.columns(*names) for head in FrameHead.among(rows)]
        return [table, read, *(few if summary.n < FEWEST else tested)]

    def warnings(self, rows: Sequence[Row]) -> list[str]:
        skipped = FrameSummary.of(rows[0]).skipped_lines[:NAMED_LINES]
        return [f"The study skipped {line.where}: {line.why}" for line in map(SkippedLine.of, skipped)]


STUDY = FrameHeadsStudy()


def read(options: FrameHeadsOptions) -> FrameReading:
    """Read annotated sentences from the options (as JSON lines), from a file, or from the bundled file."""
    if options.rows:
        return parse_sentences(options.rows)
    file = config.inside(options.sentences or BUNDLED_SENTENCES)
    return read_list(file) if file.suffix == ".json" else read_sentences(file)


def rules_of(options: FrameHeadsOptions) -> Filter:
    """Return the rules for selecting sentences. If the option `filter` is off, only the rule on core elements
    applies."""
    named = {name: getattr(options, name) for name in asdict(Filter())}
    return Filter(**named) if options.filter else replace(NO_FILTER, core=options.core)


def chosen(options: FrameHeadsOptions) -> tuple[Selection, FrameReading]:
    """Return the sentences that pass the filter, and all sentences that were read. Raises InputError if none passes."""
    reading = read(options)
    selection = select(reading.sentences, rules_of(options))
    if not selection.kept:
        reasons = ", ".join(f"{number} {reason}" for reason, number in selection.dropped.items())
        raise InputError(
            f"At least one sentence must pass the filter; none of the {len(reading.sentences)} sentences passes "
            f"({reasons}). Relax the filter."
        )
    return selection, reading


def verdict_of(partial: Scores, heads: Any = slice(None)) -> "scoring.link_tests.LinkTest":
    """Test whether heads (by default, all) attend to frame links more than each of four null models predicts."""
    draws = partial.draws
    distance, exchange, query, share = (
        np.sum([unpacked(getattr(part, name), part.draws)[:, heads] for part in draws], axis=0)
        for name in ("distance", "exchange", "query", "share")
    )
    query_null = scoring.link_tests.Null(np.sum([part.query_observed[heads] for part in draws], axis=0), query)
    share_null = scoring.link_tests.Null(np.sum([part.share_observed[heads] for part in draws], axis=0), share)
    scores = np.array([scored.scores for scored in partial.sentences])[:, heads]
    drawn = [part.contrasts for part in draws if part.contrasts is not None]
    contrasts = np.concatenate(drawn)[:, heads] if drawn else None
    return scoring.link_tests.verdict(scores, distance, exchange, query_null, share_null, contrasts)


def packed(values: np.ndarray) -> str:
    """Encode an array [draw, head] as compressed float32 numbers in base64."""
    return base64.b64encode(zlib.compress(values.astype("<f4").tobytes(), 1)).decode()


def unpacked(text: str, draws: int) -> np.ndarray:
    """Decode text that `packed` has encoded. Return a float64 array of shape [draw, head]."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f4").reshape(draws, -1).astype(np.float64)


# ---------------------------------------------------------------- scores and nulls in one forward pass


@dataclass(frozen=True)
class Entry:
    """Frame links (as token positions) that get one score: all links of a sentence, or a single link."""

    input: int
    links: Links


def entries_of(
    encodings: Sequence[Any], sentences: Sequence[AnnotatedSentence], options: "FrameHeadsOptions"
) -> list[Entry]:
    """Group frame links by sentence or, if `average` is "links", keep every link separate. Each entry gets one
    score."""
    entries = []
    for k, (encoding, sentence) in enumerate(zip(encodings, sentences, strict=True)):
        links = links_in_pieces(encoding, sentence, core=options.core)
        parts = [(link,) for link in links] if options.average == "links" else [links]
        entries += [Entry(k, part) for part in parts if part]
    return entries


def score_sentences(
    checkpoint: "models.checkpoint.Checkpoint", sentences: Sequence[AnnotatedSentence], options: "FrameHeadsOptions"
) -> Scores:
    """Score every head on each sentence or frame link, and sum the scores of random draws from the null models."""
    encodings = [checkpoint.encode(sentence.text) for sentence in sentences]
    how: dict[str, Any] = {"direction": options.direction, "pairing": options.pairing, "causal": checkpoint.causal}
    entries = [entry for entry in entries_of(encodings, sentences, options) if pairs_of(entry.links, **how)]
    if not entries:
        return Scores((), ())
    lengths = [len(encodings[entry.input]) for entry in entries]
    groups = exchange_groups(lengths, seed=options.seed)
    places = [shifted(entry.links, encodings[entry.input].ordinary) for entry in entries]
    scores = PairScores(
        _placements(entries, places, groups, encodings, how), layers=checkpoint.layers, heads=checkpoint.heads
    )
    residuals = QueryResiduals(
        [Looked(entry.input, pairs_of(entry.links, **how), encodings[entry.input].ordinary) for entry in entries],
        layers=checkpoint.layers,
        heads=checkpoint.heads,
        longest=max(len(encoding) for encoding in encodings),
        causal=checkpoint.causal,
    )
    ends = [_ends(entry, encodings[entry.input], how) for entry in entries]
    shape: dict[str, Any] = {"layers": checkpoint.layers, "heads": checkpoint.heads, "causal": checkpoint.causal}
    contrasts = scoring.link_contrasts.MeanContrasts(ends, **shape, seed=options.seed)
    observers: "list[PairScores | QueryResiduals | MeanContrasts]" = [scores, residuals, contrasts]
    capture.running.run(
        checkpoint, encodings, [Sinkless(observer) for observer in observers] if options.without_first else observers
    )
    flat = {key: value.reshape(-1) for key, value in scores.result().items()}
    fixed = [fixed_scores(entry.links, length, **how) for entry, length in zip(entries, lengths, strict=True)]
    nulls = _Nulls(entries, places, groups, flat, residuals, contrasts)
    count = options.draws or scoring.link_tests.draws_needed(checkpoint.layers * checkpoint.heads)
    scored = []
    for k, entry in enumerate(entries):
        sentence = sentences[entry.input]
        scored.append(
            FrameSentence(
                id=sentence.id,
                text=sentence.text,
                frame=sentence.frame,
                target=sentence.target_text,
                elements=[words(sentence.text, link.element) for link in links_of(sentence, core="any")],
                before=sum(min(element) < min(target) for element, target in entry.links),
                links=len(entry.links),
                scores=[round(float(value), 6) for value in flat[entry.input, (k, "place", 0)]],
            )
        )
    return Scores(tuple(scored), (nulls.draws(checkpoint, count, options.seed, fixed),))


class Sinkless:
    """Observer that removes the first position (the sink) from maps and passes them on to another observer."""

    def __init__(self, observer: "PairScores | QueryResiduals | MeanContrasts") -> None:
        self._observer = observer

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        self._observer.update(layer, without_key(weights.float(), 0), inputs)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs]:
        own = self._observer.needs(inputs, queries, keys)
        self._cells = [np.zeros((0, 2), dtype=int) if needs.cells is None else needs.cells for needs in own]
        others = keys_as_values([range(1, keys)], keys)
        return [replace(needs, values=others, blocks=_without_sink(needs.blocks)) for needs in own]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        handed = []
        for found, cells in zip(sums, self._cells, strict=True):
            left = found.values[:, cells[:, 0], 0]
            kept = np.where(cells[:, 1] == 0, 0, found.cells) / np.maximum(left, ALONE)
            handed.append(replace(found, cells=np.where(left < ALONE, found.cells, kept)))
        self._observer.update_sums(layer, handed, inputs)


def _without_sink(reducer: Reducer | None) -> Reducer | None:
    def reduce(head: int, start: int, weights: Any) -> None:
        if reducer is not None:
            reducer(head, start, without_key(weights.float(), 0))

    return None if reducer is None else reduce


def _ends(entry: Entry, encoding: Any, how: dict[str, Any]) -> "LinkEnds":
    """Return the links of an entry as (query's tokens, key's tokens), in the requested direction."""
    groups = capture.words.groups_of(encoding)
    sentences = [-1 if encoding.sentence[group[0]] is None else 0 for group in groups]
    pieces = scoring.link_contrasts.Pieces.of([tuple(group) for group in groups], sentences, len(encoding))
    links = [_directed(*link, how["direction"]) for link in entry.links]
    taken = np.zeros((len(groups), len(groups)), dtype=bool)
    for queries, keys in links:
        taken[np.ix_(pieces.word[list(queries)], pieces.word[list(keys)])] = True
    return scoring.link_contrasts.LinkEnds(entry.input, pieces, tuple(links), taken)


def _directed(element: Positions, target: Positions, direction: str) -> tuple[Positions, Positions]:
    if direction == "later_to_earlier":
        return (max(element, target), min(element, target))
    return (target, element) if direction == "target_to_element" else (element, target)


def _placements(
    entries: list[Entry],
    places: list[tuple[Links, ...]],
    groups: list[list[int]],
    encodings: Sequence[Any],
    how: dict[str, Any],
) -> list[Placement]:
    """Return the positions in a sentence from which the attention on its frame links and of each null model is read."""
    wanted = []
    for k, entry in enumerate(entries):
        length = len(encodings[entry.input])
        wanted += [Placement(entry.input, (k, "place", j), pairs_of(at, **how)) for j, at in enumerate(places[k])]
        own = habits(pairs_of(entry.links, **how), length, causal=how["causal"])
        wanted += [Placement(entry.input, (k, "habit", name), pairs, average=True) for name, pairs in own.items()]
    for group in groups:
        wanted += [
            Placement(entries[i].input, (i, "donor", j), pairs_of(entries[j].links, **how))
            for i in group
            for j in group
        ]
    return wanted


@dataclass(frozen=True)
class _Nulls:
    """The sums from which the four null models are computed. `flat` holds scores [head] by input and placement."""

    entries: list[Entry]
    places: list[tuple[Links, ...]]
    groups: list[list[int]]
    flat: dict[Any, Any]
    residuals: QueryResiduals
    contrasts: "MeanContrasts"

    def draws(
        self, checkpoint: "models.checkpoint.Checkpoint", count: int, seed: int, fixed: list[dict[str, float]]
    ) -> Draws:
        """Sum the frame-link scores over all sentences in each of `count` random draws from the null models."""
        entries, flat = self.entries, self.flat
        moved = [
            np.stack([flat[entry.input, (k, "place", j)] for j in range(len(self.places[k]))])
            for k, entry in enumerate(entries)
        ]
        exchanged = [
            np.stack([[flat[entries[i].input, (i, "donor", j)] for j in group] for i in group]) for group in self.groups
        ]
        query, share = (self.residuals.result(kind) for kind in ("weight", "share"))
        return Draws(
            n=len(entries),
            draws=count,
            layers=checkpoint.layers,
            heads=checkpoint.heads,
            causal=checkpoint.causal,
            habits={
                name: np.nansum(
                    [flat[entry.input, (k, "habit", name)] for k, entry in enumerate(entries)], axis=0
                ).astype(float)
                for name in HABITS
            },
            movable=sum(len(links) > 1 for links in self.places),
            exchangeable=sum(len(group) for group in self.groups if len(group) > 1),
            distance=packed(scoring.link_tests.place_draws(moved, count, seed=seed)),
            comparable=sum(len(places) > 1 for places in self.residuals.places),
            query_observed=np.sum([places[0] for places in query], axis=0),
            query=packed(scoring.link_tests.place_draws(query, count, seed=seed + 2)),
            share_observed=np.sum([places[0] for places in share], axis=0),
            share=packed(scoring.link_tests.place_draws(share, count, seed=seed + 3)),
            exchange=packed(scoring.link_tests.exchange_draws(exchanged, count, seed=seed + 1)),
            fixed={name: float(sum(row[name] for row in fixed)) for name in fixed[0]},
            contrasts=self.contrasts.result(),
        )
