"""Maps as one binary for the browser, and components that share one drawing path (map_drawing.js)."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

MAPS = Path(__file__).resolve().parent
FULL = 65535  # the number that stands for a weight of 1; hover reads true to 1 / FULL


def as_bytes(maps: np.ndarray) -> bytes:
    """Weights [..., query, key] of 0 to 1 as uint16, map after map.

    Eight bits would show as well, but hover would read 0.002 off and faint maps would come in steps.
    """
    return np.rint(np.clip(maps, 0, 1) * FULL).astype("<u2").tobytes()


def packed(header: dict[str, Any], weights: Iterable[bytes]) -> bytes:
    """One binary: 4 bytes header length, the header as JSON, then the weights of all maps."""
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (len(text) % 2)
    return b"".join([len(text).to_bytes(4, "little"), text, *weights])


def drawing_component(name: str, folder: Path) -> Any:
    """Register the component of <name>.js and <name>.css in `folder`; its script follows the shared drawing."""
    script = (MAPS / "map_drawing.js").read_text() + (folder / f"{name}.js").read_text()
    return st.components.v2.component(
        f"atlas_{name}", js=script, css=(folder / f"{name}.css").read_text(), html='<div class="root"></div>\n'
    )
