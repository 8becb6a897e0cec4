"""Fine-tuned checkpoints on disk: their logs, the status of active runs, and atomic writes. Does not import torch."""

import contextlib
import errno
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import config
from ..errors import CheckpointError, InputError
from ..reading import read_in, read_text
from ..writing import write_whole

LOG = "training.json"
LARGEST_LOG = 16 << 20  # bytes


@dataclass(frozen=True)
class Tuned:
    """A fine-tuned checkpoint in a folder, with its training log."""

    name: str
    folder: Path
    facts: dict[str, Any]

    @property
    def task(self) -> str:
        return str(self.facts["task"])


_TYPES: dict[str, type | tuple[type, ...]] = {
    "kind": str, "base": str, "base_hash": str, "task": str, "date": str, "recipe": dict, "seeds": dict, "rows": dict,
    "train_rows_hash": str, "dev_rows_hash": str, "metrics": dict, "constant_predictions": bool, "held": dict,
}  # fmt: skip


def training_log(folder: Path) -> dict[str, Any]:
    """Read the training log of a fine-tuned checkpoint, or return {} if it is missing or invalid."""
    try:
        facts = json.loads(read_in(folder, LOG, most=LARGEST_LOG))
    except (InputError, OSError, ValueError, RecursionError):
        return {}
    if not isinstance(facts, dict):
        return {}
    if any(name in facts and not isinstance(facts[name], kind) for name, kind in _TYPES.items()):
        return {}
    counts = (facts.get("recipe", {}).get("train_limit"), facts.get("seeds", {}).get("rows"))
    if any(
        count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0) for count in counts
    ):
        return {}
    return facts


def tuned_checkpoints(root: Path) -> list[Tuned]:
    """Return the fine-tuned checkpoints in a folder, newest first."""
    tuned = []
    for log in root.glob(f"*/{LOG}"):
        facts = training_log(log.parent)
        whole = facts.get("kind") == "fine-tuned" and facts.get("task")
        if whole and not log.parent.name.endswith((".part", ".old")):
            tuned.append(Tuned(log.parent.name, log.parent, facts))
    return sorted(tuned, key=lambda checkpoint: (checkpoint.facts.get("date") or "", checkpoint.name), reverse=True)


def shown_folder(folder: Path) -> str:
    """Format the path of a folder as text, relative to the project folder if it is inside the project folder."""
    return str(folder.relative_to(config.PROJECT)) if folder.is_relative_to(config.PROJECT) else str(folder)


# ---------------------------------------------------------------- files of a run


class Live:
    """Writes the status of a training run to a file, at most twice a second. The pages of the app read the file."""

    def __init__(self, place: Path, every: float = 0.5) -> None:
        self.place, self.every, self.written = place, every, 0.0

    def write(self, content: dict[str, Any], *, now: bool = False) -> None:
        """Write the status of the run if the last write was at least half a second ago, or if `now` is True."""
        if not now and time.monotonic() - self.written < self.every:
            return
        self.written = time.monotonic()
        with contextlib.suppress(CheckpointError):  # only the status; the run continues
            write_whole(self.place, json.dumps(content), CheckpointError)


def read_live(path: Path) -> dict[str, Any] | None:
    """Read the last status of a training run, or return None if its file cannot be read."""
    try:
        return json.loads(read_text(path, given=True))
    except (InputError, OSError, ValueError, RecursionError):
        return None


def replace_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Replace a folder with a new folder whose content `fill` writes. If this fails, the old folder remains."""
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
            f"{path.parent} must be writable; {what}. The files in this folder are unchanged. Free space or "
            "choose another folder, then start again."
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _system_error(error: Exception) -> OSError | None:
    """Return the system error behind an error of Python or safetensors."""
    if isinstance(error, OSError):
        return error
    number = re.search(r"os error (\d+)", str(error))
    return OSError(int(number[1]), os.strerror(int(number[1]))) if number else None
