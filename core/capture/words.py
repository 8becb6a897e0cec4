"""Attention between words: attention to a word is the sum over its tokens, attention from a word the mean.

Rows still sum to 1 (Clark et al. section 4.1). A token that spans two words joins them.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..attention import SINK, AttentionMaps
from ..map_sums import keys_as_values
from ..models.encoding import Encoding, Span


@dataclass(frozen=True)
class Word:
    """A word of an input, with its tokens.

    Attributes:
        text: as in the input; for a special token its name.
        sentence: 0 or 1; None for a special token.
        span: characters [start, end) in its sentence; None for a special token.
    """

    text: str
    positions: tuple[int, ...]
    sentence: int | None
    span: Span | None


def words_of(encoding: Encoding, spans: Sequence[Sequence[Span]] | None = None) -> tuple[Word, ...]:
    """Group the tokens of an input into words, in order, so that every position belongs to exactly one word.

    `spans` has the characters [start, end) of the words of each sentence; None: white space separates words. Special
    tokens and tokens outside all spans form separate words, and words that share a token (do|n't) are joined.
    """
    sources = (encoding.text, encoding.pair or "")
    return tuple(_word(encoding, group, sources) for group in groups_of(encoding, spans))


def groups_of(encoding: Encoding, spans: Sequence[Sequence[Span]] | None = None) -> list[list[int]]:
    """Return the token positions of each word. By default, words are separated by white space; otherwise, `spans`
    defines them."""
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
    """Return the span of all words that a token overlaps, or the token's own span if there are none."""
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
    """Return the spans [start, end) of the whitespace-separated words of a text."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def word_weights(
    weights: Float[np.ndarray, "*heads query key"], words: Sequence[Word], keys: Sequence[Word] | None = None
) -> Float[np.ndarray, "*heads word key_word"]:
    """Sum attention weights over the tokens of each key word, and average them over the tokens of each query word. Rows
    still sum to 1.

    `words` are those of queries, and of keys unless `keys` is given; they cover every token. A key after the last token
    (a sink) is unchanged.
    """
    membership = keys_as_values([word.positions for word in words], weights.shape[-2]).astype(weights.dtype)
    other = membership
    if keys is not None:
        other = keys_as_values([word.positions for word in keys], weights.shape[-1]).astype(weights.dtype)
    beyond = weights.shape[-1] - len(other)
    if beyond > 0:
        other = np.block([[other, np.zeros((len(other), beyond))], [np.zeros((beyond, len(other.T))), np.eye(beyond)]])
    return np.einsum("...qk,qw,kv->...wv", weights, membership / membership.sum(0, keepdims=True), other, optimize=True)


def special_positions_of(encoding: Encoding, *, words: bool = False) -> tuple[int | None, tuple[int, ...]]:
    """Return the position of the [CLS] or BOS token (or None) and the positions of separators. Positions count tokens
    or, if `words` is True, words."""
    groups = groups_of(encoding) if words else [[k] for k in range(len(encoding))]
    firsts = [k for k, pieces in enumerate(groups) if encoding.first is not None and encoding.first in pieces]
    separators = tuple(k for k, pieces in enumerate(groups) if set(pieces) & set(encoding.separators))
    return firsts[0] if firsts else None, separators


def word_maps(maps: AttentionMaps, encoding: Encoding) -> AttentionMaps:
    """Convert attention maps between tokens to maps between words. In the decoder of an encoder-decoder, the queries
    are words of the target text."""
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
    """Return what fraction of each token in an input belongs to each word of a gold sentence.

    It is 1, or less if words share a token (do|n't); 0 for tokens outside words, and in columns of truncated words. If
    no token is shared, it is equivalent to `word_weights`: apply it to keys and, with columns scaled to 1, to queries.
    """
    overlaps = np.zeros((len(encoding), len(spans)))
    for word, (start, end) in enumerate(spans):
        overlaps[list(encoding.pieces(start, end)), word] = 1
    return overlaps / np.maximum(overlaps.sum(1, keepdims=True), 1)
