"""Conversion of charts to SVG and PNG with vl-convert, and of maps to PNG without an imaging library.

Charts are converted in a separate process with a time limit, because vl-convert blocks the interpreter while it draws:
an endless chart would block the whole app. The process is reused, because starting it takes seconds.
"""

import atexit
import base64
import json
import os
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, UInt8

from ..errors import InputError

SECONDS = 60.0  # for all charts of one call; a chart takes about 0.1 s
_DRAW = """
import base64, json, sys
import vl_convert
draw = {"svg": vl_convert.vegalite_to_svg, "png": vl_convert.vegalite_to_png}
for line in sys.stdin:
    asked = json.loads(line)
    try:
        drawn = [draw[asked["kind"]](chart, allowed_base_urls=[], **asked["more"]) for chart in asked["charts"]]
        answer = [base64.b64encode(one.encode() if isinstance(one, str) else one).decode() for one in drawn]
    except Exception as error:
        answer = next((text for text in str(error).splitlines() if text.strip()), type(error).__name__)[:200]
    print(json.dumps(answer), flush=True)
"""


def svgs_of(charts: Sequence[dict[str, Any]], *, seconds: float = SECONDS) -> list[str]:
    """Convert charts (Vega-Lite specifications) to SVG. Raises InputError if a chart cannot be drawn in time."""
    return [drawn.decode() for drawn in _converter.drawn("svg", charts, seconds)]


def png_of(chart: dict[str, Any]) -> bytes:
    """Convert a chart (Vega-Lite specification) to PNG. Raises InputError if the chart cannot be drawn in time."""
    return _converter.drawn("png", [chart], SECONDS, scale=2.0)[0]


def fetches(part: Any) -> bool:
    """Return whether a chart specification contains a URL, a link or an image."""
    if isinstance(part, list):
        return any(map(fetches, part))
    if not isinstance(part, dict):
        return part == "image"
    named = {name: value for name, value in part.items() if name not in ("values", "datasets")}
    return bool({"url", "href"} & named.keys()) or any(map(fetches, named.values()))


class _Converter:
    """A process that draws charts, started on first use and again in a forked process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0

    def drawn(
        self, kind: Literal["svg", "png"], charts: Sequence[dict[str, Any]], seconds: float, **more: float
    ) -> list[bytes]:
        if not charts:
            return []
        if any(map(fetches, charts)):
            raise InputError(
                "A chart must not contain a URL, a link or an image to be exported; this chart contains one of them. "
                "Delete the result that contains this chart."
            )
        line = json.dumps({"kind": kind, "charts": list(charts), "more": more})
        with self._lock:
            answer = self._answer(line, seconds)
        if not isinstance(answer, list):
            raise InputError(f"The chart could not be exported ({answer}). Export the HTML page instead.")
        return [base64.b64decode(text) for text in answer]

    def _answer(self, line: str, seconds: float) -> Any:
        process = self._running()
        late = threading.Timer(seconds, process.kill)
        late.start()
        try:
            print(line, file=process.stdin, flush=True)
            told = process.stdout.readline() if process.stdout else ""
        except OSError:
            told = ""
        finally:
            late.cancel()
        if told:
            return json.loads(told)
        process.kill()
        process.wait()
        self._process = None
        return f"it took more than {seconds:.0f} seconds, or its process was killed"

    def end(self) -> None:
        if self._process is not None and self._owner == os.getpid():
            self._process.kill()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self._owner = os.getpid()
            self._process = subprocess.Popen(  # noqa: S603 - this Python, and a program of ours
                [sys.executable, "-I", "-c", _DRAW],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
            )
        return self._process


_converter = _Converter()
atexit.register(_converter.end)


# ---------------------------------------------------------------- images of maps


INK = np.array([[246, 247, 248], [198, 218, 236], [125, 174, 214], [52, 118, 179], [17, 63, 118], [8, 38, 79]])
SIDE = 160  # pixels of a map
MARGIN = 8  # white pixels on its right


def map_picture(
    weights: Float[np.ndarray, "query key"], *, side: int = SIDE, own_scale: bool = False
) -> UInt8[np.ndarray, "row column rgb"]:
    """Draw a map as RGB pixels with a white right margin. The darkest colour means a weight of 1 or, with `own_scale`,
    the largest weight of the map."""
    level = np.clip(weights / max(float(weights.max()), 1e-9) if own_scale else weights, 0, 1)
    stops = np.linspace(0, 1, len(INK))
    pixels = np.stack([np.interp(level, stops, INK[:, k]) for k in range(3)], -1).astype(np.uint8)
    places = np.arange(side) * len(weights) // side
    return np.pad(pixels[places][:, places], ((0, 0), (0, MARGIN), (0, 0)), constant_values=255)


GREY, COLOUR = 0, 2  # PNG colour types


def png_bytes(pixels: UInt8[np.ndarray, "row column *rgb"]) -> bytes:
    """Encode grey or RGB pixels as an unfiltered PNG with 8 bits per channel."""
    height, width = pixels.shape[:2]
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1).tobytes()
    kind = COLOUR if pixels.ndim == 3 else GREY
    parts = [
        (b"IHDR", struct.pack(">2I5B", width, height, 8, kind, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines)),
        (b"IEND", b""),
    ]
    chunks = (struct.pack(">I", len(of)) + name + of + struct.pack(">I", zlib.crc32(name + of)) for name, of in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
