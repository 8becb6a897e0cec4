"""What a page shows of a run under way: one small JSON file. Needs no torch."""

import contextlib
import json
import time
from pathlib import Path
from typing import Any

from ..errors import CheckpointError
from .files import write_whole


class Live:
    """Writes what a page shows of a run under way, at most twice a second."""

    def __init__(self, place: Path, every: float = 0.5) -> None:
        self.place, self.every, self.written = place, every, 0.0

    def write(self, content: dict[str, Any], *, now: bool = False) -> None:
        """Write the content, unless the last was written just before; `now` writes it all the same."""
        if not now and time.monotonic() - self.written < self.every:
            return
        self.written = time.monotonic()
        with contextlib.suppress(CheckpointError):  # only a picture of the run; the run itself goes on
            write_whole(self.place, lambda part: _write(part, json.dumps(content)))


def read_live(path: Path) -> dict[str, Any] | None:
    """What `Live` wrote last; None where there is nothing that can be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write(part: Path, text: str) -> None:
    part.write_text(text, encoding="utf-8")
