"""Partial results of scoring sentences with frame elements. Does not import torch."""

import base64
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import scoring
from ...frames.records import AnnotatedSentence, Spans, links_of
from ...scoring.links import Links

HABITS = ("previous", "next", "first")


@dataclass(frozen=True)
class Scored:
    """The scores of all heads for one sentence, or for one of its frame links."""

    id: str
    text: str
    frame: str | None
    target: str
    elements: list[str]
    before: int
    links: int
    scores: np.ndarray


@dataclass(frozen=True)
class Draws:
    """Sums of frame-link scores over n sentences or links: as observed, and in random draws from each null model.

    Attributes:
        habits: attention of each head to the previous, next and first position. *Shape:* (head,) each.
        distance, query, share: sums in every draw, in the form of `packed`: of scores moved to other positions, and of
            the largest residual weight (or share of weight) at other queries.
        query_observed, share_observed: the observed sums. *Shape:* (head,).
        contrasts: mean contrast of the links of each sentence; NaN if none can be drawn. *Shape:* (sentence, head).
    """

    n: int
    draws: int
    layers: int
    heads: int
    causal: bool
    habits: dict[str, np.ndarray]
    movable: int
    exchangeable: int
    comparable: int
    distance: str
    exchange: str
    query_observed: np.ndarray
    query: str
    share_observed: np.ndarray
    share: str
    fixed: dict[str, float]
    contrasts: np.ndarray | None = None


@dataclass(frozen=True)
class Scores:
    """The scores of heads on frame links, and the sums of scores in random draws from the null models."""

    sentences: tuple[Scored, ...]
    draws: tuple[Draws, ...]


def verdict_of(partial: Scores, heads: Any = slice(None)) -> "scoring.link_tests.LinkTest":
    """Test the attention of heads along frame links against the four null models, for all heads or for a selection."""
    draws = partial.draws
    distance, exchange, query, share = (
        np.sum([unpacked(getattr(part, name), part.draws)[:, heads] for part in draws], axis=0)
        for name in ("distance", "exchange", "query", "share")
    )
    query_null = scoring.link_tests.Null(np.sum([part.query_observed[heads] for part in draws], axis=0), query)
    share_null = scoring.link_tests.Null(np.sum([part.share_observed[heads] for part in draws], axis=0), share)
    scores = np.array([scored.scores for scored in partial.sentences])[:, heads]
    drawn = [part.contrasts for part in draws if part.contrasts is not None]
    contrasts = np.concatenate(drawn)[:, heads] if drawn else None
    return scoring.link_tests.verdict(scores, distance, exchange, query_null, share_null, contrasts)


def packed(values: np.ndarray) -> str:
    """Encode an array [draw, head] as compressed float32 numbers in base64."""
    return base64.b64encode(zlib.compress(values.astype("<f4").tobytes(), 1)).decode()


def unpacked(text: str, draws: int) -> np.ndarray:
    """Decode text that `packed` has written. Return a float64 array of shape [draw, head]."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f4").reshape(draws, -1).astype(np.float64)


def positions(encoding: Any, spans: Spans) -> tuple[int, ...]:
    """Return the positions of the tokens that overlap any of the character spans, in order."""
    return tuple(sorted({piece for start, end in spans for piece in encoding.pieces(start, end)}))


def links_in_pieces(encoding: Any, sentence: AnnotatedSentence, *, core: str = "core_sets") -> Links:
    """Return the frame links of a sentence as token positions, without links in truncated text."""
    places = (
        (positions(encoding, link.element), positions(encoding, link.target)) for link in links_of(sentence, core=core)
    )
    return tuple((element, target) for element, target in places if element and target)
