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
    """A sentence, or one of its links.

    Attributes:
        frame: name of the frame; None where nobody said.
        scores: of each head, layer by layer. *Shape:* (head,).
    """

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
    """Sums over n sentences or links, true and in the draws of each null. Heads come layer by layer.

    Attributes:
        causal: whether queries see only keys up to their own.
        habits: sums of what each head gives to the previous, next and first place. *Shape:* (head,) each.
        distance: sums of scores in every draw of the null of places, as `packed` writes them.
        query_observed: true sums of the largest residual weight at the links' own queries. *Shape:* (head,).
        query: the same sums in every draw of the null of queries, as `packed` writes them.
        share_observed: `query_observed` of shares of weight. *Shape:* (head,).
        share: `query` of shares of weight.
        contrasts: mean contrast of each one's links; NaN where none can be drawn, None of an earlier run. *Shape:*
            (sentence, head).
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
    """The contrasts of all units.

    Args:
        draws: of each unit.

    Returns:
        One after another; None where none were measured (an earlier run). *Shape:* (sentence, head).
    """
    parts_drawn = [part.contrasts for part in draws if part.contrasts is not None]
    return np.concatenate(parts_drawn) if parts_drawn else None


def packed(values: np.ndarray) -> str:
    """Numbers as text: float32, compressed, in base64; a third of its size.

    Args:
        values: written row by row. *Shape:* (draw, head).

    Returns:
        What `unpacked` reads.
    """
    return base64.b64encode(zlib.compress(values.astype("<f4").tobytes(), 1)).decode()


def unpacked(text: str, draws: int) -> np.ndarray:
    """Read what `packed` wrote.

    Args:
        text: in base64.

    Returns:
        *Shape:* (draw, head), float64.
    """
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f4").reshape(draws, -1).astype(np.float64)


def positions(encoding: Any, spans: Spans) -> tuple[int, ...]:
    """Pieces that share a character with any of the spans, in order. (The one way from spans to pieces.)"""
    return tuple(sorted({piece for start, end in spans for piece in encoding.pieces(start, end)}))


def links_in_pieces(encoding: Any, sentence: AnnotatedSentence, *, core: str = "core_sets") -> Links:
    """A sentence's links as positions; a link that was cut off with the end of the text is left out."""
    places = (
        (positions(encoding, link.element), positions(encoding, link.target)) for link in links_of(sentence, core=core)
    )
    return tuple((element, target) for element, target in places if element and target)
