"""Maps and labels that came as files from elsewhere, checked before anything is computed from them.

An .npz is a zip archive: its directory is read first, so that one with a million entries or with gigabytes behind a few
bytes is refused before anything is unpacked. Pickled objects are never loaded.
"""

import json
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from ..errors import InputError
from ..reading import lines_of, read_text

MOST_MAPS = 50_000
MOST_BYTES = 4 * 2**30  # unpacked, all maps together
LONGEST_MAP = 4096  # tokens
MOST_LABEL_BYTES = 200 * 2**20
ROW_SUM_TOLERANCE = 0.02  # of a row's sum around 1; float16 weights add up to within 0.01
END_OF_DIRECTORY, END_BYTES, COMMENT_BYTES = b"PK\x05\x06", 22, 65_535
ENTRY_BYTES = 46 + 1024  # of the directory: a header, a name and some room
HEAD_IN_KEY = re.compile(r"-l\d+-h\d+$")
ENCRYPTED = 1  # the bit of a zip entry's flags
Map = Float32[np.ndarray, "_query _key"]


@dataclass(frozen=True)
class GivenLabel:
    """One line of a label file.

    Attributes:
        length: tokens the map is said to have; None: it is not said.
        head: which head it is of; None: it is not said.
    """

    key: str
    name: str
    length: int | None = None
    head: str | None = None

    @property
    def map_input(self) -> str:
        """The input of the map: its key up to the first hyphen."""
        return self.key.split("-", 1)[0]


def heads_of(labels: Sequence[GivenLabel]) -> list[str] | None:
    """The head of each map: as its label says, else the end "-lLAYER-hHEAD" of its key; None where one says none."""
    heads = []
    for label in labels:
        in_key = HEAD_IN_KEY.search(label.key)
        head = label.head or (in_key.group(0) if in_key else None)
        if head is None:
            return None
        heads.append(head)
    return heads


def read_map_file(file: Path) -> dict[str, Map]:
    """Every map of an .npz archive.

    Args:
        file: that is read; key -> square float array whose rows sum to 1.

    Returns:
        The maps by key, float32, each row divided by its sum.

    Raises:
        InputError: the file is no such archive, is too large, holds objects, or holds anything but maps.
    """
    _check_directory(file)
    maps: dict[str, Map] = {}
    try:
        with np.load(file, allow_pickle=False) as held:
            for key in held.files:
                maps[key] = _checked_map(key, _array(file, held, key))
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error) as error:
        raise _not_an_archive(file) from error  # RuntimeError: zipfile's word for a method that it has not
    if not maps:
        raise InputError(f"A map file holds at least one map; {file.name} holds none: write some with numpy.savez.")
    return maps


def _not_an_archive(file: Path) -> InputError:
    return InputError(
        f"Maps are read from an .npz archive of numpy; {file.name} is none or is damaged: write it again with "
        "numpy.savez."
    )


def _check_directory(file: Path) -> None:
    """InputError unless the archive's own directory names a bearable number of entries and bytes."""
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            stream.seek(max(0, size - END_BYTES - COMMENT_BYTES))
            tail = stream.read()
    except OSError as error:
        raise InputError(
            f"Maps are read from a file; {file} cannot be opened ({error.strerror}): check its name."
        ) from (error)
    at = tail.rfind(END_OF_DIRECTORY)
    if at < 0 or len(tail) - at < END_BYTES:
        raise _not_an_archive(file)
    _, entries, directory = struct.unpack("<HHI", tail[at + 8 : at + 16])
    if entries > MOST_MAPS or directory > MOST_MAPS * ENTRY_BYTES:
        raise InputError(
            f"A map file holds at most {MOST_MAPS:,} maps; {file.name} says it holds more: split it into smaller files."
        )
    try:
        with zipfile.ZipFile(file) as archive:
            entries_there = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise _not_an_archive(file) from error
    count, whole = len(entries_there), sum(entry.file_size for entry in entries_there)
    _check_names(file, entries_there)
    if count > MOST_MAPS or whole > MOST_BYTES:
        raise InputError(
            f"A map file holds at most {MOST_MAPS:,} maps of {MOST_BYTES // 2**30} GB together; {file.name} holds "
            f"{count:,} of {whole / 2**30:.1f} GB: split it into smaller files."
        )


def _check_names(file: Path, entries: Collection[zipfile.ZipInfo]) -> None:
    """InputError for what is locked, and for two members under one name, of which only one would be read."""
    locked = [entry.filename for entry in entries if entry.flag_bits & ENCRYPTED]
    if locked:
        raise InputError(
            f"Maps are read without a password; {locked[0][:60]!r} of {file.name} is encrypted: write it with "
            "numpy.savez."
        )
    names = Counter(entry.filename.removesuffix(".npy") for entry in entries)
    if names and (often := names.most_common(1)[0])[1] > 1:
        raise InputError(f"A map has a name of its own; {file.name} has two called {often[0][:60]!r}: rename one.")


def _array(file: Path, held: Any, key: str) -> Any:
    try:
        return held[key]
    except ValueError as error:  # numpy refuses objects, and headers it cannot read
        raise InputError(
            f"A map file holds plain numbers only, no pickled objects; {key[:60]!r} of {file.name} cannot be read so: "
            "save it as a float array."
        ) from error
    except (MemoryError, OverflowError) as error:
        raise InputError(f"A map has at most {LONGEST_MAP} tokens; {key[:60]!r} says it has more: crop it.") from error


def _checked_map(key: str, array: Any) -> Map:
    """The array as float32; InputError, naming the map, when it is not an attention map."""
    where = f"the map {key[:60]!r}"
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        shape = getattr(array, "shape", "none")
        raise InputError(f"A map is square, [query, key]; {where} has the shape {shape}: save each map by itself.")
    if len(array) > LONGEST_MAP or not np.issubdtype(array.dtype, np.floating):
        raise InputError(
            f"A map is of floats and has at most {LONGEST_MAP} tokens; {where} is {len(array)} of {array.dtype}: "
            "convert or crop it."
        )
    weights = array.astype(np.float32)
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise InputError(f"Attention weights are numbers from 0 to 1; those of {where} are not: check how it was made.")
    sums = weights.sum(1)
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > ROW_SUM_TOLERANCE:
        raise InputError(
            f"Every row of a map sums to 1; row {worst + 1} of {where} sums to {sums[worst]:.3f}: crop the padding and "
            "turn dropout off, or divide each row by its sum."
        )
    return weights / sums[:, None]


def read_label_file(file: Path, classes: Collection[str], class_set: str) -> list[GivenLabel]:
    """Read the labels of a .jsonl file.

    Each line is {"key", "class"}, with "length", "head" and "class_set" where they are said. An exported file says
    "map_id" instead of "key".

    Args:
        file: that is read, in UTF-8 or UTF-16.

    Returns:
        The labels in the order of the lines, at least one.

    Raises:
        InputError: the file cannot be read, is too large or empty, or a line is not JSON, lacks a key, comes twice, or
            has another class or set.
    """
    try:
        if file.stat().st_size > MOST_LABEL_BYTES:
            raise InputError(
                f"A label file has at most {MOST_LABEL_BYTES // 2**20} MB; {file.name} has more: split it."
            )
        lines = lines_of(read_text(file))
    except OSError as error:
        raise InputError(
            f"Labels must be in a JSONL file; {file.name[:120]} cannot be read "
            f"({error.strerror or error}). Check its name."
        ) from error
    labels: dict[str, GivenLabel] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            label = _label(line, f"line {number} of {file.name}", classes, class_set)
            if label.key in labels:
                raise InputError(
                    f"A map is labelled once; line {number} of {file.name} labels {label.key[:60]!r} again."
                )
            labels[label.key] = label
    if not labels:
        raise InputError(
            f"A label file holds at least one label; {file.name} holds none: add lines with key and class."
        )
    return list(labels.values())


def _label(line: str, where: str, classes: Collection[str], class_set: str) -> GivenLabel:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"Each line of a label file is a JSON object; {where} is none: mend it.") from error
    if isinstance(row, dict) and "key" not in row and isinstance(row.get("map_id"), str):
        row["key"] = row["map_id"]  # as the app exports labels
    if not isinstance(row, dict) or not isinstance(row.get("key"), str) or not isinstance(row.get("class"), str):
        raise InputError(
            f'A label has "key" and "class" as texts; {where} has not: write {{"key": ..., "class": ...}}.'
        )
    if row.get("class_set", class_set) != class_set:
        raise InputError(
            f'The classifier knows the classes of "{class_set}"; {where} is of the set {str(row["class_set"])[:60]!r}: '
            "choose a classifier of that set."
        )
    name = row["class"].strip().lower()
    if name not in classes:
        raise InputError(
            f"A label is one of {', '.join(classes)}; {where} says {row['class'][:60]!r}: correct it, or choose a "
            "classifier that knows it."
        )
    length = row.get("length")
    if length is not None and (not isinstance(length, int) or isinstance(length, bool) or length < 1):
        raise InputError(f"A length is a whole number from 1; {where} says {str(length)[:60]!r}: correct it.")
    head = row.get("head")
    if head is not None and not isinstance(head, (str, int)):
        raise InputError(f"A head is named in a text or numbered; {where} says {str(head)[:60]!r}: correct it.")
    return GivenLabel(row["key"], name, length, None if head is None else str(head))


def matched(maps: dict[str, Map], labels: list[GivenLabel]) -> list[Map]:
    """The map of each label.

    Returns:
        Maps in the order of the labels.

    Raises:
        InputError: a label has no map, or says another length than its map has.
    """
    for label in labels:
        if label.key not in maps:
            raise InputError(f"Every label is of a map of the file; {label.key[:60]!r} is none: check its key.")
        if label.length not in (None, len(maps[label.key])):
            raise InputError(
                f"A map is as long as its label says; {label.key[:60]!r} has {len(maps[label.key])} tokens and its "
                f"label says {label.length}: pair the two files that belong together."
            )
    return [maps[label.key] for label in labels]
