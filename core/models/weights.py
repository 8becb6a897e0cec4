"""The files of a checkpoint: which are loaded, whether any is outside its folder, and their hash."""

import hashlib
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from .. import config
from ..errors import CheckpointError, InputError
from ..reading import open_in, read_in
from .config_files import read_config

WEIGHT_FILE, INDEX = (
    "model.safetensors",
    "model.safetensors.index.json",
)  # in the order in which transformers looks for them
HEAD_FILE = "head.safetensors"  # weights of the Atlas's own classifier, beside the plain Transformer
LARGEST_JSON = 64 * 2**20  # bytes of an index or a config
_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.tiktoken", "*.bpe")
_VARIANT = re.compile(r"model\.([A-Za-z]\w*)\.safetensors")
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")


def weight_files(folder: Path, name: str, *beside: str) -> list[Path]:
    """Return the safetensors files in a checkpoint folder. Files that are named in `beside` are included if they exist.

    Raises CheckpointError for pickles, missing weights, or an index with paths outside the folder.
    """
    extra = [folder / other for other in beside if (folder / other).is_file()]
    if (folder / WEIGHT_FILE).is_file():
        return [folder / WEIGHT_FILE, *extra]
    if (folder / INDEX).is_file():
        try:
            listed = sorted(set(json.loads(read_in(folder, INDEX, most=LARGEST_JSON))["weight_map"].values()))
            good = all(shard.endswith(".safetensors") and Path(shard).name == shard for shard in listed)
        except (InputError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CheckpointError(
                f'The weights index of {name} must be readable JSON with a "weight_map"; it is not. Save or download '
                "the checkpoint again."
            ) from error
        if not good or not listed:
            raise CheckpointError(
                f"A weights index must list safetensors files in its own folder; the index of {name} lists other files "
                "or none. Save the checkpoint again."
            )
        lacking = [shard for shard in listed if not (folder / shard).is_file()]
        if lacking:
            raise CheckpointError(
                f"All files in the weights index must exist; the file {lacking[0]} of {name} is missing. Download "
                "the checkpoint again."
            )
        return [*(folder / shard for shard in listed), *extra]
    variants = sorted(file for file in folder.glob("model.*.safetensors") if file.is_file() and variant_of(file))
    if len(variants) == 1:
        return [*variants, *extra]
    others = sorted(file.name for file in folder.glob("*.safetensors") if file.is_file() and file not in extra)
    if others:
        raise CheckpointError(
            f"Weights must be in {WEIGHT_FILE}, or in parts that {INDEX} names; {name} has only "
            f"{', '.join(others[:3])}. "
            + (
                "Keep one of the variants."
                if variants
                else "Save the checkpoint again with save_pretrained, or download its index too."
            )
        )
    pickled = [file.name for pattern in _PICKLES for file in folder.glob(pattern)]
    if pickled:
        raise CheckpointError(
            "Weights must be in the safetensors format, because a pickle file can run code when it is read; "
            f"{name} has only {pickled[0]}. Convert it with save_pretrained(safe_serialization=True)."
        )
    raise CheckpointError(f"A checkpoint must contain {WEIGHT_FILE}; {name} has no weights. Save it again.")


def variant_of(file: Path) -> str | None:
    """Return the variant in the name of a weight file, such as "fp16" in model.fp16.safetensors, or None."""
    match = _VARIANT.fullmatch(file.name)
    return match[1] if match else None


def tensors_in(files: Sequence[Path]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the dtype and shape of each tensor in safetensors files, by tensor name."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for file in files:
        try:
            with open_in(file.parent, file.name) as stream:
                size = min(int.from_bytes(stream.read(8), "little"), 2**26)
                tensors = json.loads(stream.read(size))
            for name, tensor in tensors.items():
                if name != "__metadata__":
                    found[name] = (str(tensor["dtype"]), tuple(int(wide) for wide in tensor["shape"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return found


def refuse_what_leads_out(folder: Path, name: str) -> None:
    """Raise CheckpointError if a link in a checkpoint folder points to a file outside the allowed folders."""
    for file in folder.rglob("*"):
        if file.is_file() and not config.within(file):
            raise CheckpointError(
                f"Every file of a checkpoint must be in a folder that this app may read; {file.name[:80]} of "
                f"{name} links to a file outside such folders. Copy that file into the folder of the checkpoint."
            )


def refuse_half_a_checkpoint(folder: Path, name: str) -> None:
    """Raise CheckpointError if a folder has no tokenizer, or config.json names another file of weights."""
    if read_config(folder, name).get("transformers_weights"):
        raise CheckpointError(
            f"The weights must be in {WEIGHT_FILE}; the entry transformers_weights in config.json of {name} names "
            "another file. Remove this entry."
        )
    if not has_tokenizer(folder):
        raise CheckpointError(
            f"A checkpoint must contain its tokenizer; {name} has none, so every word would be unknown. Save the "
            "tokenizer into the folder of the checkpoint."
        )


def has_tokenizer(folder: Path) -> bool:
    """Return whether a folder contains the vocabulary of a tokenizer."""
    return any(file.is_file() for pattern in _VOCABULARIES for file in folder.glob(pattern))


def marks_of(files: Sequence[Path]) -> tuple[tuple[int, ...], ...]:
    """Return the size, times and file system IDs of each file, to detect whether the file has changed."""
    statuses = [file.stat() for file in files]
    return tuple(
        (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns) for status in statuses
    )


@lru_cache(maxsize=64)
def hash_of_files(files: tuple[Path, ...], marks: tuple[tuple[int, ...], ...]) -> str:
    """Return the SHA-256 hash of several files. The hash is cached until `marks` (such as sizes and times) change."""
    digest = hashlib.sha256()
    for file in files:
        with open_in(file.parent, file.name) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
