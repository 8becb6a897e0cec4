"""The map workbench: every head for one input on one canvas, or two stacks of maps with their difference.

The drawing code is independent of its host (core/drawing) and shared by several components; in_streamlit.js makes the
workbench a component.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from core import studies
from core.drawing.panes import Pane, difference, header_of, scored_pane, usual_scale
from core.drawing.payload import as_bytes, packed, script, workbench_script, workbench_style
from core.scoring.registry import HEAD_SCORES
from pages.parts.shell import resources, url
from pages.parts.shell.resources import Shown

HERE = Path(__file__).resolve().parent


def drawing_component(name: str, folder: Path, *parts: str) -> Any:
    """Register the component of <name>.js and <name>.css in `folder`, after the shared code and the scripts in
    `parts`."""
    scripts = "".join((folder / f"{part}.js").read_text(encoding="utf-8") for part in (*parts, name))
    return _component(name, script("map_drawing") + scripts, (folder / f"{name}.css").read_text(encoding="utf-8"))


def workbench_component() -> Any:
    """Register the map workbench: in_streamlit.js after the drawing code."""
    return _component(
        "maps_grid", workbench_script() + (HERE / "in_streamlit.js").read_text(encoding="utf-8"), workbench_style()
    )


def _component(name: str, source: str, style: str) -> Any:
    return st.components.v2.component(f"atlas_{name}", js=source, css=style, html='<div class="root"></div>\n')


# ---------------------------------------------------------------- the workbench


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


def pane_like(pane: Pane, title: str, weights: np.ndarray) -> Pane:
    """Return a pane of the same input with other weights [layer, head, query, key]."""
    return Pane(title, pane.layers, pane.heads, pane.tokens, as_bytes(weights), pane.causal, attending=pane.attending)


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


# ---------------------------------------------------------------- two stacks of maps with their difference


class Compared(NamedTuple):
    """What the workbench shows. `note` states why there is no difference, or is a remark; may be empty."""

    panes: list[Pane]
    note: str = ""


def beside(first: Shown, second: Shown, titles: tuple[str, str]) -> Compared:
    """Return two stacks of maps and, if possible, the second minus the first."""
    panes = [pane_of(shown, title) for shown, title in zip((first, second), titles, strict=True)]
    return _with_difference(panes, (first.maps.weights, second.maps.weights))


def with_effective(name: str, shown: Shown) -> Compared:
    """Return raw and effective attention of one input. Raises InputError or CheckpointError."""
    return raw_and_effective(shown, *studies.attention.measures.both_maps(resources.checkpoint(name), shown.encoding))


def raw_and_effective(shown: Shown, weights: np.ndarray, left: np.ndarray) -> Compared:
    """Return panes of raw and effective weights, both [layer, head, query, key]."""
    raw = pane_of(shown, "raw")
    effective = pane_like(raw, "effective", left)
    panes, _ = _with_difference([raw, effective], (weights, left))
    lost = np.nanmean(np.abs(left @ np.ones(left.shape[-1]) - 1))
    note = (
        "Effective attention is attention without the part that cannot affect the output. Its rows need not sum to 1 "
        f"(here their sums differ from 1 by {lost:.3f} on average), and negative values are drawn as 0."
    )
    if np.allclose(weights, left, atol=1e-5, equal_nan=True):
        note = (
            "Effective and raw attention are equal for this input. They can differ only if an input has more tokens "
            "than a head has dimensions. Choose a longer text."
        )
    return Compared(panes, note)


def _with_difference(panes: list[Pane], weights: tuple[np.ndarray, np.ndarray]) -> Compared:
    third = difference(panes[0], panes[1], weights)
    if isinstance(third, str):
        return Compared(panes, third)
    differing = sum(a != b for a, b in zip(panes[0].tokens, panes[1].tokens, strict=True))
    note = (
        f"The difference compares equal positions, but {differing} of {len(third.tokens)} positions have different "
        f"tokens."
        if differing
        else ""
    )
    return Compared([*panes, third], note)
