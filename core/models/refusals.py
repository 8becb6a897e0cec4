"""Folders that open without an error and would answer with meaningless numbers."""

import json
from pathlib import Path

from core.errors import CheckpointError

TRAINING = "training.json"


def refuse_held(folder: Path, name: str) -> None:
    """A model trained with heads held at fixed patterns is another one without them; its file does not hold them."""
    try:
        held = json.loads((folder / TRAINING).read_text()).get("held")
    except (OSError, ValueError, AttributeError):
        return
    if isinstance(held, dict) and any(held.values()):
        patterns = ", ".join(str(pattern) for pattern in held)
        raise CheckpointError(
            f"A checkpoint must be the model that was measured; {name} was trained with heads held at fixed patterns "
            f"({patterns}), which its weights do not hold, so maps and scores would be another model's: open the free "
            "one trained beside it."
        )
