"""Panes of the map workbench: stacks of maps with their scores, and the header of their binary data."""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..attention import PARTS, SINK, AttentionMaps, Head, sight_sentence
from ..scoring.registry import HEAD_SCORES, even_scores, map_scores
from .payload import as_bytes, difference_as_bytes

SEEN = {  # verb phrase for each score: what a head attends to
    "previous": "attends to the previous token",
    "next": "attends to the next token",
    "first": "attends to the first token",
    "separator": "attends to the separators",
}


@dataclass(frozen=True)
class Pane:
    """One stack of attention maps in the interactive viewer.

    Attributes:
        tokens: text of each query; with `block`, of each row.
        weights: [layer, head, query, key] packed by `as_bytes`; differences by `difference_as_bytes`.
        causal: whether queries see only keys up to themselves.
        signed: whether these are differences.
        scores: by name, (layer, head) each; None: not shown.
        even: the same scores for uniform attention over visible keys; (1,) for all layers, or (layer,).
        block: number of tokens per row and column; the largest weight is shown.
        key_tokens: as in AttentionMaps; with `block`, one for each column.
        named: name of the head if the pane shows only its map or a part of it, otherwise "".
        whole: whether each map belongs to a whole layer.
        starts: number of tokens before the first query and key, for a part of a map.
        attending: as in AttentionMaps; the maps of other layers are not drawn.
    """

    title: str
    layers: int
    heads: int
    tokens: tuple[str, ...]
    weights: bytes
    causal: bool = False
    signed: bool = False
    scores: Mapping[str, np.ndarray] | None = None
    even: Mapping[str, np.ndarray] | None = None
    block: int = 1
    key_tokens: tuple[str, ...] | None = None
    part: str = ""
    windows: tuple[int | None, ...] = ()
    named: str = ""
    whole: bool = False
    starts: tuple[int, int] = (0, 0)
    attending: tuple[int, ...] = ()

    @property
    def sees(self) -> str:
        """Return a caption that states which keys a query can attend to."""
        return sight_sentence(self.part, self.keys, self.windows, causal=self.causal, sink=self.keys[-1:] == (SINK,))

    @property
    def keys(self) -> tuple[str, ...]:
        return self.tokens if self.key_tokens is None else self.key_tokens

    def header(self, offset: int) -> dict[str, Any]:
        """Return the metadata of these attention maps for the browser. `offset` is the index of their first weight."""
        return {
            "title": self.title,
            "layers": self.layers,
            "heads": self.heads,
            "length": len(self.tokens),
            "tokens": list(self.tokens),
            "causal": self.causal,
            "signed": self.signed,
            "block": self.block,
            "keyTokens": None if self.key_tokens is None else list(self.key_tokens),
            "named": self.named,
            "starts": list(self.starts),
            "whole": self.whole,
            "part": PARTS.get(self.part, ""),
            "windows": list(self.windows),
            "attending": list(self.attending),
            "offset": offset,
            "scores": {
                name: self._score(name, values)
                for name, values in (self.scores or {}).items()
                if not np.isnan(values).all()
            },
        }

    def _score(self, name: str, values: np.ndarray) -> dict[str, Any]:
        even = (self.even or {}).get(name, np.zeros(1))
        return {
            "label": HEAD_SCORES[name].label,
            "meaning": HEAD_SCORES[name].formula,
            "seen": SEEN.get(name, ""),
            "even": [round(float(value), 5) for value in np.nan_to_num(even)],
            "values": [None if math.isnan(value) else round(float(value), 5) for value in values.ravel()],
        }


def scored_pane(
    title: str,
    maps: AttentionMaps,
    *,
    first: int | None,
    separators: Sequence[int],
    weights: bytes | None = None,
    scores: Mapping[str, np.ndarray] | None = None,
) -> Pane:
    """Create the part of a page that shows all attention maps for one input, with a score for each head.

    `first` is the position of [CLS] or the start token, or None. `weights` (packed by `as_bytes`) and `scores` (layer,
    head) are computed if not given.
    """
    scores = scores or map_scores(maps, first=first, separators=separators)
    return Pane(
        title,
        maps.layers,
        maps.heads,
        maps.tokens,
        as_bytes(maps.weights) if weights is None else weights,
        maps.causal,
        scores=scores,
        even=even_scores(maps, first=first, separators=separators),
        key_tokens=maps.key_tokens,
        part=maps.part,
        windows=maps.windows,
        attending=maps.attending,
    )


def difference(first: Pane, second: Pane, weights: tuple[np.ndarray, np.ndarray]) -> Pane | str:
    """Subtract the maps of `first` from those of `second`. Only layers in which both have attention are compared. If
    the maps cannot be compared, return the reason.

    `weights` are those of the first and the second, (layer, head, query, key).
    """
    if (first.layers, first.heads) != (second.layers, second.heads):
        return (
            f"No difference can be shown between models of different sizes: {first.title} has {first.layers} layers of "
            f"{first.heads} heads, and {second.title} has {second.layers} of {second.heads}."
        )
    for one, other in ((first.tokens, second.tokens), (first.key_tokens or (), second.key_tokens or ())):
        if len(one) != len(other):
            return (
                f"No difference can be shown between maps of different lengths: {first.title} has {len(one)} tokens, "
                f"and {second.title} has {len(other)}."
            )
    shared = sorted({*(first.attending or range(first.layers))} & {*(second.attending or range(second.layers))})
    if not shared:
        return f"No difference can be shown: no layer has attention in both {first.title} and {second.title}."
    attending = tuple(shared) if first.attending or second.attending else ()
    tokens = tuple(a if a == b else f"{a} / {b}" for a, b in zip(first.tokens, second.tokens, strict=True))
    title = f"{second.title} − {first.title}"
    bytes_of = difference_as_bytes(weights[1], weights[0])
    return replace(first, title=title, tokens=tokens, weights=bytes_of, signed=True, scores=None, attending=attending)


def telling_head(scores: Mapping[str, np.ndarray], part: str = "") -> str:
    """Return the name of the most distinctive head, such as "L2H2". Its map is enlarged by default.

    This head attends most to a neighbour, if with more than half of its weight; otherwise it attends most to any kind
    of position; L1H1 without such scores. `scores` are (layer, head) by name.
    """
    known = {name: values for name, values in scores.items() if name in SEEN and not np.isnan(values).all()}
    if not known:
        return str(Head(0, 0, part))
    most = {name: float(np.nanmax(values)) for name, values in known.items()}
    lines = [name for name in ("previous", "next") if most.get(name, 0) > 0.5]
    best = max(lines or most, key=lambda name: most[name])
    layer, head = np.unravel_index(int(np.nanargmax(known[best])), known[best].shape)
    return str(Head(int(layer), int(head), part))


LONG = 64  # tokens from which on most weights are too small to be seen on a scale from 0 to 1; as in heads.js


def usual_scale(panes: Sequence[Pane]) -> str:
    """Return the default colour scale: "own" (scaled per map) for long inputs, otherwise "absolute"."""
    longest = max(max(len(pane.tokens), len(pane.key_tokens or ())) for pane in panes)
    return "own" if longest >= LONG else "absolute"


def header_of(
    panes: Sequence[Pane], *, caption: str, head: str = "none", opened: Mapping[str, Any] | None = None, note: str = ""
) -> dict[str, Any]:
    """Create the header of the binary map data for the browser. Its field "id" is a hash of the content.

    The weights of all maps follow in order. `head` is enlarged by default, and `note` is a sentence above the maps.
    """
    offsets = np.cumsum([0, *(len(pane.weights) // 2 for pane in panes)])
    header: dict[str, Any] = {
        "panes": [pane.header(int(offset)) for pane, offset in zip(panes, offsets, strict=False)],
        "caption": caption,
        "note": note,
        "usual": {"head": head, "scale": usual_scale(panes)},
        "opened": dict(opened or {}),
        "file": "maps-" + re.sub(r"[^\w.-]+", "-", panes[0].title).strip("-"),
    }
    digest = hashlib.blake2b(json.dumps(header).encode(), digest_size=8)
    for pane in panes:
        digest.update(pane.weights[:: 1 + len(pane.weights) // 65536])
    return header | {"id": digest.hexdigest()}
