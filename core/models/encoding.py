"""A tokenised input (tokens, their characters, their sentence, truncation), and the readable text of tokens."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from unicodedata import category

from ..errors import InputError

POOLINGS = ("auto", "cls", "sep", "mean", "last")  # where a classification head may read
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
        separators: positions of [SEP], or of end-of-text between sentences; in a chat, of special tokens but the first.
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
        """Return the number of tokens in the input and the number in its target text (0 without a target)."""
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
        """Return the positions of tokens that overlap the characters [start, end) in sentence 0 (first) or 1 (second).

        Raises InputError if the span is outside the text.
        """
        source = self.text if sentence == 0 else self.pair or ""
        if not 0 <= start < end <= len(source):
            raise InputError(
                f"A span must lie inside its text of {len(source)} characters and must not be empty; got [{start}, "
                f"{end}). Select the span again."
            )
        positions, starts, ends = self._by_sentence[sentence]
        return positions[bisect_right(ends, start) : bisect_left(starts, end)]

    def pieces_of(self, spans: Sequence[Span], sentence: int = 0) -> list[tuple[int, ...]]:
        """Return the token positions for each of several character spans in a sentence."""
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


# ---------------------------------------------------------------- readable text of tokens


_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")  # a byte of a SentencePiece tokenizer
_LOST = "\ufffd"


def spelled(tokenizer: Any, ids: list[int]) -> list[str]:
    """Return the readable text of each token. Byte-level tokens are decoded, and a leading space is shown as `·`.

    A character that several tokens share is written at the first of them, and with its part at the others: "我",
    "我[2/3]", "我[3/3]". Bytes without a character are written as "<0xE6>".
    """
    pieces = tokenizer.convert_ids_to_tokens(ids)
    special = set(tokenizer.all_special_ids)
    ordinary = [token_id not in special for token_id in ids]
    if any("Ġ" in piece or "Ċ" in piece for piece in pieces) or _is_byte_level(tokenizer):
        decoded = [
            tokenizer.decode([token_id]).replace(" ", "·") or piece if own else piece
            for token_id, piece, own in zip(ids, pieces, ordinary, strict=True)
        ]
        as_bytes = [_bytes_of(piece) if own else None for piece, own in zip(pieces, ordinary, strict=True)]
    else:
        decoded, as_bytes = pieces, [None] * len(pieces)
        for k, piece in enumerate(pieces):
            if ordinary[k] and (byte := _BYTE.fullmatch(piece)):
                as_bytes[k] = bytes([int(byte[1], 16)])
    if not any(
        own is not None and (_LOST in text or _BYTE.fullmatch(text))
        for own, text in zip(as_bytes, decoded, strict=True)
    ):
        return decoded
    spelled_pieces, start = list(decoded), 0
    while start < len(decoded):
        if as_bytes[start] is None:
            start += 1
            continue
        stop = start
        while stop < len(decoded) and as_bytes[stop] is not None:
            stop += 1
        spelled_pieces[start:stop] = _spelled_run([own or b"" for own in as_bytes[start:stop]])
        start = stop
    return spelled_pieces


def _spelled_run(parts: list[bytes]) -> list[str]:
    """Each part of a run of bytes as text."""
    owner = [number for number, part in enumerate(parts) for _ in part]
    whole, position = b"".join(parts), 0
    texts = [""] * len(parts)
    while position < len(whole):
        size = next((size for size in (1, 2, 3, 4) if _decodes(whole[position : position + size])), 0)
        if not size:
            texts[owner[position]] += f"<0x{whole[position]:02X}>"
            position += 1
            continue
        letter = whole[position : position + size].decode()
        owners = sorted(set(owner[position : position + size]))
        for part, number in enumerate(owners, 1):
            texts[number] += letter if part == 1 else f"{letter}[{part}/{len(owners)}]"
        position += size
    return [text.replace(" ", "·") for text in texts]


def _decodes(some: bytes) -> bool:
    try:
        return len(some.decode()) == 1
    except UnicodeDecodeError:
        return False


_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
_BYTES = {  # the byte for each letter of a byte-level vocabulary (GPT-2's table)
    **{chr(byte): byte for byte in _PRINTABLE},
    **{chr(256 + number): byte for number, byte in enumerate(_OTHERS)},
}


def _bytes_of(piece: str) -> bytes | None:
    """Return the bytes of a byte-level token; None for other spellings."""
    known = [_BYTES.get(letter) for letter in piece]
    return None if None in known else bytes(byte for byte in known if byte is not None)


def _is_byte_level(tokenizer: Any) -> bool:
    return "ByteLevel" in repr(getattr(tokenizer.backend_tokenizer, "decoder", None))
