"""Conversion of charts to SVG and PNG with vl-convert, in a separate process with a time limit.

vl-convert blocks the interpreter while it draws, so an endless chart would block the whole app. The process is reused,
because starting it takes seconds.
"""

import atexit
import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any, Literal

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


def png_of(chart: dict[str, Any], *, scale: float = 2.0) -> bytes:
    """Convert a chart (Vega-Lite specification) to PNG. Raises InputError if the chart cannot be drawn in time."""
    return _converter.drawn("png", [chart], SECONDS, scale=scale)[0]


def fetches(part: Any) -> bool:
    """Return True if a chart specification refers to a URL, a link or an image."""
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
                "A chart must contain its data to be exported; this chart refers to an address, a link or an "
                "image. Delete the result that it belongs to."
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
