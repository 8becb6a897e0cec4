"""Atomic writes of the files of a run, so that a full disk or a kill leaves the previous files."""

import contextlib
import errno
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import CheckpointError, InputError
from ..reading import read_text
from ..writing import replacing

# ---------------------------------------------------------------- contents of a page on a current run


class Live:
    """Writes the status of a training run to a file, at most twice a second. The pages of the app read this file."""

    def __init__(self, place: Path, every: float = 0.5) -> None:
        self.place, self.every, self.written = place, every, 0.0

    def write(self, content: dict[str, Any], *, now: bool = False) -> None:
        """Write the status of the run, unless it was written in the last half second and `now` is False."""
        if not now and time.monotonic() - self.written < self.every:
            return
        self.written = time.monotonic()
        with contextlib.suppress(CheckpointError):  # only the status; the run continues
            write_whole(self.place, lambda part: part.write_text(json.dumps(content), encoding="utf-8"))


def read_live(path: Path) -> dict[str, Any] | None:
    """Read the last status of a training run, or return None if its file cannot be read."""
    try:
        return json.loads(read_text(path, given=True))
    except (InputError, OSError, ValueError, RecursionError):
        return None


def _system_error(error: Exception) -> OSError | None:
    """Return the system error behind an error of Python or safetensors."""
    if isinstance(error, OSError):
        return error
    number = re.search(r"os error (\d+)", str(error))
    return OSError(int(number[1]), os.strerror(int(number[1]))) if number else None


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Replace a file at once by a new one that `write` fills. If this raises CheckpointError, the old one remains."""
    with replacing(path, CheckpointError) as part:
        write(part)


def replace_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Replace a folder by a new one that `fill` fills. If this raises CheckpointError, the old folder remains."""
    part, old = path.with_name(path.name + ".part"), path.with_name(path.name + ".old")
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        fill(part)
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)
            path.rename(old)
        part.rename(path)
    except Exception as error:
        if old.exists() and not path.exists():
            old.rename(path)
        cause = _system_error(error)
        if cause is None:
            raise
        full = cause.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "the disk is full" if full else f"it is not writable ({cause.strerror or cause})"
        raise CheckpointError(
            f"{path.parent} must be writable, but {what}; files already there are unchanged. Free space or "
            "choose another folder, then start again."
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
