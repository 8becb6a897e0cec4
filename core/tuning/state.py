"""Files that a run writes: all of them whole or not at all, so a full disk or a kill leaves the previous one."""

import contextlib
import errno
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from core.errors import CheckpointError


def _failed(place: Path, error: OSError) -> CheckpointError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    what = "the disk is full" if full else f"it is not ({error.strerror or error})"
    return CheckpointError(
        f"{place.parent} must be writable, and {what}; what was saved there before is kept: make room or choose "
        "another folder, then start again."
    )


def write_whole(place: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a file beside `place`, then put it in its place. Raises CheckpointError; `place` survives."""
    part = place.with_name(place.name + ".part")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write(part)
        part.replace(place)
    except OSError as error:
        raise _failed(place, error) from error
    except RuntimeError as error:  # torch's writer has its own error for a disk that is full
        raise _failed(place, OSError(errno.ENOSPC, str(error))) from error
    finally:
        part.unlink(missing_ok=True)


def replace_folder(place: Path, fill: Callable[[Path], None]) -> None:
    """Let `fill` write a new folder, then swap it with `place`. Raises CheckpointError; a folder there survives."""
    part, old = place.with_name(place.name + ".part"), place.with_name(place.name + ".old")
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        fill(part)
        if place.exists():
            shutil.rmtree(old, ignore_errors=True)
            place.rename(old)
        part.rename(place)
    except Exception as error:
        if old.exists() and not place.exists():
            old.rename(place)
        if isinstance(error, OSError):
            raise _failed(place, error) from error
        if "No space left" in str(error) or "os error 28" in str(error):  # safetensors' own error
            raise _failed(place, OSError(errno.ENOSPC, str(error))) from error
        raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def save_state(place: Path, state: dict[str, Any]) -> None:
    write_whole(place, lambda part: torch.save(state, part))


def load_state(place: Path, identity: str) -> dict[str, Any] | None:
    """The state that a run with this identity left, or None. Read without running any code it may hold."""
    if not place.is_file():
        return None
    try:
        found = torch.load(place, map_location="cpu", weights_only=True)
    except Exception:  # a state cut short has many errors; training then starts at the beginning
        return None
    return found if isinstance(found, dict) and found.get("identity") == identity else None


class Live:
    """What a page shows while the run goes on, as one small JSON file, at most twice a second."""

    def __init__(self, place: Path, every: float = 0.5) -> None:
        self.place, self.every, self.written = place, every, 0.0

    def write(self, content: dict[str, Any], *, now: bool = False) -> None:
        if not now and time.monotonic() - self.written < self.every:
            return
        self.written = time.monotonic()
        with contextlib.suppress(CheckpointError):  # only a picture of the run; the run itself goes on
            write_whole(self.place, lambda part: part.write_text(json.dumps(content)) and None)


def read_live(place: Path) -> dict[str, Any] | None:
    """What Live wrote last, or None."""
    try:
        return json.loads(place.read_text())
    except (OSError, ValueError):
        return None
