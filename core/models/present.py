"""The current weights of a checkpoint name, found without opening the checkpoint, a network or torch.

Stored results refer to the hash of weights, because weights under a name may change.
"""

import json
import re
from pathlib import Path

from .. import config
from ..attention import PARTS
from ..errors import AtlasError, InputError
from ..reading import read_text
from .adapters import adapter_in
from .config_files import read_config
from .family import FAMILIES
from .weights import HEAD_FILE, hash_of_files, marks_of, weight_files

# ---------------------------------------------------------------- which checkpoints come with the project


def bundled_names() -> list[str]:
    """Return the names of all checkpoints in this project, and of packaged checkpoints on this machine."""
    folders = sorted(config.BUNDLED_MODELS.glob("*/config.json"))
    bundled = [
        folder.parent.name for folder in folders if "model_type" in json.loads(folder.read_text(encoding="utf-8"))
    ]
    return bundled + list(config.packaged_checkpoints())


LONGEST_REFERENCE = 1000  # bytes
_COMMIT = re.compile(r"[\w-]+")
# names of the hub have at most 96 characters
HUB_ID = re.compile(r"(?=[^@]{1,96}(?:@|$))(?P<name>[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?")


def parts_of(name: str) -> tuple[str, ...]:
    """Return the names of a checkpoint's stacks: ("encoder", "decoder", "cross") for an encoder-decoder on this machine
    of a family in FAMILIES, otherwise ("",)."""
    try:
        folder = located(name)
        if folder is None or not config.within(folder):
            return ("",)
        translates = FAMILIES[str(read_config(folder, name)["model_type"])].translates
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, AtlasError):
        return ("",)
    return tuple(PARTS) if translates else ("",)


def present_weights(name: str) -> str | None:
    """Return the SHA-256 hash of the weights of a checkpoint; None if the weights are not on this machine."""
    try:
        folder = located(name)
        if folder is None or not config.within(folder):
            return None
        adapter = adapter_in(folder, name)
        base = model_folder(folder, name)
        if base is None:
            return None
        files = (*weight_files(base, name, HEAD_FILE), *([adapter.file] if adapter else []))
        return hash_of_files(files, marks_of(files))
    except (OSError, ValueError, RuntimeError, AtlasError):  # absent folder, user or weights: opening it fails too
        return None


def stamp_of(name: str) -> int:
    """Return a cache key that changes with the files of a local checkpoint; 0 if it has no local files, as for a hub
    ID."""
    try:
        folder = _local(name)
        if folder is None or not config.within(folder):
            return 0
        folders = dict.fromkeys((folder, model_folder(folder, name) or folder))
        return hash(marks_of(sorted(file for one in folders for file in one.iterdir() if file.is_file())))
    except (OSError, ValueError, RuntimeError, AtlasError):  # no such folder or user: opening it says so
        return 0


def model_folder(folder: Path, name: str) -> Path | None:
    """Return the folder of a model or, for a LoRA adapter, of its base model; None if the base model cannot be read.

    Raises CheckpointError for an unreadable adapter.
    """
    if (adapter := adapter_in(folder, name)) is None:
        return folder
    base = adapter.base_folder() or located(adapter.base)
    return base if base is not None and config.within(base) else None


def located(name: str) -> Path | None:
    """Return the folder of a checkpoint on this machine; None if the checkpoint is not on this machine."""
    return _local(name) or (_downloaded(name) if HUB_ID.fullmatch(name) else None)


def _local(name: str) -> Path | None:
    if name in config.packaged_checkpoints():
        return config.packaged_checkpoints()[name]
    if Path(name).name == name and (config.BUNDLED_MODELS / name / "config.json").is_file():
        return config.BUNDLED_MODELS / name
    return Path(name).expanduser() if config.is_folder(name) else None


def _downloaded(name: str) -> Path | None:
    """Return the folder of a hub ID in the hub's cache, found without the hub's library, which takes half a second."""
    repository, _, revision = name.partition("@")
    if ".." in name or revision.startswith("/"):  # these lead out of the cache
        return None
    stored = config.hub_cache() / f"models--{repository.replace('/', '--')}"
    try:
        reference = stored / "refs" / (revision or "main")
        commit = read_text(reference, most=LONGEST_REFERENCE).strip() if reference.is_file() else revision
        folder = stored / "snapshots" / commit
        return folder if _COMMIT.fullmatch(commit) and (folder / "config.json").is_file() else None
    except (InputError, OSError, ValueError):  # not a hub ID, or the file is not a reference
        return None


def is_here(name: str) -> bool:
    """Return whether a checkpoint can be opened without a download."""
    try:
        if _local(name) is not None:
            return True
        folder = _downloaded(name) if HUB_ID.fullmatch(name) else None
        return folder is not None and bool(weight_files(folder, name))
    except (OSError, ValueError, RuntimeError, AtlasError):  # no such folder, user or weights
        return False


def downloaded_names() -> list[str]:
    """Return the hub IDs of all fully downloaded checkpoints except packaged ones, sorted by name."""
    try:
        stored = [folder.name for folder in config.hub_cache().glob("models--*") if folder.is_dir()]
    except OSError:
        return []
    packaged = {config.ON_HUB.get(name) for name in config.packaged_checkpoints()}
    names = {name.removeprefix("models--").replace("--", "/") for name in stored} - packaged
    return sorted(filter(is_here, names))
