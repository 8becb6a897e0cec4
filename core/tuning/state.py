"""The state of a run under way: one file, written whole, read without running any code it may hold."""

from pathlib import Path
from typing import Any

import torch

from core.tuning.files import write_whole


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write the state of a run whole or not at all: an interrupted write leaves the one before."""
    write_whole(path, lambda part: torch.save(state, part))


def load_state(path: Path, identity: str) -> dict[str, Any] | None:
    """The state that a run with this identity left, or None. Read without running any code it may hold."""
    if not path.is_file():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # a state cut short has many errors; training then starts at the beginning
        return None
    return state if isinstance(state, dict) and state.get("identity") == identity else None
