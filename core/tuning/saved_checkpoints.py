"""Fine-tuned checkpoints on disk. Does not import torch."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import config
from ..errors import InputError
from ..reading import read_in

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
    """Format the path of a folder, relative to the project if the folder is inside it."""
    return str(folder.relative_to(config.PROJECT)) if folder.is_relative_to(config.PROJECT) else str(folder)
