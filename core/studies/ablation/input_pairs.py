"""Comparison of two inputs: aligned words, attention maps, and aligned positions for patching."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...capture.outputs import Alignment
from ...capture.running import capture
from ...capture.words import Word, word_weights, words_of
from ...errors import InputError
from ...scoring.alignment import MapChange, WordAlignment, align_words, map_change

if TYPE_CHECKING:
    from torch import Tensor

    from ...models.checkpoint import Checkpoint
    from ...models.encoding import Encoding

Texts = tuple[str, str | None]


@dataclass(frozen=True)
class Beside:
    """Two inputs with aligned words, their attention maps between words, and the change between the two maps."""

    words: tuple[tuple[Word, ...], tuple[Word, ...]]
    alignment: WordAlignment
    maps: tuple[np.ndarray, np.ndarray]
    change: MapChange


def word_alignment(first: "Encoding", second: "Encoding") -> tuple[tuple[tuple[Word, ...], ...], WordAlignment]:
    """Align the words of two inputs, including special tokens. Return the words and the alignment."""
    words = tuple(words_of(encoding) for encoding in (first, second))
    texts = [[word.text for word in side] for side in words]
    marks = ([word.sentence for word in words[0]], [word.sentence for word in words[1]])
    return words, align_words(texts[0], texts[1], marks)


def positions(first: "Encoding", second: "Encoding") -> Alignment:
    """Align the token positions of two inputs. Words with different numbers of tokens are aligned at the last token."""
    words, alignment = word_alignment(first, second)
    pairs: list[tuple[int, int]] = []
    for first_word, second_word in alignment.pairs:
        theirs, own_positions = words[0][first_word].positions, words[1][second_word].positions
        if len(theirs) >= len(own_positions):
            pairs += list(zip(theirs[len(theirs) - len(own_positions) :], own_positions, strict=True))
        else:
            pairs += [
                (theirs[max(0, k - len(own_positions) + len(theirs))], position)
                for k, position in enumerate(own_positions)
            ]
    return Alignment(tuple(pairs))


def aligned(
    checkpoint: "Checkpoint", firsts: Sequence[Texts], seconds: Sequence[Texts]
) -> "tuple[tuple[Encoding, ...], tuple[Encoding, ...], tuple[Alignment, ...]]":
    """Encode pairs of texts and align the token positions of each pair."""
    encodings = [tuple(checkpoint.encode(*texts) for texts in side) for side in (firsts, seconds)]
    return encodings[0], encodings[1], tuple(positions(a, b) for a, b in zip(*encodings, strict=True))


@dataclass(frozen=True)
class LogitDifference:
    """The logit of one class minus that of another, for inputs A (`first`) and B (`second`). `choices` are the two
    classes. In a regression model, the score replaces the logit difference, and `choices` is (0,)."""

    choices: tuple[int, ...]
    first: float
    second: float

    def of(self, logits: "Tensor") -> "Tensor":
        if len(self.choices) == 1:
            return logits[..., 0]
        return logits[..., self.choices[0]] - logits[..., self.choices[1]]

    def whole(self) -> float:
        """Return the logit difference on A minus that on B, the denominator for normalised effects. Raises InputError
        if the result is near 0."""
        if abs(self.first - self.second) < 1e-3:
            raise InputError(
                "The logit differences of the two inputs must differ; they differ by only "
                f"{abs(self.first - self.second):.1e}. Choose inputs with different predictions."
            )
        return self.first - self.second


def logit_difference(first: "Tensor", second: "Tensor") -> LogitDifference:
    """Compute, for inputs A and B, the logit of the class predicted for A minus that of the class predicted for B. If
    both classes are the same, the second most likely class for A replaces the class for B."""
    a, b = first[0], second[0]
    if len(a) == 1:
        return LogitDifference((0,), float(a[0]), float(b[0]))
    best, other = int(a.argmax()), int(b.argmax())
    if best == other:
        other = int(a.topk(2).indices[1])
    return LogitDifference((best, other), float(a[best] - a[other]), float(b[best] - b[other]))


def beside(checkpoint: "Checkpoint", first: "Encoding", second: "Encoding") -> Beside:
    """Compare the attention maps of two inputs word by word. Raises InputError if the inputs have no word in common."""
    words, alignment = word_alignment(first, second)
    maps = tuple(
        word_weights(capture(checkpoint, encoding).weights, side)
        for encoding, side in zip((first, second), words, strict=True)
    )
    return Beside((words[0], words[1]), alignment, (maps[0], maps[1]), map_change(maps[0], maps[1], alignment))
