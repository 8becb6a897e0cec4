"""A fine-tuned checkpoint as a folder that opens like any other, with its log and where it comes from."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..config import code_version
from ..models.checkpoint import Checkpoint
from .files import replace_folder
from .saved_checkpoints import LOG
from .training import TrainingOutcome


def save_tuned(folder: Path, outcome: TrainingOutcome, base: Checkpoint, facts: dict[str, Any]) -> None:
    """Save weights (safetensors), config with label names, tokenizer, and training.json: log, metrics and provenance.

    Args:
        folder: where to; one that is there already is replaced only when the new one is complete.
        outcome: the model, its log and its metrics on dev.
        facts: task, initialisation, seed, recipe and what the rows were, as JSON can hold it.

    Raises:
        CheckpointError: the folder cannot be written; what was there stays.
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
        model: Any = outcome.model
        model.save_pretrained(part, safe_serialization=True)
        base.tokenizer.save_pretrained(part)
        (part / LOG).write_text(json.dumps(written, indent=1), encoding="utf-8")

    replace_folder(folder, fill)
