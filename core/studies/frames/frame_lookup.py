"""Lookup of one sentence: possible targets and frame elements, and how each head attends between the marked words."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from ... import capture
from ...attention import AttentionMaps, Head
from ...errors import InputError
from ...frames.lexicon import Lexicon, lemmas
from ...frames.records import AnnotatedSentence, Span, Spans, check_apart
from ...frames.rows import BUNDLED_SENTENCES, read_sentences
from ...scoring.links import Links, links_in_pieces, pairs_of, positions, relation_score, shifted, without_key
from ...tasks.features import TaggedSentence, TaggedWord

if TYPE_CHECKING:
    from ...models.checkpoint import Checkpoint

APART = 3  # words that may stand between the parts of a unit of several words ("gave it up")


class Target(NamedTuple):
    """A word that may evoke a frame through a lexical unit. `more` has the positions of this unit's other words."""

    word: int
    unit: str
    frame: str
    more: tuple[int, ...] = ()

    @property
    def words(self) -> tuple[int, ...]:
        return tuple(sorted({self.word, *self.more}))


def propose_targets(tagged: Any, lexicon: Lexicon) -> list[Target]:
    """Find the words that may evoke a frame according to the lexicon. Return predicates first."""
    targets = []
    for number, word in enumerate(tagged.words):
        frames = [pair for lemma in lemmas(word.text) for pair in lexicon.frames(lemma, word.pos)]
        targets += [Target(number, unit, frame) for unit, frame in dict.fromkeys(frames)]
        targets += _of_several_words(tagged.words, number, lexicon)
    return sorted(
        targets,
        key=lambda target: (
            _unlikely(tagged.words[target.word]),
            not _fits(tagged.words[target.word], target.unit),
            -len(target.more),
            target.word,
        ),
    )


def _of_several_words(words: Sequence[Any], number: int, lexicon: Lexicon) -> list[Target]:
    """Return units that begin with this word and follow, with at most APART words between two."""
    targets = []
    known = lexicon.of_several_words
    for unit in [unit for lemma in lemmas(words[number].text) for unit in known.get(lemma, ())]:
        frames, (_, *rest) = lexicon.units[unit], unit.rpartition(".")[0].split()
        places, last = [], number
        for part in rest:
            near = range(last + 1, min(last + 2 + APART, len(words)))
            last = next((k for k in near if part in lemmas(words[k].text)), -1)
            places.append(last)
            if last < 0:
                break
        if last >= 0:
            targets += [Target(number, unit, frame, tuple(places)) for frame in frames]
    return targets


def _unlikely(word: Any) -> int:
    """Rate how unlikely a word is a target: 0 complement, 1 main predicate, 2 other content word, 3 function word."""
    if word.pos in {"AUX", "ADP", "DET", "PRON", "PART"}:
        return 3
    if word.dep in {"xcomp", "acomp", "oprd"}:
        return 0
    return 1 if word.dep == "root" or word.pos == "VERB" else 2


def _fits(word: Any, unit: str) -> bool:
    """Return whether the word has the lexical unit's part of speech. Verbs evoke most frames."""
    return {"VERB": "v", "ADJ": "a", "NOUN": "n", "ADV": "adv"}.get(word.pos) == unit.rpartition(".")[2]


def spans_of(spans: Sequence[Span], chosen: Sequence[int]) -> Spans:
    """Return the character spans of the chosen words. Adjacent words are joined into one span."""
    runs: list[Span] = []
    for k in sorted(set(chosen)):
        if runs and k - 1 in chosen:
            runs[-1] = (runs[-1][0], spans[k][1])
        else:
            runs.append(spans[k])
    return tuple(runs)


# ---------------------------------------------------------------- attention at the same distances in other sentences

# A baseline for links whose sentence has no other positions at the same distances. The scoring is the same: tokens,
# pairing, largest weight, with or without the first key.


@dataclass(frozen=True)
class DistanceNull:
    """Attention maps of ordinary sentences, from which the expected attention at each distance is estimated."""

    sentences: tuple[tuple[Float[np.ndarray, "layer head _ _"], tuple[int, ...]], ...]

    def at(
        self, links: Links, how: Mapping[str, Any], *, without_first: bool = False
    ) -> tuple[Float[np.ndarray, "layer head"], int]:
        """Score the links at every possible position in the stored sentences, and return the mean score.

        Also return the number of positions. The result is NaN and 0 if the links fit nowhere. `how` holds arguments of
        `pairs_of`; `without_first` leaves out position 0.
        """
        used = sorted({k for element, target in links for k in (*element, *target)})
        pairs = pairs_of(links, **how)
        total, places = np.zeros(self.sentences[0][0].shape[:2]), 0
        for maps, ordinary in self.sentences:
            steps = _steps(used, ordinary)
            if not steps or not pairs:
                continue
            weights = without_key(maps, 0) if without_first else maps
            query, key = (np.array([pair[side] for pair in pairs]) + np.array(steps)[:, None] for side in (0, 1))
            total += weights[:, :, query, key].max(-1).sum(-1, dtype=np.float64)
            places += len(steps)
        return (total / places if places else np.full_like(total, np.nan)), places


def _steps(used: Sequence[int], ordinary: Sequence[int]) -> list[int]:
    """Return how far the positions may be moved together so that all of them are ordinary tokens."""
    allowed = set(ordinary)
    if not used or not allowed:
        return []
    offsets = range(min(allowed) - used[0], max(allowed) - used[-1] + 1)
    return [step for step in offsets if all(position + step in allowed for position in used)]


def distance_null(checkpoint: "Checkpoint") -> DistanceNull:
    """Create a distance baseline from the attention maps of a checkpoint on the bundled sentences."""
    encodings = [checkpoint.encode(row.text) for row in read_sentences(BUNDLED_SENTENCES).sentences]
    maps = [capture.running.capture(checkpoint, encoding) for encoding in encodings]
    return DistanceNull(tuple((own.weights, tuple(e.ordinary)) for own, e in zip(maps, encodings, strict=True)))


# ---------------------------------------------------------------- the picture


@dataclass(frozen=True)
class LinkPicture:
    """The attention of all heads along the frame links of one sentence, in one direction of attention.

    Attributes:
        score: maximum over the tokens of the links; NaN if a causal model cannot attend in this direction, and in
            layers without attention.
        others: mean of the same score at all other positions with the same distances; NaN without any.
        place_rank: 1 if no other position has a higher score.
        visible: whether the checkpoint can attend in this direction.
        borrowed: number of positions in bundled sentences behind `others`; 0 if this sentence has such positions.
    """

    direction: str
    score: Float[np.ndarray, "layer head"]
    others: Float[np.ndarray, "layer head"]
    place_rank: Float[np.ndarray, "layer head"]
    places: int
    visible: bool
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    borrowed: int = 0

    def ranked(self, by: str = "score") -> Float[np.ndarray, "layer head"]:
        """Return the values by which heads are ranked. For "difference", subtract the baseline `others` if there is
        one."""
        beside = self.places > 1 or self.borrowed > 0
        return self.score - self.others if by == "difference" and beside else self.score

    def rows(self, by: str = "score") -> list[dict[str, Any]]:
        """Return one row per head, ranked from 1 by "score" or "difference". Equal values share a rank."""
        ranked = self.ranked(by)
        cells = [cell for cell in np.ndindex(self.score.shape) if not (self.visible and np.isnan(self.score[cell]))]
        cells.sort(key=lambda cell: -ranked[cell] if self.visible else 0)
        return [
            {
                "name": str(Head(*cell)),
                "layer": cell[0],
                "head": cell[1],
                "score": float(self.score[cell]),
                "rank": 1 + int((ranked > ranked[cell]).sum()),
                "same_distance": float(self.others[cell]),
                "difference": float(self.score[cell] - self.others[cell]),
                "place_rank": float(self.place_rank[cell]),
                "places": self.places,
            }
            for cell in cells
        ]


@dataclass(frozen=True)
class LinkReading:
    """How frame links are scored: in which direction, how tokens are paired, and whether the first token is skipped."""

    direction: str
    pairing: str = "product"
    without_first: bool = False


def picture(
    maps: AttentionMaps,
    encoding: Any,
    links: Links,
    reading: LinkReading,
    *,
    null: Callable[[], DistanceNull] | None = None,
) -> LinkPicture:
    """Score all heads along the frame links of one sentence. If the sentence offers no baseline, `null` creates one."""
    if not links:
        raise InputError(
            "The target and the element of a frame must have different tokens; the marked words share a token. Mark "
            "both again."
        )
    weights = without_key(maps.weights, 0) if reading.without_first else maps.weights
    how: dict[str, Any] = {"direction": reading.direction, "pairing": reading.pairing, "causal": maps.causal}
    places = shifted(links, encoding.ordinary)
    scores = np.stack([relation_score(weights, positions, **how) for positions in places])
    pairs = pairs_of(links, **how)
    others, borrowed = scores[1:].mean(0) if len(places) > 1 else np.full_like(scores[0], np.nan), 0
    if len(places) == 1 and pairs and null is not None:
        others, borrowed = null().at(links, how, without_first=reading.without_first)
    return LinkPicture(
        reading.direction,
        scores[0],
        others,
        1.0 + (scores > scores[:1]).sum(0),
        len(places),
        bool(pairs),
        tuple(sorted({query for query, _ in pairs})),
        tuple(sorted({key for _, key in pairs})),
        borrowed,
    )


def look_up(checkpoint: Any, marked: AnnotatedSentence, reading: LinkReading) -> tuple[Any, LinkPicture]:
    """Encode a marked sentence and score all heads along its frame links. Raises InputError if none can be scored."""
    encoding = checkpoint.encode(marked.text)
    ranking = picture(
        capture.running.capture(checkpoint, encoding),
        encoding,
        links_for(encoding, marked),
        reading,
        null=lambda: distance_null(checkpoint),
    )
    if not ranking.visible:
        raise InputError(
            "A decoder needs at least one key that is not after its query; here, all keys are later. Use the direction "
            "later_to_earlier."
        )
    return encoding, ranking


def headline(links: LinkPicture, element: str, target: str, by: str = "difference") -> str:
    """State the attention of the highest-ranked head between the marked words, and elsewhere at the same distance."""
    rows = links.rows(by)
    row = rows[0]
    ends = (element, target) if links.direction == "element_to_target" else (target, element)
    way = f"from “{ends[0]}” to “{ends[1]}”"
    if links.direction == "later_to_earlier":
        way = f"between “{element}” and “{target}”, from the later to the earlier words"
    sentence = f"Head {row['name']} attends {way} (weight {row['score']:.2f})"
    if links.borrowed:
        return (
            f"{sentence}, which ranks first among {len(rows)} heads. The baseline is the mean weight at "
            f"{links.borrowed:,} positions with the same distance in the bundled sentences: "
            f"{row['same_distance']:.2f}. The sentence itself has no other such position."
        )
    if links.places == 1:
        return f"{sentence}. The sentence has no other pair of tokens at the same distance for comparison."
    return f"{sentence}. At the same distance elsewhere in the sentence, the mean weight is {row['same_distance']:.2f}."


def links_for(encoding: Any, sentence: AnnotatedSentence) -> Links:
    """Return frame links as token positions. Raises InputError if no element is marked or words were truncated."""
    check_apart(sentence)
    if not sentence.elements:
        raise InputError("A frame must have at least one element; no element is marked. Mark the words of an element.")
    for name, spans in (("target", sentence.target), *((element.name, element.spans) for element in sentence.elements)):
        if not positions(encoding, spans):
            raise InputError(
                f"The {name} must be within the maximum length of the checkpoint; it was cut off because the text is "
                "longer. Shorten the text."
            )
    return links_in_pieces(encoding, sentence, core="any")


def strips(maps: AttentionMaps, encoding: Any, links: Links, head: Head) -> list[dict[str, Any]]:
    """Tabulate three distributions of one head: attention from the element, from the target, and to the target.

    Each row is one position of one distribution. Columns are line, position, token, weight and mark ("element",
    "target", "sink" or ""). "from the element" and "from the target" are mean map rows of the tokens; "to the target"
    is the sum of its columns.
    """
    weights = maps.of(head)
    elements = sorted({k for element, _ in links for k in element})
    targets = sorted({k for _, target in links for k in target})
    places = dict.fromkeys(elements, "element") | dict.fromkeys(targets, "target")
    if encoding.first is not None:
        places.setdefault(encoding.first, "sink")
    lines = {
        "from the element": weights[elements].mean(0),
        "from the target": weights[targets].mean(0),
        "to the target": weights[:, targets].sum(1),
    }
    return [
        {
            "line": line,
            "position": k,
            "token": encoding.tokens[k],
            "weight": float(values[k]),
            "mark": places.get(k, ""),
        }
        for line, values in lines.items()
        for k in range(len(encoding))
    ]


def spaced(text: str) -> TaggedSentence:
    """Split a text at white space into words without tags, for use without a language pipeline."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    return TaggedSentence(text, tuple(TaggedWord(text[a:b], a, b, "", "", "", k) for k, (a, b) in enumerate(spans)))
