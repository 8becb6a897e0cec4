"""The map workbench: every head for one input on one canvas, or two stacks of maps with their difference.

The drawing code is independent of its host (core/drawing); in_streamlit.js makes it a component.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.drawing.panes import Pane, header_of, scored_pane, usual_scale
from core.drawing.payload import packed
from core.scoring.registry import HEAD_SCORES
from pages.parts.maps.components import workbench_component
from pages.parts.shell import url
from pages.parts.shell.resources import Shown

USUAL: dict[str, Any] = {"head": "none", "also": "", "look": "map", "score": "", "show": "layers", "least": 0,
                         "scale": "absolute", "line": 0.1}  # fmt: skip
CHOICES = {
    "score": HEAD_SCORES,
    "show": ("layers", "highest"),
    "scale": ("absolute", "own"),
    "look": ("map", "lines"),
}
_workbench = workbench_component()


def pane_of(shown: Shown, title: str) -> Pane:
    """Return the maps of one input with their scores."""
    return scored_pane(
        title, shown.maps, first=shown.first, separators=shown.separators, weights=shown.weights, scores=shown.scores
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
    """Show the workbench and return the view that the user has set: the keys of USUAL, heads by name.

    caption: below downloaded images. head: enlarged by default. opened: the initial view; both must stay the same
    between reruns, so that the payload is not sent again. note: a sentence above the maps.
    """
    header = header_of(panes, caption=caption, head=head, opened=opened, note=note)
    if turn := url.last_turn():
        header |= {"back": turn, "id": f"{header['id']}-{turn['turn']}"}
    result = _workbench(key=key, data=packed(header, [pane.weights for pane in panes]), on_view_change=lambda: None)
    return dict(result.view or {})


def show_kept(panes: Sequence[Pane], *, caption: str, key: str, head: str, note: str = "") -> dict[str, Any]:
    """Show the workbench with its view in the URL, if it is the only one on the page."""
    view = show_grid(panes, caption=caption, key=key, opened=opened_view(), head=head, note=note)
    if view:
        keep_view(view, head, usual_scale(panes))
    return view


def opened_view() -> dict[str, Any]:
    """Return the view that the link to the page requested; it stays until the page is opened again (shell.arrive)."""
    if "grid_opened" not in st.session_state:
        view: dict[str, Any] = {name: st.query_params[name] for name in USUAL if st.query_params.get(name)}
        for name in {"least", "line"} & set(view):
            view[name] = _share(view[name], USUAL[name])
        st.session_state["grid_opened"] = {
            name: value for name, value in view.items() if name not in CHOICES or value in CHOICES[name]
        }
    return st.session_state["grid_opened"]


def keep_view(view: Mapping[str, Any], head: str, scale: str) -> None:
    """Write the view into the URL, without default values."""
    if url.went_back():
        return  # the URL is right, and what the browser says of the view is of the moment before
    usual = USUAL | {"head": head, "scale": scale}
    url.keep({name: None if view[name] == usual[name] else str(view[name]) for name in usual if name in view})


def _share(text: Any, otherwise: Any) -> float:
    try:
        return min(1.0, max(0.0, float(text)))
    except (TypeError, ValueError):
        return float(otherwise)
