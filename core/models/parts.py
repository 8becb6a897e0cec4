"""Which sets of heads a checkpoint has, read from its config without loading the models' libraries."""

import json
from pathlib import Path

from .. import config
from ..attention import PARTS
from .family import FAMILIES


def parts_of(name: str) -> tuple[str, ...]:
    """The sets of heads of a checkpoint that is bundled or a folder: ("",), or the three of an encoder-decoder.

    ("",) too where nothing can be read, or the family has no record; opening the checkpoint says more.
    """
    try:
        folders = (config.BUNDLED_MODELS / name, Path(name).expanduser())
        file = next(folder / "config.json" for folder in folders if (folder / "config.json").is_file())
        said = json.loads(file.read_text(encoding="utf-8")) if config.within(file) else {}
        translates = FAMILIES[str(said["model_type"])].translates
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, StopIteration):
        return ("",)
    return tuple(PARTS) if translates else ("",)
