"""A tokenised input: tokens, their characters, their sentence, and truncation."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from unicodedata import category

from ..errors import InputError

# ---------------------------------------------------------------- where a classification head may read


POOLINGS = ("auto", "cls", "sep", "mean", "last")


# ----------------------------------------------------------------


Span = tuple[int, int]
UNKNOWN = frozenset({"[UNK]", "<unk>"})


@dataclass(frozen=True)
class Encoding:
    """A tokenized sentence or pair of sentences. Every tuple except `separators` has one entry per token.

    Attributes:
        pair: the second sentence, or None.
        segments: token types; all 0 if the model has none.
        offsets: characters [start, end) in the sentence of the token; None for special tokens.
        sentence: 0, 1, or None for special tokens.
        first: position of [CLS] or BOS, or None.
        separators: positions of [SEP], or of the end-of-text token between sentences.
        target: input of the decoder of an encoder-decoder, with its start token; None for other models.
    """

    text: str
    pair: str | None
    ids: tuple[int, ...]
    segments: tuple[int, ...]
    tokens: tuple[str, ...]
    offsets: tuple[Span | None, ...]
    sentence: tuple[int | None, ...]
    first: int | None
    separators: tuple[int, ...]
    cut: int = 0
    target: "Encoding | None" = None

    @property
    def lengths(self) -> tuple[int, int]:
        """Return the numbers of tokens in the input and in its target text (0 if there is no target)."""
        return len(self), len(self.target) if self.target is not None else 0

    def __len__(self) -> int:
        return len(self.ids)

    def up_to(self, length: int) -> "Encoding":
        if length >= len(self):
            return self
        names = ("ids", "segments", "tokens", "offsets", "sentence")
        parts = {name: getattr(self, name)[:length] for name in names}
        return replace(self, **parts, separators=tuple(k for k in self.separators if k < length))

    def pieces(self, start: int, end: int, sentence: int = 0) -> tuple[int, ...]:
        """Return the positions of tokens that overlap the characters [start, end) of the first (0) or second (1)
        sentence.

        Raises InputError if the span is outside the text.
        """
        source = self.text if sentence == 0 else self.pair or ""
        if not 0 <= start < end <= len(source):
            raise InputError(
                f"A span must lie inside its text of {len(source)} characters and not be empty; got "
                f"[{start}, {end}). Mark the span again."
            )
        positions, starts, ends = self._by_sentence[sentence]
        return positions[bisect_right(ends, start) : bisect_left(starts, end)]

    def pieces_of(self, spans: Sequence[Span], sentence: int = 0) -> list[tuple[int, ...]]:
        """Return the positions of tokens for each of several character spans in a sentence."""
        length = len(self.text if sentence == 0 else self.pair or "")
        if not all(0 <= start < end <= length for start, end in spans):
            return [self.pieces(*span, sentence) for span in spans]  # names the one that is not
        positions, starts, ends = self._by_sentence[sentence]
        return [positions[bisect_right(ends, start) : bisect_left(starts, end)] for start, end in spans]

    @cached_property
    def _by_sentence(self) -> list[tuple[tuple[int, ...], list[int], list[int]]]:
        """Ascending positions, starts and ends of each sentence's tokens."""
        groups = []
        for sentence in (0, 1):
            own = [(k, span) for k, span in enumerate(self.offsets) if span and self.sentence[k] == sentence]
            groups.append((tuple(k for k, _ in own), [span[0] for _, span in own], [span[1] for _, span in own]))
        return groups

    @property
    def punctuation(self) -> tuple[int, ...]:
        pieces = {k: self.tokens[k].strip("Ġ▁# ") for k in self.ordinary}
        return tuple(k for k, piece in pieces.items() if piece and all(category(sign)[0] == "P" for sign in piece))

    @property
    def unknown(self) -> float:
        """Return the fraction of text tokens that are unknown ([UNK]), from 0 to 1."""
        pieces = [self.tokens[k] for k in self.ordinary]
        return sum(piece in UNKNOWN for piece in pieces) / max(len(pieces), 1)

    @property
    def ordinary(self) -> tuple[int, ...]:
        return tuple(k for k, span in enumerate(self.offsets) if span is not None)
