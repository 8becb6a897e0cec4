"""Which fine-tuned checkpoints there are. Needs no torch."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import config

LOG = "training.json"


@dataclass(frozen=True)
class Tuned:
    """A fine-tuned checkpoint on disk.

    Attributes:
        name: as shown.
        folder: opens with `open_checkpoint(str(folder))`.
        facts: what its training.json says.
    """

    name: str
    folder: Path
    facts: dict[str, Any]

    @property
    def task(self) -> str:
        return str(self.facts["task"])


def training_log(folder: Path) -> dict[str, Any]:
    """What fine-tuning wrote beside its weights; {} where there is none that can be read.

    Args:
        folder: of the checkpoint.
    """
    try:
        facts = json.loads(folder.joinpath(LOG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def tuned_checkpoints(root: Path) -> list[Tuned]:
    """Fine-tuned checkpoints under a folder, newest first."""
    tuned = []
    for log in root.glob(f"*/{LOG}"):
        facts = training_log(log.parent)
        if facts.get("kind") == "fine-tuned" and not log.parent.name.endswith((".part", ".old")):
            tuned.append(Tuned(log.parent.name, log.parent, facts))
    return sorted(tuned, key=lambda checkpoint: (checkpoint.facts.get("date", ""), checkpoint.name), reverse=True)


def shown_folder(folder: Path) -> str:
    """A folder as checkpoint pickers name it: relative to the project where it lies inside."""
    return str(folder.relative_to(config.PROJECT)) if folder.is_relative_to(config.PROJECT) else str(folder)
