"""What scoring sentences with frame elements leaves. Nothing here needs torch."""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...frames.records import AnnotatedSentence, Spans, links_of
from ...scoring.links import Links

HABITS = ("previous", "next", "first")


@dataclass(frozen=True)
class Scored:
    """A sentence, or one of its links. frame: None if unknown; scores: of each head, layer by layer."""

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
    """Sums over n sentences or links, observed and in the draws of each null. Heads are ordered by layer.

    Attributes:
        habits: attention of each head to the previous, next and first position. *Shape:* (head,) each.
        distance, query, share: sums in every draw, as `packed` writes them, of scores moved to other positions, and of
            the largest residual weight (or share of weight) at other queries.
        query_observed, share_observed: the observed sums. *Shape:* (head,).
        contrasts: mean contrast of each sentence's links; NaN if none can be drawn. *Shape:* (sentence, head).
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
    """Scores of some sentences, and of each unit its draws."""

    sentences: tuple[Scored, ...]
    draws: tuple[Draws, ...]


def contrasts_of(draws: Sequence[Draws]) -> np.ndarray | None:
    """Return the contrasts of all units [sentence, head], or None if they were not measured."""
    parts_drawn = [part.contrasts for part in draws if part.contrasts is not None]
    return np.concatenate(parts_drawn) if parts_drawn else None


def packed(values: np.ndarray) -> str:
    """Return numbers [draw, head] as float32, compressed, in base64."""
    return base64.b64encode(zlib.compress(values.astype("<f4").tobytes(), 1)).decode()


def unpacked(text: str, draws: int) -> np.ndarray:
    """Read what `packed` wrote, as float64 [draw, head]."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f4").reshape(draws, -1).astype(np.float64)


def positions(encoding: Any, spans: Spans) -> tuple[int, ...]:
    """Return the positions of tokens that share a character with any of the spans, in order."""
    return tuple(sorted({piece for start, end in spans for piece in encoding.pieces(start, end)}))


def links_in_pieces(encoding: Any, sentence: AnnotatedSentence, *, core: str = "core_sets") -> Links:
    """Return a sentence's links as token positions; links in a truncated part of the text are excluded."""
    places = (
        (positions(encoding, link.element), positions(encoding, link.target)) for link in links_of(sentence, core=core)
    )
    return tuple((element, target) for element, target in places if element and target)
