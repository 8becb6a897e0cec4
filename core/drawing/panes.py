"""What a workbench shows: stacks of maps beside each other, each with its scores, as the header of its payload."""

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

SEEN = {  # a score as the verb of a sentence, where it says what a head looks at
    "previous": "looks at the token before",
    "next": "looks at the token after",
    "first": "looks at the first token",
    "separator": "looks at the separators",
}


@dataclass(frozen=True)
class Pane:
    """One stack of maps.

    Attributes:
        tokens: one text a query; with `block`, one a row.
        weights: as `as_bytes` packs [layer, head, query, key], of differences as `difference_as_bytes`.
        causal: whether queries see only keys up to themselves.
        signed: whether these are differences.
        scores: of each head, by name. *Shape:* (layer, head) each. None shows none.
        even: the same numbers if every query looked evenly at all it sees. *Shape:* (1,) for all layers, or (layer,).
        block: how many tokens one row and one column stand for; each weight is then the greatest among them.
        key_tokens: as of AttentionMaps; with `block`, one a column.
        named: the head's name where the pane is a part of its map, else "".
        whole: whether each map is of a whole layer, not of a head.
        starts: of a part of a map the tokens before its first query and before its first key.
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

    @property
    def sees(self) -> str:
        """What a query sees, for a caption."""
        return sight_sentence(self.part, self.keys, self.windows, causal=self.causal, sink=self.keys[-1:] == (SINK,))

    @property
    def keys(self) -> tuple[str, ...]:
        """One text a key column."""
        return self.tokens if self.key_tokens is None else self.key_tokens

    def header(self, offset: int) -> dict[str, Any]:
        """What the browser reads of it.

        Args:
            offset: where its weights begin, in numbers.
        """
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
            "offset": offset,
            "scores": {
                name: self._score(name, values)
                for name, values in (self.scores or {}).items()
                if not math.isnan(float(values.ravel()[0]))
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
    """The maps of one input with each head's scores.

    Args:
        first: position of [CLS] or the start token, as in Encoding; None without one.
        weights: of these maps, as `as_bytes` packs them, where that is done already.
        scores: of these maps by name, where they are computed already. *Shape:* (layer, head) each.

    Returns:
        A pane without a block or a name.
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
    )


def difference(first: Pane, second: Pane, weights: tuple[np.ndarray, np.ndarray]) -> Pane | str:
    """`second` less `first`, or why there is none.

    Args:
        first: maps without blocks.
        second: maps without blocks.
        weights: of the first and of the second. *Shape:* (layer, head, query, key) each.

    Returns:
        A signed pane without scores; a sentence where the two differ in layers, heads or length.
    """
    if (first.layers, first.heads) != (second.layers, second.heads):
        return (
            f"No difference: {first.title} has {first.layers} layers of {first.heads} heads, {second.title} "
            f"{second.layers} of {second.heads}."
        )
    if len(first.tokens) != len(second.tokens) or len(first.key_tokens or ()) != len(second.key_tokens or ()):
        return (
            f"No difference: maps of equal length can be subtracted; {first.title} has {len(first.tokens)} tokens, "
            f"{second.title} {len(second.tokens)}."
        )
    tokens = tuple(a if a == b else f"{a} / {b}" for a, b in zip(first.tokens, second.tokens, strict=True))
    title = f"{second.title} − {first.title}"
    bytes_of = difference_as_bytes(weights[1], weights[0])
    return replace(first, title=title, tokens=tokens, weights=bytes_of, signed=True, scores=None)


def telling_head(scores: Mapping[str, np.ndarray], part: str = "") -> str:
    """The head to open with.

    It is the one that looks most at a neighbour, with more than half of its weight, where there is one: a line is more
    telling than a column. Else it is the one that looks most at any kind of place.

    Args:
        scores: of each head, by name. *Shape:* (layer, head) each.
        part: the set of heads of an encoder-decoder, "" of others.

    Returns:
        Its name, like "L2H2"; the first head where no score says where heads look.
    """
    known = {name: values for name, values in scores.items() if name in SEEN and not np.isnan(values).all()}
    if not known:
        return str(Head(0, 0, part))
    most = {name: float(np.nanmax(values)) for name, values in known.items()}
    lines = [name for name in ("previous", "next") if most.get(name, 0) > 0.5]
    best = max(lines or most, key=lambda name: most[name])
    layer, head = np.unravel_index(int(np.nanargmax(known[best])), known[best].shape)
    return str(Head(int(layer), int(head), part))


def header_of(
    panes: Sequence[Pane], *, caption: str, head: str = "none", opened: Mapping[str, Any] | None = None, note: str = ""
) -> dict[str, Any]:
    """The header of the payload that shows `panes`.

    Its "id" tells payloads apart, so that one that is shown is not drawn again.

    Args:
        panes: what is shown beside each other; at least one.
        head: the head's name that is enlarged where the view names none, or "none".
        note: a sentence over the maps, or "".

    Returns:
        What the browser reads, fit for JSON; the weights follow it, pane after pane.
    """
    offsets = np.cumsum([0, *(len(pane.weights) // 2 for pane in panes)])
    header: dict[str, Any] = {
        "panes": [pane.header(int(offset)) for pane, offset in zip(panes, offsets, strict=False)],
        "caption": caption,
        "note": note,
        "usual": {"head": head},
        "opened": dict(opened or {}),
        "file": "maps-" + re.sub(r"[^\w.-]+", "-", panes[0].title).strip("-"),
    }
    digest = hashlib.blake2b(json.dumps(header).encode(), digest_size=8)
    for pane in panes:
        digest.update(pane.weights[:: 1 + len(pane.weights) // 65536])
    return header | {"id": digest.hexdigest()}
