"""One input as a model sees it: pieces, their characters, which sentence they belong to, what was cut."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..errors import InputError

# ---------------------------------------------------------------- where a classification head may read


POOLINGS = ("auto", "cls", "sep", "mean", "last")


# ----------------------------------------------------------------


Span = tuple[int, int]
UNKNOWN = frozenset({"[UNK]", "<unk>"})


@dataclass(frozen=True)
class Encoding:
    """Pieces of a sentence or pair; every tuple but `separators` has one entry a position.

    Attributes:
        pair: the second sentence, or None.
        segments: token types fed to the model; all 0 where it has none.
        offsets: characters [start, end) in the sentence the piece belongs to; None for special tokens.
        sentence: 0, 1, or None for special tokens.
        first: position of [CLS] or BOS, or None.
        separators: positions of [SEP], or of the end-of-text token between sentences.
        target: what an encoder-decoder's decoder reads beside it, from its start token on; None of other models.
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
        """How many positions it and its target (0 without one) have: inputs equal in both may share a batch."""
        return len(self), len(self.target) if self.target is not None else 0

    def __len__(self) -> int:
        return len(self.ids)

    def up_to(self, length: int) -> "Encoding":
        """The first `length` positions alone; itself where it is no longer."""
        if length >= len(self):
            return self
        names = ("ids", "segments", "tokens", "offsets", "sentence")
        parts = {name: getattr(self, name)[:length] for name in names}
        return replace(self, **parts, separators=tuple(k for k in self.separators if k < length))

    def pieces(self, start: int, end: int, sentence: int = 0) -> tuple[int, ...]:
        """Positions whose characters overlap [start, end) of a sentence (0 the first, 1 the second).

        Raises InputError when the span lies outside the text. Pieces that were cut are not returned.
        """
        source = self.text if sentence == 0 else self.pair or ""
        if not 0 <= start < end <= len(source):
            raise InputError(
                f"A span must lie inside its text of {len(source)} characters and not be empty; seen "
                f"[{start}, {end}): mark it again."
            )
        positions, starts, ends = self._by_sentence[sentence]
        return positions[bisect_right(ends, start) : bisect_left(starts, end)]

    def pieces_of(self, spans: Sequence[Span], sentence: int = 0) -> list[tuple[int, ...]]:
        """`pieces` of several spans, in their order.

        Raises InputError when a span lies outside the text.
        """
        length = len(self.text if sentence == 0 else self.pair or "")
        if not all(0 <= start < end <= length for start, end in spans):
            return [self.pieces(*span, sentence) for span in spans]  # names the one that is not
        positions, starts, ends = self._by_sentence[sentence]
        return [positions[bisect_right(ends, start) : bisect_left(starts, end)] for start, end in spans]

    @cached_property
    def _by_sentence(self) -> list[tuple[tuple[int, ...], list[int], list[int]]]:
        """Positions of each sentence's pieces, where they start and where they end; all ascend."""
        groups = []
        for sentence in (0, 1):
            own = [(k, span) for k, span in enumerate(self.offsets) if span and self.sentence[k] == sentence]
            groups.append((tuple(k for k, _ in own), [span[0] for _, span in own], [span[1] for _, span in own]))
        return groups

    @property
    def unknown(self) -> float:
        """Share of the text's pieces that the tokenizer does not know ([UNK]), 0 to 1; above a half maps say little."""
        pieces = [self.tokens[k] for k in self.ordinary]
        return sum(piece in UNKNOWN for piece in pieces) / max(len(pieces), 1)

    @property
    def ordinary(self) -> tuple[int, ...]:
        """Positions of pieces of the text (no [CLS], [SEP], BOS)."""
        return tuple(k for k, span in enumerate(self.offsets) if span is not None)
