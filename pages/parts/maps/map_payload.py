"""Maps as one binary for the browser, and components that share one drawing path (map_drawing.js)."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

MAPS = Path(__file__).resolve().parent
WORKBENCH = ("map_drawing", "heads", "detail", "lines", "workbench", "choosing")  # scripts, in order; none knows a host
FULL = 65535  # the number that stands for a weight of 1; hover reads true to 1 / FULL


def as_bytes(maps: np.ndarray) -> bytes:
    """Weights [..., query, key] of 0 to 1 as uint16, map after map.

    Eight bits would show as well, but hover would read 0.002 off and faint maps would come in steps.
    """
    return np.rint(np.clip(maps, 0, 1) * FULL).astype("<u2").tobytes()


def difference_as_bytes(first: np.ndarray, second: np.ndarray) -> bytes:
    """`first` - `second` [..., query, key], each value from -1 to 1, as uint16: 32767 is no difference."""
    difference = np.clip(first.astype(np.float64) - second, -1, 1)
    return np.rint((difference + 1) * (FULL // 2)).astype("<u2").tobytes()


def packed(header: dict[str, Any], weights: Iterable[bytes]) -> bytes:
    """One binary: 4 bytes header length, the header as JSON, then the weights of all maps."""
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (len(text) % 2)
    return b"".join([len(text).to_bytes(4, "little"), text, *weights])


def workbench_script() -> str:
    """The drawing of the workbench for any host; the host's own script follows it."""
    return "".join((MAPS / f"{name}.js").read_text() for name in WORKBENCH)


def drawing_component(name: str, folder: Path, *parts: str) -> Any:
    """Register the component of <name>.js and <name>.css in `folder`; its script follows the shared drawing.

    parts: names of further scripts in `folder`, put before its own.
    """
    scripts = [MAPS / "map_drawing.js", *(folder / f"{part}.js" for part in (*parts, name))]
    return _component(name, "".join(script.read_text() for script in scripts), folder)


def workbench_component() -> Any:
    """Register the map workbench: maps_grid.css, and in_streamlit.js behind the drawing."""
    return _component("maps_grid", workbench_script() + (MAPS / "in_streamlit.js").read_text(), MAPS)


def _component(name: str, script: str, folder: Path) -> Any:
    style = (folder / f"{name}.css").read_text()
    return st.components.v2.component(f"atlas_{name}", js=script, css=style, html='<div class="root"></div>\n')
