"""The checkpoints on this machine."""

from functools import lru_cache
from pathlib import Path

from core import config
from core.errors import CheckpointError
from core.models.config_files import read_config
from core.models.present import downloaded_names
from core.tuning.saved_checkpoints import shown_folder


def checkpoint_names() -> list[str]:
    """Return the checkpoints on this machine: bundled and packaged ones by name, then folders from jobs, then the hub
    cache."""
    bundled = [folder.name for folder in _checkpoints_under(config.BUNDLED_MODELS)]
    return [*bundled, *config.packaged_checkpoints(), *tuned_folders(), *downloaded_names()]


def tuned_folders() -> list[str]:
    return [shown_folder(folder) for folder in _checkpoints_under(config.settings().runs)]


def _checkpoints_under(folder: Path) -> list[Path]:
    return sorted(
        file.parent
        for file in folder.glob("**/config.json")
        if file.parent.suffix not in {".part", ".old"} and _names_a_model(file, file.stat().st_mtime_ns)
    )


@lru_cache(maxsize=256)
def _names_a_model(file: Path, modified: int) -> bool:
    try:
        return bool(read_config(file.parent, file.parent.name))
    except CheckpointError:
        return False
