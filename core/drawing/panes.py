"""What a workbench shows: stacks of maps beside each other, each with its scores, as the header of its payload."""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from core.attention import AttentionMaps
from core.drawing.payload import as_bytes, difference_as_bytes
from core.scoring.registry import HEAD_SCORES, head_scores

SEEN = {  # a score as the verb of a sentence, where it says what a head looks at
    "previous": "looks at the token before",
    "next": "looks at the token after",
    "first": "looks at the first token",
    "separator": "looks at the separators",
}


@dataclass(frozen=True)
class Pane:
    """One stack of maps. title: over it. weights: packed [layer, head, query, key]; signed: differences.

    scores: a number a head, by name. even: the same numbers if every query looked evenly at all it sees. block: how
    many tokens one row and one column stand for; each weight is then the greatest among them.
    """

    title: str
    layers: int
    heads: int
    tokens: tuple[str, ...]
    weights: bytes
    causal: bool = False
    signed: bool = False
    scores: Mapping[str, np.ndarray] | None = None
    even: Mapping[str, float] | None = None
    block: int = 1

    def header(self, offset: int) -> dict[str, Any]:
        """What the browser reads of it. offset: where its weights begin, in numbers."""
        return {
            "title": self.title,
            "layers": self.layers,
            "heads": self.heads,
            "length": len(self.tokens),
            "tokens": list(self.tokens),
            "causal": self.causal,
            "signed": self.signed,
            "block": self.block,
            "offset": offset,
            "scores": {name: self._score(name, values) for name, values in (self.scores or {}).items()
                       if not math.isnan(float(values.ravel()[0]))},
        }  # fmt: skip

    def _score(self, name: str, values: np.ndarray) -> dict[str, Any]:
        even = (self.even or {}).get(name, 0.0)
        return {
            "label": HEAD_SCORES[name].label,
            "meaning": HEAD_SCORES[name].formula,
            "seen": SEEN.get(name, ""),
            "even": 0.0 if math.isnan(even) else round(even, 5),
            "values": [None if math.isnan(value) else round(float(value), 5) for value in values.ravel()],
        }


def even_weights(length: int, *, causal: bool) -> Float[np.ndarray, "query key"]:
    """The map of a head that looks evenly at all it sees; rows sum to 1."""
    visible = np.tril(np.ones((length, length))) if causal else np.ones((length, length))
    return (visible / visible.sum(-1, keepdims=True)).astype(np.float32)


def scored_pane(
    title: str,
    maps: AttentionMaps,
    *,
    first: int | None,
    separators: Sequence[int],
    weights: bytes | None = None,
    scores: Mapping[str, np.ndarray] | None = None,
) -> Pane:
    """The maps of one input with each head's scores. first, separators: positions, as in Encoding.

    weights, scores: of these maps, where they are computed already.
    """
    places: dict[str, Any] = {"first": first, "separators": separators, "causal": maps.causal}
    scores = scores or head_scores(maps.weights, **places)
    evenly = even_weights(len(maps), causal=maps.causal)[None, None]
    even = {name: float(values.ravel()[0]) for name, values in head_scores(evenly, **places).items()}
    return Pane(
        title,
        maps.layers,
        maps.heads,
        maps.tokens,
        as_bytes(maps.weights) if weights is None else weights,
        maps.causal,
        scores=scores,
        even=even,
    )


def difference(first: Pane, second: Pane, weights: tuple[np.ndarray, np.ndarray]) -> Pane | str:
    """`first` minus `second`, or why there is none. weights: of both, [layer, head, query, key]."""
    if (first.layers, first.heads) != (second.layers, second.heads):
        return (
            f"No difference: {first.title} has {first.layers} layers of {first.heads} heads, {second.title} "
            f"{second.layers} of {second.heads}."
        )
    if len(first.tokens) != len(second.tokens):
        return (
            f"No difference: maps of equal length can be subtracted; {first.title} has {len(first.tokens)} tokens, "
            f"{second.title} {len(second.tokens)}."
        )
    tokens = tuple(a if a == b else f"{a} / {b}" for a, b in zip(first.tokens, second.tokens, strict=True))
    return Pane(
        f"{first.title} − {second.title}", first.layers, first.heads, tokens, difference_as_bytes(*weights), signed=True
    )


def telling_head(scores: Mapping[str, np.ndarray]) -> str:
    """The head whose mean weight on one kind of place is greatest, to open with: "L1H6"."""
    known = {name: values for name, values in scores.items() if name in SEEN and not np.isnan(values).all()}
    if not known:
        return "L1H1"
    best = max(known, key=lambda name: np.nan_to_num(known[name]).max())
    layer, head = np.unravel_index(int(np.nanargmax(known[best])), known[best].shape)
    return f"L{layer + 1}H{head + 1}"


def header_of(
    panes: Sequence[Pane], *, caption: str, head: str = "none", opened: Mapping[str, Any] | None = None, note: str = ""
) -> dict[str, Any]:
    """The header of the payload that shows `panes`.

    caption: written under downloaded pictures. head: enlarged where the view names none. opened: the view to start
    from. note: a sentence over the maps. Its "id" tells payloads apart, so that one that is shown is not drawn again.
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
