"""How far the unit of a job is that a worker runs now: passes over inputs count tokens, the page reads the count."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

EVERY = 1.0  # seconds between two writes of a worker
STALE = 24 * 3600.0  # seconds after which a file is of a worker that was killed


@dataclass
class Count:
    """Tokens that were run since the unit began, and the file that says so."""

    file: Path
    done: float = 0.0
    written: float = 0.0

    def write(self, tokens: float) -> None:
        now = time.monotonic()
        if now - self.written >= EVERY:
            self.written = now
            with suppress(OSError):  # a full disk stops no unit
                self.file.parent.mkdir(parents=True, exist_ok=True)  # another worker removes it when its unit ends
                self.file.write_text(f"{tokens:.0f}", encoding="utf-8")


_count: ContextVar[Count | None] = ContextVar("unit_progress", default=None)


def advance(tokens: float) -> None:
    """Add tokens whose pass is complete."""
    if (count := _count.get()) is not None:
        count.done += tokens
        count.write(count.done)


def within(tokens: float) -> None:
    """Show tokens of a pass that is under way; `advance` adds them when it ends."""
    if (count := _count.get()) is not None:
        count.write(count.done + tokens)


@contextmanager
def counting(folder: Path) -> Iterator[None]:
    """Count the tokens of this block in a file of this process in `folder`; the file is removed when the block ends."""
    file = folder / str(os.getpid())
    token = _count.set(Count(file))
    try:
        yield
    finally:
        _count.reset(token)
        with suppress(OSError):
            file.unlink(missing_ok=True)
            folder.rmdir()  # the last worker removes the folder


def tokens_under_way(folder: Path) -> float:
    """Tokens that units have run which are not finished yet; 0 if nothing says how many."""
    total = 0.0
    with suppress(OSError):
        for file in folder.iterdir():
            with suppress(OSError, ValueError):
                if time.time() - file.stat().st_mtime < STALE:
                    total += float(file.read_text(encoding="utf-8"))
    return total
