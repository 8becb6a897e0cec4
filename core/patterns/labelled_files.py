"""Reading and validation of maps and labels in user files.

The directory of an .npz file (a zip archive) is checked before unpacking, so that too many entries or a decompression
bomb is refused. Pickled objects are never loaded.
"""

import os
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Float32

from ..errors import InputError
from ..reading import json_line, lines_of, open_file, read_text

MOST_MAPS = 50_000
MOST_BYTES = 4 * 2**30  # unpacked, for all maps together
LONGEST_MAP = 4096  # tokens
MOST_LABEL_BYTES = 200 * 2**20
ROW_SUM_TOLERANCE = 0.02  # float16 weights sum to 1 within 0.01
END_OF_DIRECTORY, END_BYTES, COMMENT_BYTES = b"PK\x05\x06", 22, 65_535
ENTRY_BYTES = 46 + 1024  # directory entry: a header, a name and a margin
HEAD_IN_KEY = re.compile(r"-l\d+-h\d+$")
ENCRYPTED = 1  # bit of a zip entry's flags
Map = Float32[np.ndarray, "_query _key"]


@dataclass(frozen=True)
class GivenLabel:
    """A line in a label file: the class of an attention map and, optionally, the number of tokens in the map (`length`)
    and the name of its head."""

    key: str
    name: str
    length: int | None = None
    head: str | None = None

    @property
    def map_input(self) -> str:
        return self.key.split("-", 1)[0]


def heads_of(labels: Sequence[GivenLabel]) -> list[str] | None:
    """Return the head name of each labelled map. If any head is unknown, return None instead of the list."""
    heads = []
    for label in labels:
        in_key = HEAD_IN_KEY.search(label.key)
        head = label.head or (in_key.group(0) if in_key else None)
        if head is None:
            return None
        heads.append(head)
    return heads


def read_map_file(file: Path) -> dict[str, Map]:
    """Read attention maps from an .npz file. Returns a dictionary of float32 arrays whose rows sum to 1.

    Raises InputError if the file is not such an archive, is too large, or contains anything but maps.
    """
    maps: dict[str, Map] = {}
    try:
        stream = open_file(file)
    except OSError as error:
        raise InputError(
            f"A map file must be readable; {file} cannot be opened ({error.strerror}). Check its name."
        ) from error
    try:
        with stream:
            _check_directory(file, stream)
            with np.load(stream, allow_pickle=False) as held:
                for key in held.files:
                    maps[key] = _checked_map(key, _array(file, held, key))
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error) as error:
        raise _not_an_archive(file) from error  # RuntimeError: unsupported compression in zipfile
    if not maps:
        raise InputError(
            f"A map file must contain at least one map; {file.name} contains none. Save your maps with numpy.savez."
        )
    return maps


def _not_an_archive(file: Path) -> InputError:
    return InputError(
        f"A map file must be an intact NumPy archive (.npz); {file.name} is damaged or has another format. Write it "
        "again with numpy.savez."
    )


def _check_directory(file: Path, stream: BinaryIO) -> None:
    """Raise InputError if the archive's directory has too many entries or bytes; leave the stream at its start."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - END_BYTES - COMMENT_BYTES))
    tail = stream.read()
    at = tail.rfind(END_OF_DIRECTORY)
    if at < 0 or len(tail) - at < END_BYTES:
        raise _not_an_archive(file)
    _, entries, directory = struct.unpack("<HHI", tail[at + 8 : at + 16])
    if entries > MOST_MAPS or directory > MOST_MAPS * ENTRY_BYTES:
        raise InputError(
            f"A map file must have at most {MOST_MAPS:,} maps; {file.name} has more. Split it into smaller files."
        )
    try:
        with zipfile.ZipFile(stream) as archive:
            entries_there = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise _not_an_archive(file) from error
    count, whole = len(entries_there), sum(entry.file_size for entry in entries_there)
    locked = [entry.filename for entry in entries_there if entry.flag_bits & ENCRYPTED]
    if locked:
        raise InputError(
            f"A map file must not be encrypted; {locked[0][:60]!r} in {file.name} is encrypted. Write the file with "
            "numpy.savez."
        )
    names = Counter(entry.filename.removesuffix(".npy") for entry in entries_there)
    if names and (often := names.most_common(1)[0])[1] > 1:
        raise InputError(
            f"Map names must be unique; {file.name} has two maps called {often[0][:60]!r}. Rename one of the two maps."
        )
    if count > MOST_MAPS:
        raise InputError(
            f"A map file must have at most {MOST_MAPS:,} maps; {file.name} has {count:,}. Split it into smaller files."
        )
    if whole > MOST_BYTES:
        raise InputError(
            f"The maps in a file must take up at most {MOST_BYTES // 2**30} GB of memory; the maps in {file.name} take "
            f"up {whole / 2**30:.1f} GB. Split the file into smaller files."
        )
    stream.seek(0)


def _array(file: Path, held: Any, key: str) -> Any:
    try:
        return held[key]
    except ValueError as error:  # numpy refuses objects and invalid headers
        raise InputError(
            f"A map file must contain arrays of plain numbers, without pickled objects; {key[:60]!r} in {file.name} "
            "cannot be read. Save it as an array of floats."
        ) from error
    except (MemoryError, OverflowError) as error:
        raise InputError(
            f"A map must have at most {LONGEST_MAP} tokens; {key[:60]!r} has more. Crop this map."
        ) from error


def _checked_map(key: str, array: Any) -> Map:
    """Return the array as float32. Raises InputError, naming the map, if it is not an attention map."""
    where = f"the map {key[:60]!r}"
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        shape = getattr(array, "shape", "none")
        raise InputError(
            f"A map must be a square array (queries by keys); {where} has the shape {shape}. Save each map as its own "
            "array."
        )
    if not np.issubdtype(array.dtype, np.floating):
        raise InputError(
            f"A map must be an array of floats; {where} is of type {array.dtype}. Convert it to an array of floats."
        )
    if len(array) > LONGEST_MAP:
        raise InputError(f"A map must have at most {LONGEST_MAP} tokens; {where} has {len(array)}. Crop this map.")
    weights = array.astype(np.float32)
    wrong = weights[~(np.isfinite(weights) & (weights >= 0))]
    if wrong.size:
        raise InputError(
            f"Attention weights must be from 0 to 1; {where} has the weight {wrong[0]:g}. Check how this map was "
            "computed."
        )
    sums = weights.sum(1)
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > ROW_SUM_TOLERANCE:
        raise InputError(
            f"Every row of a map must sum to 1; row {worst + 1} of {where} sums to {sums[worst]:.3f}. Crop the "
            "padding and turn dropout off, or divide each row by its sum."
        )
    return weights / sums[:, None]


def read_label_file(file: Path, classes: Collection[str], class_set: str) -> list[GivenLabel]:
    """Read the labels of attention maps from a JSON Lines file.

    Each line is {"key", "class"}, optionally with "length", "head" and "class_set". Exports have "map_id" instead of
    "key". Raises InputError if the file cannot be read, is too large or empty, or has an invalid or duplicate line.
    """
    try:
        if file.stat().st_size > MOST_LABEL_BYTES:
            raise InputError(
                f"A label file must not be larger than {MOST_LABEL_BYTES // 2**20} MB; {file.name} is larger. Split "
                "the file."
            )
        lines = lines_of(read_text(file))
    except OSError as error:
        raise InputError(
            f"A label file must be a readable JSON Lines file; {file.name[:120]} cannot be read "
            f"({error.strerror or error}). Check its name."
        ) from error
    labels: dict[str, GivenLabel] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            label = _label(line, f"line {number} of {file.name}", classes, class_set)
            if label.key in labels:
                raise InputError(
                    f"Each map must have only one label; line {number} of {file.name} labels {label.key[:60]!r} again. "
                    "Keep one of the two lines."
                )
            labels[label.key] = label
    if not labels:
        raise InputError(
            f"A label file must have at least one label; {file.name} has none. Add lines with the fields key and class."
        )
    return list(labels.values())


def _label(line: str, where: str, classes: Collection[str], class_set: str) -> GivenLabel:
    try:
        if not isinstance(row := json_line(line), dict):
            raise ValueError(line)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"Each line of a label file must be a JSON object; {where} is not a JSON object. Correct the line."
        ) from error
    if "key" not in row and isinstance(row.get("map_id"), str):
        row["key"] = row["map_id"]  # as in exports of the app
    if not isinstance(row.get("key"), str) or not isinstance(row.get("class"), str):
        raise InputError(
            f'A label must have the fields "key" and "class", both strings; {where} does not have both. Write '
            '{"key": ..., "class": ...}.'
        )
    if row.get("class_set", class_set) != class_set:
        raise InputError(
            f'The class set of a label must be that of the classifier, "{class_set}"; {where} has '
            f"{str(row['class_set'])[:60]!r}. Choose a classifier trained on the class set of the labels."
        )
    name = row["class"].strip().lower()
    if name not in classes:
        raise InputError(
            f"A label must be one of {', '.join(classes)}; {where} has {row['class'][:60]!r}. Correct it, or "
            "choose a classifier trained on that class."
        )
    length = row.get("length")
    if isinstance(length, float) and length.is_integer():  # pandas, in a column with missing values
        length = int(length)
    if length is not None and (not isinstance(length, int) or isinstance(length, bool) or length < 1):
        raise InputError(
            f"The field length must be a whole number of at least 1; {where} has the length {str(length)[:60]!r}. "
            "Correct it."
        )
    head = row.get("head")
    if head is not None and not isinstance(head, (str, int)):
        raise InputError(
            f"The head of a labelled map must be a name or a number; {where} has {str(head)[:60]!r}. Correct the head."
        )
    return GivenLabel(row["key"], name, length, None if head is None else str(head))


def matched(maps: dict[str, Map], labels: list[GivenLabel]) -> list[Map]:
    """Return the attention map of each label, in the order of the labels. Raises InputError if a map is missing or does
    not have the length that the label states."""
    for label in labels:
        if label.key not in maps:
            raise InputError(
                f"Every label must belong to a map in the map file; there is no map called {label.key[:60]!r}. Correct "
                "the key in the label file."
            )
        if label.length not in (None, len(maps[label.key])):
            raise InputError(
                f"The length in the label file must be the number of tokens in the map; the map {label.key[:60]!r} has "
                f"{len(maps[label.key])} tokens, but the label file has length {label.length}. Choose two files that "
                "belong together."
            )
    return [maps[label.key] for label in labels]
