"""Progress reports of a running unit of work: tokens processed, which pages display, and notes for users."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

EVERY = 1.0  # seconds between two writes
STALE = 24 * 3600.0  # seconds after which a file belongs to a killed worker


@dataclass
class Count:
    """The number of tokens that a unit of work has processed, and notes for the user who started the job."""

    file: Path
    done: float = 0.0
    written: float = 0.0
    notes: dict[str, None] = field(default_factory=dict)

    def write(self, tokens: float) -> None:
        now = time.monotonic()
        if now - self.written >= EVERY:
            self.written = now
            with suppress(OSError):  # a full disk does not stop the unit
                self.file.parent.mkdir(parents=True, exist_ok=True)  # another worker may have removed it
                self.file.write_text(f"{tokens:.0f}", encoding="utf-8")


_count: ContextVar[Count | None] = ContextVar("unit_progress", default=None)


def advance(tokens: float) -> None:
    """Add the tokens of a finished forward pass to the token count of the current unit of work."""
    if (count := _count.get()) is not None:
        count.done += tokens
        count.write(count.done)


def within(tokens: float) -> None:
    """Report the number of tokens processed so far in a running forward pass. It is temporary until `advance` is called
    at the end of the pass."""
    if (count := _count.get()) is not None:
        count.write(count.done + tokens)


def note(sentences: Iterable[str]) -> None:
    """Add notes for the user who started the job. A note that is already listed is not repeated."""
    if (count := _count.get()) is not None:
        count.notes.update(dict.fromkeys(sentences))


@contextmanager
def counting(folder: Path) -> Iterator[Count]:
    """Count the tokens processed within this context, and write the count to a file in `folder`. The file is named
    after the process ID. It is removed when the context ends."""
    file = folder / str(os.getpid())
    count = Count(file)
    token = _count.set(count)
    try:
        yield count
    finally:
        _count.reset(token)
        with suppress(OSError):
            file.unlink(missing_ok=True)
            folder.rmdir()  # the last worker removes the folder


def tokens_under_way(folder: Path) -> float:
    """Return how many tokens the running units of a job have processed; 0 if unknown. The counts are read from files in
    `folder`."""
    total = 0.0
    with suppress(OSError):
        for file in folder.iterdir():
            with suppress(OSError, ValueError):
                if time.time() - file.stat().st_mtime < STALE:
                    total += float(file.read_text(encoding="utf-8"))
    return total
