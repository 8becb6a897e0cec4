"""Maps as one binary for the browser, and the scripts that draw it for any host (workbench.js and those before it)."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

SCRIPTS = Path(__file__).resolve().parent
WORKBENCH = ("map_drawing", "heads", "detail", "lines", "workbench", "choosing")  # scripts, in order; none knows a host
FULL = 65535  # the number that stands for a weight of 1; hover reads true to 1 / FULL


def as_bytes(maps: np.ndarray) -> bytes:
    """Weights as uint16, map after map.

    Eight bits would show as well, but hover would read 0.002 off and faint maps would come in steps.

    Args:
        maps: attention weights, clipped to 0 to 1. *Shape:* (*axes, query, key).

    Returns:
        Two bytes a weight, the low one first; FULL is 1.
    """
    return np.rint(np.clip(maps, 0, 1) * FULL).astype("<u2").tobytes()


def difference_as_bytes(first: np.ndarray, second: np.ndarray) -> bytes:
    """`first` - `second` as uint16, map after map.

    Args:
        first: attention weights. *Shape:* (*axes, query, key).
        second: attention weights. *Shape:* (*axes, query, key).

    Returns:
        Two bytes a weight, the low one first: 0 is -1, 32767 no difference, 65534 is 1.
    """
    difference = np.clip(first.astype(np.float64) - second, -1, 1)
    return np.rint((difference + 1) * (FULL // 2)).astype("<u2").tobytes()


def packed(header: dict[str, Any], weights: Iterable[bytes]) -> bytes:
    """One binary: 4 bytes header length, the header as JSON, then the weights of all maps."""
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (len(text) % 2)
    return b"".join([len(text).to_bytes(4, "little"), text, *weights])


def script(name: str) -> str:
    """The text of one script of this folder."""
    return (SCRIPTS / f"{name}.js").read_text(encoding="utf-8")


def workbench_script() -> str:
    """The drawing of the workbench for any host; the host's own script follows it."""
    return "".join(script(name) for name in WORKBENCH)


def workbench_style() -> str:
    """The workbench's CSS; its colours are the variables --st-... that the host sets."""
    return (SCRIPTS / "workbench.css").read_text(encoding="utf-8")
