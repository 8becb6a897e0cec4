"""Measurements of attention: features, relations, statistics and distances, budgets, patterns, effective attention.

A `Measure` receives encoded inputs, observes maps as they are computed, and returns sums that can be added over units.
One forward pass serves any number of measurements. Inputs are processed in chunks, so memory does not grow with their
number.
"""

import gc
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int

from ...capture.projections import maps_and_values
from ...capture.running import Observer, run
from ...capture.words import groups_of, spaced_words
from ...models.checkpoint import Checkpoint
from ...models.classifier import random_copy
from ...models.encoding import Encoding
from ...scoring.budget import BudgetAttention, BudgetTokens
from ...scoring.definitions import QUERY_CLASSES, TYPES
from ...scoring.distances import HeadDistances
from ...scoring.effective import correlation, effective_attention, mass_by_type
from ...scoring.features import FeatureAttention, Kinds, Marked, Rhombi, mark, rhombi_of_inputs
from ...scoring.heads import SpecialPositions
from ...scoring.intervals import Means
from ...scoring.link_batches import LinkedWords
from ...scoring.mean_patterns import MeanPatterns
from ...scoring.repetition import OwnAndOthers
from ...scoring.statistics import HeadStatistics
from ...scoring.tokens import RelationAttention
from ...tasks.features import (
    Feature,
    TaggedSentence,
    TaggedWord,
    carries,
    feature_of,
    feature_spans,
    is_of_words,
    is_role,
)
from ...tasks.own import windows
from ...tasks.relations import Relation, links, links_across
from .. import worker_cache
from ..tagging import tag
from .inputs import SourceText
from .partials import (
    BudgetSums,
    EffectiveSums,
    FeatureSums,
    InputOffset,
    PatternSums,
    RelationSums,
    StatisticsSums,
    Sums,
)

WINDOWS = 100_003  # of a stretch of running text at most; odd, so that windows spread over the groups of `Means`
ROWS_A_CHUNK = 1024  # inputs prepared together, so that batches are full and memory is bounded


@dataclass(frozen=True)
class Prepared:
    """An encoded input together with the tagged words of its sentences."""

    number: int
    encoding: Encoding
    tagged: tuple[TaggedSentence, ...]

    @cached_property
    def pieces(self) -> list[list[tuple[int, ...]]]:
        """Return the token positions of every tagged word in each sentence."""
        return [self.encoding.pieces_of(tagged.spans, sentence) for sentence, tagged in enumerate(self.tagged)]


@runtime_checkable
class Measurement(Protocol):
    """Accumulates one kind of measurement for a checkpoint. If `tags` is True, it needs part-of-speech tags."""

    tags: bool

    def sums(self, at: InputOffset) -> Sums:
        """Return the accumulated sums. `at` states the checkpoint, the task and the index of the first input."""


@runtime_checkable
class Measure(Measurement, Protocol):
    """A measurement that observes the forward pass. Several measurements can share one forward pass."""

    def take(self, inputs: Sequence[Prepared]) -> list[Observer]:
        """Take a batch of inputs, and return observers that measure its forward pass."""


def in_windows(checkpoint: Checkpoint, inputs: Sequence[SourceText]) -> list[SourceText]:
    """Split running text into windows that fit the maximum length of the checkpoint. Return other inputs unchanged."""

    def fits(text: str) -> int:
        encoding = checkpoint.encode(text)
        return max(span[1] for span in encoding.offsets if span is not None) if encoding.cut else len(text)

    return [
        SourceText(WINDOWS * source.number + k, f"{source.row_id}-{k}", part, None) if source.windows else source
        for source in inputs
        for k, part in enumerate(
            windows(source.text, checkpoint.max_length, fits) if source.windows else (source.text,)
        )
    ]


def prepare(checkpoint: Checkpoint, pipeline: Any, inputs: Sequence[SourceText]) -> list[Prepared]:
    """Encode some inputs and tag their words in batches. Without a pipeline, the inputs have no tags."""
    encodings = [checkpoint.encode(source.text, source.pair) for source in inputs]
    both = zip(inputs, encodings, strict=True)
    if pipeline is None:
        return [Prepared(source.number, encoding, ()) for source, encoding in both]
    texts = [text for source in inputs for text in (source.text, source.pair) if text is not None]
    tagged = iter(tag(texts, pipeline))
    return [
        Prepared(
            source.number, encoding, tuple(next(tagged) for text in (source.text, source.pair) if text is not None)
        )
        for source, encoding in both
    ]


def observe(checkpoint: Checkpoint, pipeline: Any, inputs: Sequence[SourceText], measures: Iterable[Measure]) -> None:
    """Run the model once on all inputs, in chunks, and update all given measurements."""
    kept, inputs = list(measures), in_windows(checkpoint, inputs)
    for start in range(0, len(inputs), ROWS_A_CHUNK):
        with _uncollected():
            prepared = prepare(checkpoint, pipeline, inputs[start : start + ROWS_A_CHUNK])
            observers = [observer for measure in kept for observer in measure.take(prepared)]
            run(checkpoint, [ready.encoding for ready in prepared], observers)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Turn off cyclic garbage collection, which takes 0.3 s per thousand inputs and frees nothing."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def pipeline_for(measure: Measurement, name: str | None) -> Any:
    """Return the language pipeline with the given name, or None if the measurement needs no part-of-speech tags."""
    return worker_cache.pipeline(name) if measure.tags else None


# ---------------------------------------------------------------- what the positions of a tagged input are


@dataclass(frozen=True)
class TaggedPieces:
    """The linguistic features, word class and lower-case spelling of each token in an input."""

    carried: Bool[np.ndarray, "feature key"]
    kinds: Int[np.ndarray, " key"]
    spellings: Int[np.ndarray, " key"]


class FeatureFinder:
    """Finds the tokens that have given linguistic features. The features of a word are cached by its tags."""

    def __init__(self, features: Sequence[Feature]) -> None:
        self.features = tuple(features)
        self._others = [(row, feature) for row, feature in enumerate(self.features) if not is_of_words(feature)]
        self._numbers: dict[tuple[str, str, str, bool], int] = {}  # of tags, and whether the first of its sentence
        self._kinds: dict[tuple[str, str, bool], int] = {}
        self._kind_of = np.array([-1])  # by number of tags; the last one stands for no word
        self._carried = np.zeros((1, len(self.features)), dtype=bool)

    def find(self, ready: Prepared) -> TaggedPieces:
        """Find the linguistic features of each token. A token belongs to a word if the two share characters."""
        length, spelled = len(ready.encoding), dict[str, int]()
        tags, spellings = [-1] * length, [-1] * length
        joined: list[tuple[int, int]] = []  # pieces of two words carry what both do
        for tagged, pieces in zip(ready.tagged, ready.pieces, strict=True):
            for place, (word, positions) in enumerate(zip(tagged.words, pieces, strict=True)):
                number = self._numbers.get((word.tag, word.pos, word.dep, place == 0))
                number = self._learn(word, first=place == 0) if number is None else number
                spelling = spelled.setdefault(word.text.lower(), len(spelled))
                for position in positions:
                    if tags[position] >= 0:
                        joined.append((position, tags[position]))
                    tags[position], spellings[position] = number, spelling
        carried = self._carried[tags].T.copy()
        for position, number in joined:
            carried[:, position] |= self._carried[number]
        for row, feature in self._others:
            if feature.special:
                carried[row, special_positions(feature.name, ready.encoding)] = True
                continue
            for sentence, tagged in enumerate(ready.tagged):
                for start, end in feature_spans(feature, tagged):
                    carried[row, list(ready.encoding.pieces(start, end, sentence))] = True
        return TaggedPieces(carried, self._kind_of[tags], np.array(spellings))

    def _learn(self, word: TaggedWord, *, first: bool) -> int:
        """Return a number that identifies the tags of a word."""
        number = self._numbers.setdefault((word.tag, word.pos, word.dep, first), len(self._numbers))
        kind = self._kinds.setdefault((word.pos, word.tag[:2], first), len(self._kinds))
        row = [is_of_words(feature) and carries(feature, word) for feature in self.features]
        self._kind_of = np.insert(self._kind_of, number, kind)
        self._carried = np.insert(self._carried, number, row, axis=0)
        return number


def special_positions(name: str, encoding: Encoding) -> list[int]:
    """Return the positions of the named tokens: "start", "separator", "first" (first token of the text) or "last" (last
    token of the first sentence)."""
    if name == "start":
        return [] if encoding.first is None else [encoding.first]
    if name == "last":
        return [position for position in encoding.ordinary if encoding.sentence[position] == 0][-1:]
    return list(encoding.separators) if name == "separator" else list(encoding.ordinary[:1])


PUNCTUATION = (".", ",")
KINDS = ("raw", "effective")


def classifying(encoding: Encoding, *, causal: bool) -> int:
    """Return the position of the token that classifiers read: [CLS] in encoders, the last token in decoders."""
    return len(encoding) - 1 if causal else encoding.first or 0


def special_places(encodings: Sequence[Encoding], *, causal: bool) -> list[SpecialPositions]:
    """Return the positions of the first token, the separators and the classification token of each input."""
    return [
        SpecialPositions(encoding.first or 0, encoding.separators, classifying(encoding, causal=causal))
        for encoding in encodings
    ]


# ---------------------------------------------------------------- features


class FeatureMeasure:
    """Accumulates attention to linguistic features over inputs and, if requested, attention to each word type."""

    tags = True

    def __init__(self, checkpoint: Checkpoint, features: Sequence[str], *, seed: int, word_types: bool = False):
        self.causal, self.attending, self.seed = checkpoint.causal, checkpoint.attending, seed
        self.word_types = word_types
        self.features = [feature_of(name) for name in dict.fromkeys(features)]
        self._finder = FeatureFinder(self.features)
        names = [feature.name for feature in self.features]
        places = [feature.name for feature in self.features if feature.special]
        self.attention = FeatureAttention(checkpoint.layers, checkpoint.heads, names, causal=self.causal, places=places)

    def take(self, inputs: Sequence[Prepared]) -> list[Observer]:
        roles, by_length = np.array([is_role(feature) for feature in self.features], dtype=bool), defaultdict(list)
        marked = [self._marked(ready, roles) for ready in inputs]
        for number, own in enumerate(marked):
            by_length[own.tokens.shape[1]].append(number)
        drawn: dict[int, Rhombi] = {}
        for some in by_length.values():  # those of one length together: arrays of one input are small
            drawn |= zip(some, rhombi_of_inputs([marked[k] for k in some], causal=self.causal), strict=True)
        marks = [
            mark(
                own.tokens,
                own.ordinary,
                classifying=own.classifying,
                seed=own.seed,
                rhombi=drawn[number],
                types=self._types(inputs[number].encoding),
            )
            for number, own in enumerate(marked)
        ]
        return [self.attention.take(marks, [ready.number for ready in inputs])]

    def _types(self, encoding: Encoding) -> np.ndarray | None:
        """Return the token IDs of the text, without the first token in causal models, because every query sees it."""
        if not self.word_types:
            return None
        types, places = np.full(len(encoding), -1), list(encoding.ordinary[self.causal :])
        types[places] = np.array(encoding.ids)[places]
        return types

    def _marked(self, ready: Prepared, roles: np.ndarray) -> Marked:
        found, at = self._finder.find(ready), classifying(ready.encoding, causal=self.causal)
        kinds = Kinds(found.kinds, roles, found.spellings)
        return Marked(found.carried, ready.encoding.ordinary, kinds, at, (self.seed, ready.number))

    def sums(self, at: InputOffset) -> FeatureSums:
        means, names = self.attention.means, tuple(feature.name for feature in self.features)
        shape, types = means.sums.shape[1:3], self.attention.types
        return FeatureSums(at, *shape, self.causal, means, names, types=types, attending=self.attending)


def features_again(sums: FeatureSums) -> FeatureAttention:
    """Recreate the accumulator of attention to linguistic features from stored sums."""
    attention = FeatureAttention(sums.layers, sums.heads, sums.features, causal=sums.causal)
    sums.means.widen(attention.means.sums.shape[-1])  # partials of an older version without contrasts
    attention.means = sums.means
    return attention


# ---------------------------------------------------------------- budgets


CLASS_OF = {tag: number for number, tags in enumerate(QUERY_CLASSES.values()) for tag in tags}


class BudgetMeasure:
    """Accumulates how the heads of one checkpoint divide their attention among kinds of tokens, over many inputs.

    draws: permutations of the parts of speech of queries, with this seed; None if budgets are not measured by part of
    speech.
    """

    def __init__(self, checkpoint: Checkpoint, *, syntax: bool, draws: int | None = None, seed: int = 0):
        self.causal, self.attending, self.tags = checkpoint.causal, checkpoint.attending, syntax
        self.draws, self.seed = draws, seed
        self.attention = BudgetAttention(
            checkpoint.layers, checkpoint.heads, causal=checkpoint.causal, windows=checkpoint.windows, draws=draws
        )

    def take(self, inputs: Sequence[Prepared]) -> list[Observer]:
        tokens = [self._tokens(ready) for ready in inputs]
        return [self.attention.take(tokens, [ready.number for ready in inputs])]

    def _tokens(self, ready: Prepared) -> BudgetTokens:
        encoding, length = ready.encoding, len(ready.encoding)
        spans = (
            [tagged.spans for tagged in ready.tagged]
            if self.tags
            else [spaced_words(text) for text in (encoding.text, encoding.pair) if text is not None]
        )
        heads = [
            ((sentence, place), (sentence, word.head))
            for sentence, tagged in enumerate(ready.tagged)
            for place, word in enumerate(tagged.words)
        ]
        linked = linked_words(encoding, spans, [heads], ready.pieces if self.tags else None)
        word, spelling, punctuation = np.full(length, -1), np.full(length, -1), np.zeros(length, dtype=bool)
        for number, positions in enumerate(linked.words):
            if linked.sentence[number] >= 0:
                word[list(positions)], spelling[list(positions)] = number, linked.spellings[number]
        punctuation[list(encoding.punctuation)] = True
        sentences = np.array(
            [encoding.segments[k] if own is None else own for k, own in enumerate(encoding.sentence)], dtype=int
        )
        at = classifying(encoding, causal=self.causal)
        return BudgetTokens(
            encoding.first,
            encoding.separators,
            word,
            spelling,
            sentences,
            punctuation,
            linked.links[0],
            at,
            self._classes(ready),
        )

    def _classes(self, ready: Prepared) -> np.ndarray | None:
        """Return the class of each token's word, then with the words of each sentence permuted, once per draw."""
        if self.draws is None:
            return None
        chance = np.random.default_rng([self.seed, ready.number])
        classes = np.full((1 + self.draws, len(ready.encoding)), -1)
        for tagged, pieces in zip(ready.tagged, ready.pieces, strict=True):
            own = np.array([CLASS_OF.get(word.pos, CLASS_OF[""]) for word in tagged.words], dtype=int)
            orders = np.stack([own, *(chance.permutation(own) for _ in range(self.draws))])
            word = np.repeat(np.arange(len(pieces)), [len(positions) for positions in pieces])
            classes[:, [position for positions in pieces for position in positions]] = orders[:, word]
        return classes

    def sums(self, at: InputOffset) -> BudgetSums:
        observed, means = self.attention, self.attention.means
        sums = BudgetSums(at, *means.sums.shape[1:3], self.causal, means, self.tags, attending=self.attending)
        if self.draws is None:
            return sums
        by_class = {name: getattr(observed, name) for name in ("by_class", "drawn", "counts", "even")}
        return replace(sums, **by_class)


# ---------------------------------------------------------------- relations


class RelationMeasure:
    """Accumulates attention between words that are linked by a relation, over the inputs of one checkpoint."""

    tags = True

    def __init__(self, checkpoint: Checkpoint, relations: Sequence[Relation]):
        self.causal, self.attending, self.relations = checkpoint.causal, checkpoint.attending, list(relations)
        self.attention = RelationAttention(
            checkpoint.layers,
            checkpoint.heads,
            [relation.name for relation in relations],
            across=[relation.across for relation in relations],
            causal=checkpoint.causal,
        )

    def take(self, inputs: Sequence[Prepared]) -> list[Observer]:
        linked = []
        for ready in inputs:
            words = [tagged.words for tagged in ready.tagged]
            pairs = [
                [((0, a), (1, b)) for a, b in links_across(*words)]
                if relation.across and len(words) > 1
                else [((k, a), (k, b)) for k, input_words in enumerate(words) for a, b in links(relation, input_words)]
                for relation in self.relations
            ]
            linked.append(linked_words(ready.encoding, [tagged.spans for tagged in ready.tagged], pairs, ready.pieces))
        return [self.attention.take(linked, [ready.number for ready in inputs])]

    def sums(self, at: InputOffset) -> RelationSums:
        attention, names = self.attention, tuple(relation.name for relation in self.relations)
        distances = tuple(dict(counter) for counter in attention.distances)
        shape = attention.means.sums.shape[1:3]
        return RelationSums(at, *shape, self.causal, attention.means, names, distances, attending=self.attending)


def relations_again(sums: RelationSums, relations: Sequence[Relation]) -> RelationAttention:
    """Recreate the accumulator of attention along relations from stored sums."""
    names, across = [relation.name for relation in relations], [relation.across for relation in relations]
    attention = RelationAttention(sums.layers, sums.heads, names, across=across, causal=sums.causal)
    sums.means.widen(attention.means.sums.shape[-1], blocks=2 * len(names))  # older partials lack some
    attention.means = sums.means
    attention.distances = [Counter(counter) for counter in sums.distances]
    return attention


def linked_words(
    encoding: Encoding,
    spans: Sequence[Sequence[tuple[int, int]]],
    links: Sequence[Sequence[tuple[tuple[int, int], tuple[int, int]]]],
    pieces: Sequence[Sequence[tuple[int, ...]]] | None = None,
) -> LinkedWords:
    """Convert links between spaCy words to links between words that consist of model tokens.

    A token that spans two words joins them. Links inside such a word, or to a word without tokens, are left out.

    Args:
        spans: of each sentence, its words as (start, end) in characters.
        links: of each relation, its links; each end is (sentence, number of the word in it).
        pieces: of each sentence's spans, their positions; None if they are not known yet.
    """
    at = pieces or [encoding.pieces_of(sentence_spans, k) for k, sentence_spans in enumerate(spans)]
    words = groups_of(encoding, list(spans) + [[]] * (2 - len(spans)))
    owner = {position: number for number, word in enumerate(words) for position in word}
    word_at = {
        (sentence, number): owner[positions[0]]
        for sentence, of_words in enumerate(at)
        for number, positions in enumerate(of_words)
        if positions
    }
    word_links = [
        [(word_at[a], word_at[b]) for a, b in of_input if a in word_at and b in word_at and word_at[a] != word_at[b]]
        for of_input in links
    ]
    found = [encoding.sentence[word[0]] for word in words]
    sentences = [-1 if sentence is None else sentence for sentence in found]
    return LinkedWords([tuple(word) for word in words], sentences, word_links, word_spellings(encoding, words))


def word_spellings(encoding: Encoding, words: Sequence[Sequence[int]]) -> list[int]:
    """Number the words of an input. Words that differ only in case get the same number."""
    numbers: dict[str | int, int] = {}
    spelled: list[str | int] = []
    for number, word in enumerate(words):
        offsets = [encoding.offsets[position] for position in word]
        spans = [offset for offset in offsets if offset is not None]
        text = (encoding.pair or "") if encoding.sentence[word[0]] else encoding.text
        spelled.append(text[spans[0][0] : spans[-1][1]].strip().casefold() if spans else number)
    return [numbers.setdefault(spelling, len(numbers)) for spelling in spelled]


# ---------------------------------------------------------------- statistics and distances


class StatisticsMeasure:
    """Accumulates statistics of attention heads, and distances between heads, over the inputs of one checkpoint."""

    tags = False

    def __init__(self, checkpoint: Checkpoint, *, queries: int | None, seed: int):
        self.causal, self.attending = checkpoint.causal, checkpoint.attending
        layers, heads = checkpoint.layers, checkpoint.heads
        self.statistics = HeadStatistics(layers, heads, causal=checkpoint.causal)
        self.distances = HeadDistances(layers, heads, self.attending, queries=queries, seed=seed)

    def take(self, inputs: Sequence[Prepared]) -> list[Observer]:
        return [self.statistics_of(inputs), self.distances.take([ready.number for ready in inputs])]

    def statistics_of(self, inputs: Sequence[Prepared]) -> HeadStatistics:
        places = special_places([ready.encoding for ready in inputs], causal=self.causal)
        return self.statistics.take(places, [ready.number for ready in inputs])

    def sums(self, at: InputOffset) -> StatisticsSums:
        means, distances = self.statistics.means, self.distances
        shape = means.sums.shape[1:3]
        return StatisticsSums(
            at, *shape, self.causal, means, distances.sums, int(distances.rows), attending=self.attending
        )


def distances_again(sums: StatisticsSums) -> HeadDistances:
    """Recreate the accumulator of distances between heads from stored sums."""
    distances = HeadDistances(sums.layers, sums.heads)
    distances.sums, distances.rows = sums.distances, sums.rows
    return distances


class PatternMeasure:
    """Accumulates distances between heads, and the mean map of each head, over the inputs of one checkpoint."""

    tags = False

    def __init__(self, checkpoint: Checkpoint, *, queries: int, seed: int, random: int = 0):
        """Set up the measurement, with `random` draws of random weights for comparison (0: no repeated patterns)."""
        self.checkpoint, self.seed = checkpoint, seed
        shape = (checkpoint.layers, checkpoint.heads, checkpoint.attending)
        self.distances = HeadDistances(*shape, queries=queries, seed=seed)
        self.patterns = MeanPatterns(*shape)
        sets = range(random + 1 if random else 0)
        self.repeats = [OwnAndOthers(*shape) for _ in sets]

    def take(self, inputs: Sequence[Prepared]) -> list[Observer]:
        encodings = [ready.encoding for ready in inputs]
        for number, observer in enumerate(self.repeats[1:]):
            drawn = random_copy(self.checkpoint, seed=self.seed + number)
            run(drawn, encodings, [observer.take(len(inputs))])
        own = [observer.take(len(inputs)) for observer in self.repeats[:1]]
        return [self.distances.take([ready.number for ready in inputs]), self.patterns, *own]

    def sums(self, at: InputOffset) -> PatternSums:
        checkpoint, distances, patterns = self.checkpoint, self.distances, self.patterns
        shape = (checkpoint.layers, checkpoint.heads, checkpoint.causal)
        nothing = Means(checkpoint.layers, checkpoint.heads, 0)
        sums = PatternSums(
            at, *shape, nothing, distances.sums, int(distances.rows), patterns.sums, int(patterns.inputs),
            attending=checkpoint.attending,
        )  # fmt: skip
        if not self.repeats:
            return sums
        return replace(sums, nearer=np.array([one.sums for one in self.repeats]), pairs=self.repeats[0].pairs)


# ---------------------------------------------------------------- effective attention


class EffectiveMeasure:
    """Accumulates raw attention and effective attention to token types, and the correlation of raw with effective."""

    tags = False

    def __init__(self, checkpoint: Checkpoint):
        self.checkpoint = checkpoint
        self.means = Means(checkpoint.layers, checkpoint.heads, len(KINDS) * len(TYPES) + 1)
        self.by_length: dict[int, tuple[float, float]] = {}  # length: sum of r, inputs
        self.squares: dict[int, float] = {}  # length: sum of r squared

    def measure(self, inputs: Sequence[Prepared]) -> None:
        for ready in inputs:
            self.add(ready.number, *both_maps(self.checkpoint, ready.encoding), ready.encoding)

    def add(self, number: int, raw: np.ndarray, effective: np.ndarray, encoding: Encoding) -> None:
        """Add the raw and effective attention weights [layer, head, query, key] of one input to the sums."""
        types, causal = token_types(encoding), self.checkpoint.causal
        counts = np.array([[float(bool(keys)) for keys in types.values()] * len(KINDS) + [1.0]])
        filled = np.full(raw.shape[:2], np.nan)
        for layer in range(len(raw)):
            rows = []
            for head in range(raw.shape[1]):
                mine, its = raw[layer, head], effective[layer, head]
                filled[layer, head] = correlation(mine, its, causal=causal)
                masses = [*mass_by_type(mine, types).values(), *mass_by_type(its, types).values()]
                rows.append([*masses, filled[layer, head]])
            values = np.array([rows])
            defined = counts * ~np.isnan(values[:, 0])
            self.means.update(layer, values, defined, [number])
        if not np.isnan(filled).all():
            r, (total, inputs) = float(np.nanmean(filled)), self.by_length.get(len(encoding), (0.0, 0.0))
            self.by_length[len(encoding)] = (total + r, inputs + 1)
            self.squares[len(encoding)] = self.squares.get(len(encoding), 0.0) + r * r

    def sums(self, at: InputOffset) -> EffectiveSums:
        shape = self.means.sums.shape[1:3]
        more = (self.by_length, self.squares)
        return EffectiveSums(at, *shape, self.checkpoint.causal, self.means, *more, attending=self.checkpoint.attending)


def both_maps(checkpoint: Checkpoint, encoding: Encoding) -> tuple[np.ndarray, np.ndarray]:
    """Return the raw and the effective attention weights of one input, both as float64 [layer, head, query, key]."""
    weights, values = maps_and_values(checkpoint, encoding)
    effective = np.empty_like(weights)
    for layer, head in np.ndindex(*weights.shape[:2]):
        effective[layer, head] = effective_attention(
            weights[layer, head], values[layer, head], causal=checkpoint.causal
        )
    return weights, effective


def token_types(encoding: Encoding) -> dict[str, tuple[int, ...]]:
    """Group the token positions of an input by token type. Every position belongs to exactly one type."""
    start = () if encoding.first is None else (encoding.first,)
    separators = tuple(k for k in encoding.separators if k not in start)
    points = tuple(
        k
        for k in encoding.ordinary
        if encoding.tokens[k].strip("Ġ▁# ") in PUNCTUATION and k not in (*start, *separators)
    )
    rest = tuple(k for k in range(len(encoding)) if k not in {*start, *separators, *points})
    return dict(zip(TYPES, (start, separators, points, rest), strict=True))
