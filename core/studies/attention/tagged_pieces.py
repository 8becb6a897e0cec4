"""What the positions of a tagged input are: which features they carry, and of what word."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from core.models.encoding import Encoding
from core.studies.attention.passes import Prepared
from core.tasks.features import Feature, carries, feature_spans, is_of_words
from core.tasks.language import TaggedWord


@dataclass(frozen=True)
class TaggedPieces:
    """Of each position of an input: the features that it carries, and two numbers of its word, -1 for none.

    kinds: of the kind of the word: its part of speech, its tag without what inflects it, and whether it is the first of
    its sentence. spellings: of the word, the same for words that differ in case alone.
    """

    carried: Bool[np.ndarray, "feature key"]
    kinds: Int[np.ndarray, " key"]
    spellings: Int[np.ndarray, " key"]


class FeatureFinder:
    """Finds features in inputs; which of them a word carries is remembered by its tags."""

    def __init__(self, features: Sequence[Feature]) -> None:
        self.features = tuple(features)
        self._of_words = [(row, feature) for row, feature in enumerate(self.features) if is_of_words(feature)]
        self._others = [(row, feature) for row, feature in enumerate(self.features) if not is_of_words(feature)]
        self._known: dict[tuple[str, str, str], tuple[int, ...]] = {}

    def find(self, ready: Prepared) -> TaggedPieces:
        """By characters, never by spelling."""
        length = len(ready.encoding)
        kinds, spellings = [-1] * length, [-1] * length
        of_kind, of_spelling = dict[tuple[str, str, bool], int](), dict[str, int]()
        carried = np.zeros((len(self.features), length), dtype=bool)
        rows: list[int] = []
        columns: list[int] = []
        for tagged, pieces in zip(ready.tagged, ready.pieces, strict=True):
            for place, (word, positions) in enumerate(zip(tagged.words, pieces, strict=True)):
                kind = of_kind.setdefault((word.pos, word.tag[:2], place == 0), len(of_kind))
                spelling = of_spelling.setdefault(word.text.lower(), len(of_spelling))
                word_rows = self._rows(word)
                for position in positions:
                    kinds[position], spellings[position] = kind, spelling
                    rows += word_rows
                    columns += [position] * len(word_rows)
        for row, feature in self._others:
            columns += (positions := _positions(feature, ready))
            rows += [row] * len(positions)
        carried[rows, columns] = True
        return TaggedPieces(carried, np.array(kinds), np.array(spellings))

    def _rows(self, word: TaggedWord) -> tuple[int, ...]:
        """Which features a word carries."""
        tags = (word.tag, word.pos, word.dep)
        if (known := self._known.get(tags)) is None:
            self._known[tags] = known = tuple(row for row, feature in self._of_words if carries(feature, word))
        return known


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
