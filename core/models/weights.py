"""The files that a checkpoint is made of: which are loaded, that none leads out, and a hash of those very files."""

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from core import config
from core.errors import CheckpointError

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"  # as transformers looks for them, in this order
HEAD_FILE = "head.safetensors"  # of a classifier of ours, beside the plain Transformer
LARGEST_JSON = 64 * 2**20  # bytes of an index or a config
_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.tiktoken", "*.bpe")
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")


def weight_files(folder: Path, name: str, *beside: str) -> list[Path]:
    """The safetensors files that are loaded from a folder.

    Args:
        folder: of the checkpoint.
        name: of the checkpoint, for the sentence of an error.
        beside: names of files that are loaded too where they are there.

    Returns:
        The whole file, or the parts that the index names; then those beside.

    Raises:
        CheckpointError: for pickles, no weights, or an index that names files elsewhere.
    """
    extra = [folder / other for other in beside if (folder / other).is_file()]
    if (folder / WHOLE).is_file():
        return [folder / WHOLE, *extra]
    if (folder / INDEX).is_file():
        return [*_shards(folder, name), *extra]
    pickled = [file.name for pattern in _PICKLES for file in folder.glob(pattern)]
    if pickled:
        raise CheckpointError(
            f"Weights must be safetensors, because a pickle can run code when it is read; {name} has "
            f"only {pickled[0]}: convert it with save_pretrained(safe_serialization=True)."
        )
    raise CheckpointError(f"A checkpoint must hold {WHOLE}; {name} has no weights: save it again.")


def _shards(folder: Path, name: str) -> list[Path]:
    try:
        listed = sorted(set(_json(folder / INDEX)["weight_map"].values()))
        good = all(shard.endswith(".safetensors") and Path(shard).name == shard for shard in listed)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"The index of {name}'s weights cannot be read; save or download it again.") from error
    if not good or not listed:
        raise CheckpointError(
            f"Weights in parts lie beside their index; that of {name} names files elsewhere or none: save it again."
        )
    lacking = [shard for shard in listed if not (folder / shard).is_file()]
    if lacking:
        raise CheckpointError(f"Every part of the weights must be there; {name} lacks {lacking[0]}: download it again.")
    return [folder / shard for shard in listed]


def _json(file: Path) -> Any:
    with file.open("rb") as stream:
        return json.loads(stream.read(LARGEST_JSON))


def refuse_what_leads_out(folder: Path, name: str) -> None:
    """Raises CheckpointError for a file of `folder` that lies, links followed, outside what the app may read."""
    for file in folder.rglob("*"):
        if file.is_file() and not config.within(file):
            raise CheckpointError(
                f"Every file of a checkpoint lies in the folders that this app was given; {file.name[:80]} of {name} "
                "leads out of them: copy it into the folder."
            )


def refuse_half_a_checkpoint(folder: Path, name: str) -> None:
    """Raises CheckpointError where config.json names weights of its own, or where there is no vocabulary."""
    try:
        said = _json(folder / "config.json")
    except (OSError, ValueError, RecursionError):
        said = {}  # opening it says what is wrong
    if isinstance(said, dict) and said.get("transformers_weights"):
        raise CheckpointError(f"Weights are those of {WHOLE}; config.json of {name} names another file: remove that.")
    if not any(file.is_file() for pattern in _VOCABULARIES for file in folder.glob(pattern)):
        raise CheckpointError(
            f"A checkpoint needs the tokenizer that it was trained with; {name} has none, so every word would be "
            "unknown: save the tokenizer into the same folder."
        )


def marks_of(files: Sequence[Path]) -> tuple[tuple[int, ...], ...]:
    """Numbers of each file that change when it is written or replaced, even where its time is set back."""
    statuses = [file.stat() for file in files]
    return tuple(
        (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns) for status in statuses
    )


@lru_cache(maxsize=64)
def hash_of_files(files: tuple[Path, ...], marks: tuple[tuple[int, ...], ...]) -> str:
    """SHA-256 over the contents of `files`, in their order; remembered as long as their marks are the same."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
