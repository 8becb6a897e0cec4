"""From pieces to words: attention to a word is the sum over its pieces, attention from it the mean.

So rows still sum to 1 (Clark et al. section 4.1). A piece that spans two words joins them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..attention import SINK, AttentionMaps
from ..models.encoding import Encoding, Span


@dataclass(frozen=True)
class Word:
    """A word of an input.

    Attributes:
        text: as it stands in the input; of a special token its name.
        positions: of its pieces, from 0.
        sentence: which sentence it is of, 0 or 1; None of a special token.
        span: characters [start, end) that it covers in its sentence; None of a special token.
    """

    text: str
    positions: tuple[int, ...]
    sentence: int | None
    span: Span | None


def words_of(encoding: Encoding, spans: Sequence[Sequence[Span]] | None = None) -> tuple[Word, ...]:
    """Group an input's pieces into words.

    Every position belongs to exactly one word: special tokens and pieces outside all spans stand alone, and words that
    share a piece (do|n't) become one.

    Args:
        spans: characters [start, end) of each sentence's words; None: words end at white space.

    Returns:
        The words in the order of their pieces.
    """
    sources = (encoding.text, encoding.pair or "")
    return tuple(_word(encoding, group, sources) for group in groups_of(encoding, spans))


def groups_of(encoding: Encoding, spans: Sequence[Sequence[Span]] | None = None) -> list[list[int]]:
    """The positions of each word of `words_of`, in order."""
    borders = spans or [spaced_words(source) for source in (encoding.text, encoding.pair or "")]
    edges = [([span[0] for span in border], [span[1] for span in border]) for border in borders]
    groups: list[list[int]] = []
    open_in: int | None = None  # the sentence of the open group, and the characters that its words reach
    open_to = 0
    for position, own in enumerate(encoding.offsets):
        sentence = encoding.sentence[position]
        reach = None if own is None or sentence is None else _reach(*edges[sentence], own)
        if reach is not None and sentence == open_in and reach[0] < open_to:
            groups[-1].append(position)
            open_to = max(open_to, reach[1])
        else:
            groups.append([position])
            open_in, open_to = (None, 0) if reach is None else (sentence, reach[1])
    return groups


def _reach(starts: list[int], ends: list[int], span: Span) -> Span:
    """Characters of all words that a piece touches (words in order); its own characters when it touches none."""
    first, last = bisect_right(ends, span[0]), bisect_left(starts, span[1])
    return (starts[first], max(ends[first:last])) if first < last else span


def _word(encoding: Encoding, group: list[int], sources: tuple[str, str]) -> Word:
    sentence = encoding.sentence[group[0]]
    spans = [encoding.offsets[k] for k in group]
    if sentence is None or spans[0] is None:
        return Word(encoding.tokens[group[0]], tuple(group), None, None)
    start, end = min(span[0] for span in spans if span), max(span[1] for span in spans if span)
    return Word(sources[sentence][start:end] or encoding.tokens[group[0]], tuple(group), sentence, (start, end))


def spaced_words(text: str) -> list[Span]:
    """Characters [start, end) of the white-space separated words of a text."""
    spans, start = [], None
    for position, character in enumerate(text + " "):
        if character.isspace():
            if start is not None:
                spans.append((start, position))
            start = None
        elif start is None:
            start = position
    return spans


def word_weights(
    weights: Float[np.ndarray, "*heads query key"], words: Sequence[Word], keys: Sequence[Word] | None = None
) -> Float[np.ndarray, "*heads word key_word"]:
    """Sum over each word's key pieces, mean over its query pieces.

    Args:
        weights: between pieces; rows sum to 1.
        words: of the queries, and of the keys too unless `keys` are given; every piece is of one of them.
        keys: words of the keys where they are another text's. A key after the last piece (a sink) stays as it is.

    Returns:
        Rows still sum to 1.
    """
    membership = _membership(words, weights.shape[-2], weights.dtype)
    other = membership if keys is None else _membership(keys, weights.shape[-1], weights.dtype)
    beyond = weights.shape[-1] - len(other)
    if beyond > 0:
        other = np.block([[other, np.zeros((len(other), beyond))], [np.zeros((beyond, len(other.T))), np.eye(beyond)]])
    return np.einsum("...qk,qw,kv->...wv", weights, membership / membership.sum(0, keepdims=True), other, optimize=True)


def _membership(words: Sequence[Word], length: int, dtype: np.dtype) -> Float[np.ndarray, "piece word"]:
    """1 where a piece is of a word."""
    membership = np.zeros((length, len(words)), dtype=dtype)
    for number, word in enumerate(words):
        membership[list(word.positions), number] = 1
    return membership


def special_positions_of(encoding: Encoding, *, words: bool = False) -> tuple[int | None, tuple[int, ...]]:
    """Where [CLS] or BOS and the separators stand among the pieces or, after `word_maps`, the words of an input."""
    groups = groups_of(encoding) if words else [[k] for k in range(len(encoding))]
    firsts = [k for k, pieces in enumerate(groups) if encoding.first is not None and encoding.first in pieces]
    separators = tuple(k for k, pieces in enumerate(groups) if set(pieces) & set(encoding.separators))
    return firsts[0] if firsts else None, separators


def word_maps(maps: AttentionMaps, encoding: Encoding) -> AttentionMaps:
    """The maps between words instead of pieces; of an encoder-decoder the decoder's words are those of its target."""
    target = encoding.target if maps.part in ("decoder", "cross") else None
    words = words_of(encoding) if target is None else words_of(target)
    keys = words_of(encoding) if maps.part == "cross" else None
    tokens = tuple(word.text for word in words)
    if maps.sink:
        key_tokens: tuple[str, ...] | None = (*tokens, SINK)
    else:
        key_tokens = None if keys is None else tuple(word.text for word in keys)
    weights = word_weights(maps.weights, words, keys).astype(np.float32)
    segments = tuple(maps.segments[word.positions[0]] for word in words)
    return AttentionMaps(weights, tokens, segments, maps.causal, key_tokens, maps.part, attending=maps.attending)


def shares(encoding: Encoding, spans: Sequence[Span]) -> Float[np.ndarray, "piece word"]:
    """How much of each piece belongs to each word of a gold sentence.

    Times a map's keys, and its columns scaled to 1 times the queries, it gives what `word_weights` gives where no piece
    is shared.

    Returns:
        1, or a part where words share a piece (do|n't); rows sum to 1, or to 0 of a piece in no word. A word without a
        piece (cut off) has a column of 0.
    """
    overlaps = np.zeros((len(encoding), len(spans)))
    for word, (start, end) in enumerate(spans):
        overlaps[list(encoding.pieces(start, end)), word] = 1
    return overlaps / np.maximum(overlaps.sum(1, keepdims=True), 1)
