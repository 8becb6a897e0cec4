"""Sentences with frame elements scored in one forward pass: every place of every link is read as the maps go by."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...capture.running import run
from ...capture.words import groups_of
from ...frames.records import AnnotatedSentence, links_of, words
from ...map_sums import MapSums, Needs, Reducer, keys_as_values
from ...models.checkpoint import Checkpoint
from ...scoring import link_tests
from ...scoring.link_contrasts import Pieces
from ...scoring.links import (
    ALONE,
    Links,
    PairScores,
    Placement,
    Positions,
    exchange_groups,
    fixed_scores,
    habits,
    pairs_of,
    shifted,
)
from ...scoring.links import without_key as without
from ...scoring.mean_contrasts import LinkEnds, MeanContrasts
from ...scoring.queries import Looked, QueryResiduals
from .frame_partials import HABITS, Draws, Scored, Scores, links_in_pieces, packed

if TYPE_CHECKING:
    from .frame_heads import FrameHeadsOptions


@dataclass(frozen=True)
class Entry:
    """What is scored as one: the links of a sentence (or one link of it) as positions of its encoding."""

    input: int
    links: Links


def entries_of(
    encodings: Sequence[Any], sentences: Sequence[AnnotatedSentence], options: "FrameHeadsOptions"
) -> list[Entry]:
    """One entry a sentence, or one a link where the average is over links."""
    entries = []
    for number, (encoding, sentence) in enumerate(zip(encodings, sentences, strict=True)):
        links = links_in_pieces(encoding, sentence, core=options.core)
        parts = [(link,) for link in links] if options.average == "links" else [links]
        entries += [Entry(number, part) for part in parts if part]
    return entries


def score_sentences(
    checkpoint: Checkpoint, sentences: Sequence[AnnotatedSentence], options: "FrameHeadsOptions"
) -> Scores:
    """The score of every head on each sentence (or link), and the sums of both nulls; nothing where none is seen."""
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
    contrasts = MeanContrasts(ends, **shape, seed=options.seed)
    observers: list[PairScores | QueryResiduals | MeanContrasts] = [scores, residuals, contrasts]
    run(checkpoint, encodings, [Sinkless(observer) for observer in observers] if options.without_first else observers)
    flat = {key: value.reshape(-1) for key, value in scores.result().items()}
    fixed = [fixed_scores(entry.links, length, **how) for entry, length in zip(entries, lengths, strict=True)]
    nulls = _Nulls(entries, places, groups, flat, residuals, contrasts)
    count = options.draws or link_tests.draws_needed(checkpoint.layers * checkpoint.heads)
    return Scores(
        tuple(
            _scored(sentences[entry.input], entry, flat[entry.input, (k, "place", 0)])
            for k, entry in enumerate(entries)
        ),
        (nulls.draws(checkpoint, count, options.seed, fixed),),
    )


class Sinkless:
    """Hands maps, or what is asked of them, on without the first position (the sink), rows renormalised."""

    def __init__(self, observer: PairScores | QueryResiduals | MeanContrasts) -> None:
        self._observer = observer

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        self._observer.update(layer, without(weights.float(), 0), inputs)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs]:
        """What the observer needs, and of each row what the other keys have."""
        own = self._observer.needs(inputs, queries, keys)
        self._cells = [np.zeros((0, 2), dtype=int) if needs.cells is None else needs.cells for needs in own]
        others = keys_as_values([range(1, keys)], keys)
        return [replace(needs, values=others, blocks=_without_sink(needs.blocks)) for needs in own]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        """Hand on cells as `links.without_key` would leave them."""
        handed = []
        for found, cells in zip(sums, self._cells, strict=True):
            left = found.values[:, cells[:, 0], 0]
            kept = np.where(cells[:, 1] == 0, 0, found.cells) / np.maximum(left, ALONE)
            handed.append(replace(found, cells=np.where(left < ALONE, found.cells, kept)))
        self._observer.update_sums(layer, handed, inputs)


def _without_sink(reducer: Reducer | None) -> Reducer | None:
    def reduce(head: int, start: int, weights: Any) -> None:
        if reducer is not None:
            reducer(head, start, without(weights.float(), 0))

    return None if reducer is None else reduce


def _ends(entry: Entry, encoding: Any, how: dict[str, Any]) -> LinkEnds:
    """An entry's links as (query's tokens, key's tokens), in the direction that is asked for."""
    groups = groups_of(encoding)
    sentences = [-1 if encoding.sentence[group[0]] is None else 0 for group in groups]
    pieces = Pieces.of([tuple(group) for group in groups], sentences, len(encoding))
    links = [_directed(*link, how["direction"]) for link in entry.links]
    taken = np.zeros((len(groups), len(groups)), dtype=bool)
    for queries, keys in links:
        taken[np.ix_(pieces.word[list(queries)], pieces.word[list(keys)])] = True
    return LinkEnds(entry.input, pieces, tuple(links), taken)


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
    """What to read for each entry: its links at every place, the links of its group, and its head's habits."""
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


def _scored(sentence: AnnotatedSentence, entry: Entry, scores: np.ndarray) -> Scored:
    return Scored(
        id=sentence.id,
        text=sentence.text,
        frame=sentence.frame,
        target=sentence.target_text,
        elements=[words(sentence.text, link.element) for link in links_of(sentence, core="any")],
        before=sum(min(element) < min(target) for element, target in entry.links),
        links=len(entry.links),
        scores=np.array([round(float(value), 6) for value in scores]),
    )


@dataclass(frozen=True)
class _Nulls:
    """What both nulls are made of. flat: scores [head] by input and placement."""

    entries: list[Entry]
    places: list[tuple[Links, ...]]
    groups: list[list[int]]
    flat: dict[Any, Any]
    residuals: QueryResiduals
    contrasts: MeanContrasts

    def draws(self, checkpoint: Checkpoint, count: int, seed: int, fixed: list[dict[str, float]]) -> Draws:
        """Their sums over the entries in `count` draws."""
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
            distance=packed(link_tests.place_draws(moved, count, seed=seed)),
            comparable=sum(len(places) > 1 for places in self.residuals.places),
            query_observed=np.sum([places[0] for places in query], axis=0),
            query=packed(link_tests.place_draws(query, count, seed=seed + 2)),
            share_observed=np.sum([places[0] for places in share], axis=0),
            share=packed(link_tests.place_draws(share, count, seed=seed + 3)),
            exchange=packed(link_tests.exchange_draws(exchanged, count, seed=seed + 1)),
            fixed={name: float(sum(row[name] for row in fixed)) for name in fixed[0]},
            contrasts=self.contrasts.result(),
        )
