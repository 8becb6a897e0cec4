"""What the positions of a tagged input are: which features they carry, and of what word."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from ...models.encoding import Encoding
from ...tasks.features import Feature, carries, feature_spans, is_of_words
from ...tasks.language import TaggedWord
from .passes import Prepared


@dataclass(frozen=True)
class TaggedPieces:
    """What each position of an input is: the features that it carries, and two numbers of its word, -1 for none.

    Attributes:
        carried: whether the position carries the feature.
        kinds: of the kind of the word: its part of speech, its tag without what inflects it, and whether it is the
            first of its sentence.
        spellings: of the word, the same for words that differ in case alone.
    """

    carried: Bool[np.ndarray, "feature key"]
    kinds: Int[np.ndarray, " key"]
    spellings: Int[np.ndarray, " key"]


class FeatureFinder:
    """Finds features in inputs; what a word of certain tags carries is remembered."""

    def __init__(self, features: Sequence[Feature]) -> None:
        self.features = tuple(features)
        self._others = [(row, feature) for row, feature in enumerate(self.features) if not is_of_words(feature)]
        self._numbers: dict[tuple[str, str, str, bool], int] = {}  # of tags, and whether the first of its sentence
        self._kinds: dict[tuple[str, str, bool], int] = {}
        self._kind_of = np.array([-1])  # by number of tags; the last one stands for no word
        self._carried = np.zeros((1, len(self.features)), dtype=bool)

    def find(self, ready: Prepared) -> TaggedPieces:
        """What the positions of a tagged input carry: a piece is a word's where they share characters."""
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
            carried[row, _positions(feature, ready)] = True
        return TaggedPieces(carried, self._kind_of[tags], np.array(spellings))

    def _learn(self, word: TaggedWord, *, first: bool) -> int:
        """A number for the word's tags."""
        number = self._numbers.setdefault((word.tag, word.pos, word.dep, first), len(self._numbers))
        kind = self._kinds.setdefault((word.pos, word.tag[:2], first), len(self._kinds))
        row = [is_of_words(feature) and carries(feature, word) for feature in self.features]
        self._kind_of = np.insert(self._kind_of, number, kind)
        self._carried = np.insert(self._carried, number, row, axis=0)
        return number


def _positions(feature: Feature, ready: Prepared) -> list[int]:
    """Of a feature that is a place, or is found in the text."""
    if feature.special:
        return special_positions(feature.name, ready.encoding)
    return [
        position
        for sentence, tagged in enumerate(ready.tagged)
        for start, end in feature_spans(feature, tagged)
        for position in ready.encoding.pieces(start, end, sentence)
    ]


def special_positions(name: str, encoding: Encoding) -> list[int]:
    """Positions of "start", "separator", "first" (of the text) or "last" (the last token of the first sentence)."""
    if name == "start":
        return [] if encoding.first is None else [encoding.first]
    if name == "last":
        return [position for position in encoding.ordinary if encoding.sentence[position] == 0][-1:]
    return list(encoding.separators) if name == "separator" else list(encoding.ordinary[:1])
