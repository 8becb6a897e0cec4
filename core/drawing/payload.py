"""Maps as binary data for the browser, and the scripts that draw them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

SCRIPTS = Path(__file__).resolve().parent
WORKBENCH = (
    "map_drawing",
    "heads",
    "detail",
    "lines",
    "workbench",
    "choosing",
)  # scripts in order, independent of the host
FULL = 65535  # represents a weight of 1; hovering is accurate to 1 / FULL


def as_bytes(maps: np.ndarray) -> bytes:
    """Pack attention weights [*axes, query, key] as little-endian uint16: FULL for a weight of 1, and 0 for NaN."""
    return np.rint(np.clip(np.nan_to_num(maps), 0, 1) * FULL).astype("<u2").tobytes()


def difference_as_bytes(first: np.ndarray, second: np.ndarray) -> bytes:
    """Pack differences between weights as little-endian uint16: -1 is stored as 0, 0 as 32767, and 1 as 65534."""
    difference = np.clip(np.nan_to_num(first.astype(np.float64) - second), -1, 1)
    return np.rint((difference + 1) * (FULL // 2)).astype("<u2").tobytes()


def packed(header: dict[str, Any], weights: Iterable[bytes]) -> bytes:
    """Return map data for the browser: the header length (4 bytes), the header as JSON, and the weights of all maps."""
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (len(text) % 2)
    return b"".join([len(text).to_bytes(4, "little"), text, *weights])


def script(name: str) -> str:
    """Return the text of a bundled JavaScript file."""
    return (SCRIPTS / f"{name}.js").read_text(encoding="utf-8")


def workbench_script() -> str:
    """Return the JavaScript of the interactive map viewer, without the script of the surrounding page or notebook."""
    return "".join(script(name) for name in WORKBENCH)


def workbench_style() -> str:
    """Return the CSS of the interactive map viewer. The page defines its colours as CSS variables."""
    return (SCRIPTS / "workbench.css").read_text(encoding="utf-8")
