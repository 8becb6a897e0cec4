"""The map grid: every head of one input on one canvas; its drawing is map_drawing.js, its behaviour maps_grid.js."""

import hashlib
import json
import math
import re
from typing import Any

import streamlit as st

from core.scoring.heads import HEAD_SCORES
from pages.parts.frame.resources import Shown
from pages.parts.maps.map_payload import MAPS, drawing_component, packed

VIEW = ("head", "score", "show", "least", "scale")  # what a link keeps of the grid
_grid = drawing_component("maps_grid", MAPS)


def show_grid(shown: Shown, *, name: str, caption: str, opened: dict[str, Any], key: str) -> dict[str, Any]:
    """Mount the grid; returns the view the user set: head ("L7H6" or ""), score, show, least, scale.

    name: of the checkpoint. caption: written under downloaded pictures. opened: the view to start from; it must stay
    the same between reruns, so that the payload stays the same and is not sent again.
    """
    header = _header(shown, name, caption, opened)
    header["id"] = hashlib.blake2b(
        json.dumps(header).encode() + shown.weights[:: 1 + len(shown.weights) // 65536], digest_size=8
    ).hexdigest()
    result = _grid(key=key, data=packed(header, [shown.weights]), on_view_change=lambda: None)
    return dict(result.view or {})


def opened_view() -> dict[str, Any]:
    """The view that the link to the page asked for; it stays until the page is entered anew (shell.arrive)."""
    if "grid_opened" not in st.session_state:
        asked: dict[str, Any] = {name: st.query_params[name] for name in VIEW if name in st.query_params}
        try:
            asked["least"] = min(1.0, max(0.0, float(asked.get("least", 0))))
        except ValueError:
            asked["least"] = 0.0
        allowed = {"score": HEAD_SCORES, "show": ("layers", "highest"), "scale": ("absolute", "own")}
        st.session_state["grid_opened"] = {
            field: value for field, value in asked.items() if field not in allowed or value in allowed[field]
        }
    return st.session_state["grid_opened"]


def keep_view(view: dict[str, Any]) -> None:
    """Write the view into the URL; what is as usual stays out of it."""
    usual = {"head": "", "score": "", "show": "layers", "least": 0, "scale": "absolute"}
    for field in VIEW:
        if field in view and view[field] != usual[field]:
            st.query_params[field] = str(view[field])
        elif field in view and field in st.query_params:
            del st.query_params[field]


def _header(shown: Shown, name: str, caption: str, opened: dict[str, Any]) -> dict[str, Any]:
    maps = shown.maps
    scores = {
        field: {
            "label": HEAD_SCORES[field].label,
            "meaning": HEAD_SCORES[field].meaning,
            "values": [None if math.isnan(one) else round(float(one), 5) for one in values.ravel()],
        }
        for field, values in shown.scores.items()
        if not math.isnan(float(values.ravel()[0]))
    }
    return {
        "layers": maps.layers,
        "heads": maps.heads,
        "length": len(maps),
        "tokens": list(maps.tokens),
        "name": name,
        "caption": caption,
        "causal": maps.causal,
        "scores": scores,
        "opened": opened,
        "file": "maps-" + re.sub(r"[^\w.-]+", "-", name).strip("-"),
    }
