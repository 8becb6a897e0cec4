"""Sets of heads of a checkpoint, read from its config without importing model libraries."""

import json
from pathlib import Path

from .. import config
from ..attention import PARTS
from ..errors import InputError
from ..reading import read_in
from .family import FAMILIES


def parts_of(name: str) -> tuple[str, ...]:
    """Return the attention stacks of a checkpoint: ("encoder", "decoder", "cross") for three, otherwise ("",)."""
    try:
        folders = (config.BUNDLED_MODELS / name, Path(name).expanduser())
        file = next(folder / "config.json" for folder in folders if (folder / "config.json").is_file())
        said = json.loads(read_in(file.parent, file.name)) if config.within(file) else {}
        translates = FAMILIES[str(said["model_type"])].translates
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, StopIteration, InputError):
        return ("",)
    return tuple(PARTS) if translates else ("",)
