"""The map workbench: every head of one input on one canvas, or two stacks of maps beside their difference.

Its drawing knows no host (workbench.js and the scripts before it); in_streamlit.js makes it a component.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from core.scoring.heads import HEAD_SCORES, head_scores
from pages.parts.frame import history
from pages.parts.frame.resources import Shown
from pages.parts.maps.map_payload import difference_as_bytes, packed, workbench_component

USUAL: dict[str, Any] = {"head": "none", "also": "", "look": "map", "score": "", "show": "layers", "least": 0,
                         "scale": "absolute", "line": 0.1}  # fmt: skip
CHOICES = {
    "score": HEAD_SCORES,
    "show": ("layers", "highest"),
    "scale": ("absolute", "own"),
    "look": ("map", "lines"),
}
SEEN = {  # a score as the verb of a sentence, where it says what a head looks at
    "previous": "looks at the token before",
    "next": "looks at the token after",
    "first": "looks at the first token",
    "separator": "looks at the separators",
}
_workbench = workbench_component()


@dataclass(frozen=True)
class Pane:
    """One stack of maps. title: over it. weights: packed [layer, head, query, key]; signed: differences.

    scores: a number a head, by name. even: the same numbers if every query looked evenly at all it sees.
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
            "offset": offset,
            "scores": {name: self._score(name, values) for name, values in (self.scores or {}).items()
                       if not math.isnan(float(values.ravel()[0]))},
        }  # fmt: skip

    def _score(self, name: str, values: np.ndarray) -> dict[str, Any]:
        even = (self.even or {}).get(name, 0.0)
        return {
            "label": HEAD_SCORES[name].label,
            "meaning": HEAD_SCORES[name].meaning,
            "seen": SEEN.get(name, ""),
            "even": 0.0 if math.isnan(even) else round(even, 5),
            "values": [None if math.isnan(value) else round(float(value), 5) for value in values.ravel()],
        }


def pane_of(shown: Shown, title: str) -> Pane:
    """The maps of one input, with their scores."""
    maps = shown.maps
    return Pane(
        title, maps.layers, maps.heads, maps.tokens, shown.weights, maps.causal, scores=shown.scores, even=_even(shown)
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


def show_grid(
    panes: Sequence[Pane],
    *,
    caption: str,
    key: str,
    opened: Mapping[str, Any] | None = None,
    head: str = "none",
    note: str = "",
) -> dict[str, Any]:
    """Mount the workbench; returns the view the user set: the keys of USUAL, heads by name.

    caption: written under downloaded pictures. head: enlarged where the view names none. opened: the view to start
    from; both must stay the same between reruns, so that the payload stays the same and is not sent again. note: a
    sentence over the maps.
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
    header["id"] = digest.hexdigest()
    result = _workbench(key=key, data=packed(header, [pane.weights for pane in panes]), on_view_change=lambda: None)
    return dict(result.view or {})


def opened_view() -> dict[str, Any]:
    """The view that the link to the page asked for; it stays until the page is entered anew (shell.arrive)."""
    if "grid_opened" not in st.session_state:
        asked: dict[str, Any] = {name: st.query_params[name] for name in USUAL if st.query_params.get(name)}
        for name in {"least", "line"} & set(asked):
            asked[name] = _share(asked[name], USUAL[name])
        st.session_state["grid_opened"] = {
            name: value for name, value in asked.items() if name not in CHOICES or value in CHOICES[name]
        }
    return st.session_state["grid_opened"]


def keep_view(view: Mapping[str, Any], head: str) -> None:
    """Write the view into the URL; what is as usual stays out of it, `head` among it."""
    if history.went_back():
        return  # the URL is right, and what the browser says of the view is of the moment before
    usual = USUAL | {"head": head}
    history.keep({name: None if view[name] == usual[name] else str(view[name]) for name in usual if name in view})


def _share(text: Any, otherwise: Any) -> float:
    try:
        return min(1.0, max(0.0, float(text)))
    except (TypeError, ValueError):
        return float(otherwise)


def _even(shown: Shown) -> dict[str, float]:
    maps, length = shown.maps, len(shown.maps)
    seen = np.tril(np.ones((length, length))) if maps.causal else np.ones((length, length))
    even = (seen / seen.sum(-1, keepdims=True))[None, None].astype(np.float32)
    return {name: float(values.ravel()[0]) for name, values in head_scores(
        even, first=shown.first, separators=shown.separators, causal=maps.causal).items()}  # fmt: skip
