"""A fine-tuned checkpoint as a folder that opens like any other, with its log and where it comes from."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.config import code_version
from core.models.checkpoint import Checkpoint
from core.tuning.state import replace_folder
from core.tuning.training import Outcome

LOG = "training.json"


@dataclass(frozen=True)
class Tuned:
    """A fine-tuned checkpoint on disk. name: as shown; folder: opens with `open_checkpoint(str(folder))`."""

    name: str
    folder: Path
    facts: dict[str, Any]

    @property
    def task(self) -> str:
        return str(self.facts["task"])


def save_tuned(folder: Path, outcome: Outcome, base: Checkpoint, facts: dict[str, Any]) -> None:
    """Weights (safetensors), config with label names, tokenizer, and training.json: log, metrics and provenance.

    `facts` must hold task, initialisation, seed, recipe and what the rows were. A folder that is there already is
    replaced only when the new one is complete.
    """
    written = {
        "kind": "fine-tuned",
        "base": base.name,
        "base_hash": base.weights_hash,
        **facts,
        "metrics": outcome.metrics,
        "constant_predictions": outcome.constant,
        "epochs": outcome.log.epochs,
        "kept_epoch": outcome.log.best,
        "losses": [round(loss, 5) for loss in outcome.log.losses],
        "seconds": round(outcome.log.seconds, 2),
        "code_version": code_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }

    def fill(part: Path) -> None:
        outcome.model.save_pretrained(part, safe_serialization=True)
        base.tokenizer.save_pretrained(part)
        (part / LOG).write_text(json.dumps(written, indent=1))

    replace_folder(folder, fill)


def tuned_checkpoints(root: Path) -> list[Tuned]:
    """Fine-tuned checkpoints under a folder, newest first."""
    found = []
    for log in root.glob(f"*/{LOG}"):
        try:
            facts = json.loads(log.read_text())
        except (OSError, ValueError):
            continue
        if facts.get("kind") == "fine-tuned" and not log.parent.name.endswith((".part", ".old")):
            found.append(Tuned(log.parent.name, log.parent, facts))
    return sorted(found, key=lambda one: (one.facts.get("date", ""), one.name), reverse=True)
