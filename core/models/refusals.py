"""Folders that open without an error and would answer with meaningless numbers."""

import json
from pathlib import Path
from typing import Any

from core.errors import CheckpointError
from core.models.head_sets import stretched, windows_of

TRAINING = "training.json"


def refuse_held(folder: Path, name: str) -> None:
    """Refuse a model that was trained with heads held at fixed patterns, which its file does not hold."""
    try:
        held = json.loads((folder / TRAINING).read_text()).get("held")
    except (OSError, ValueError, AttributeError, RecursionError):
        return
    if isinstance(held, dict) and any(held.values()):
        patterns = ", ".join(str(pattern) for pattern in held)
        raise CheckpointError(
            f"A checkpoint must be the model that was measured; {name} was trained with heads held at fixed patterns "
            f"({patterns}), which its weights do not hold, so maps and scores would be another model's: open the free "
            "one trained beside it."
        )


def refuse_windows(config: Any, name: str) -> None:
    """Raises CheckpointError for a layer whose window is longer than the positions that the model has. Where positions
    were stretched after training (Phi-3's 128k: a window of 262,144 of 131,072) it stands for no window at all."""
    if stretched(config):
        return
    window = max((wide for wide in windows_of(config) if wide is not None), default=0)
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and 0 < positions < window:
        raise CheckpointError(
            f"A layer's window is within the model's positions; config.json of {name} promises {window} tokens of "
            f"{positions}: set sliding_window to null where every layer sees all, or correct it."
        )
