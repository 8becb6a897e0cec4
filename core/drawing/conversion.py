"""Charts as SVG and PNG, made by vl-convert in a process of its own that is ended when it takes too long.

vl-convert holds the interpreter's lock while it draws, so a chart that takes for ever would stop the whole app. The
process stays for the next chart, because vl-convert takes seconds to start.
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

SECONDS = 60.0  # for all charts of one call; a chart takes about a tenth of a second
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
    """Vega-Lite specifications as SVG texts. Raises InputError where one cannot be drawn, or not in time."""
    return [drawn.decode() for drawn in _converter.drawn("svg", charts, seconds)]


def png_of(chart: dict[str, Any], *, scale: float = 2.0, seconds: float = SECONDS) -> bytes:
    """A Vega-Lite specification as PNG, `scale` times its size. Raises InputError as `svgs_of` does."""
    return _converter.drawn("png", [chart], seconds, scale=scale)[0]


def fetches(part: Any) -> bool:
    """Whether a specification, its inline data left out, names an address, a link or an image."""
    if isinstance(part, list):
        return any(map(fetches, part))
    if not isinstance(part, dict):
        return part == "image"
    named = {name: value for name, value in part.items() if name not in ("values", "datasets")}
    return bool({"url", "href"} & named.keys()) or any(map(fetches, named.values()))


class _Converter:
    """One process that draws, started when it is first needed, and again in a fork of this one."""

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
                "A chart must have its data inline to be drawn as a file; this one names an address, a link or an "
                "image. Remove the result that it belongs to."
            )
        line = json.dumps({"kind": kind, "charts": list(charts), "more": more})
        with self._lock:
            answer = self._answer(line, seconds)
        if not isinstance(answer, list):
            raise InputError(f"The chart could not be drawn as a file ({answer}). Export the HTML page instead.")
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
        return f"it took more than {seconds:.0f} seconds, or its process was ended"

    def end(self) -> None:
        """End the process, if there is one of this process's own."""
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
