"""The blocks of a DuckDB file, read without DuckDB: which of those in use are damaged.

DuckDB checks a block when it first reads it, so a damaged one may be met weeks after the file was opened. A file has
three headings of 4,096 bytes, then blocks of 256 KiB, each with a checksum of its other bytes at its start. The newer
of the second and third heading names the list of blocks that are free; what is in those means nothing.
"""

from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np

_HEADERS, _FIRST, _BLOCK = (4096, 8192), 12_288, 262_144
_PIECE = (_BLOCK - 8) // 64 // 8 * 8  # bytes of the 64 pieces of a block that lists lie in
_END = 2**64 - 1
_FACTOR, _START = np.uint64(0xBF58476D1CE4E5B9), np.uint64(5381)


def damaged_blocks(path: Path, free: int) -> list[int]:
    """Numbers of the blocks in use of a closed file that are not what was written, or not there.

    Returns:
        Zero-based numbers, rising; none where the list of free blocks is in a form that is not known here.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as stream:
        there = (path.stat().st_size - _FIRST) // _BLOCK
        count, unused = _heading(stream)
        if unused is None or free not in {len(unused), sum(number < there for number in unused)}:
            return []
        used = (number for number in range(count) if number not in unused)
        return [number for number in used if number >= there or not _is_sound(stream, number)]


def _heading(stream: BinaryIO) -> tuple[int, set[int] | None]:
    """How many blocks the file has, and which of them are free; None where that cannot be read."""
    headings = []
    for start in _HEADERS:
        stream.seek(start + 8)
        headings.append(np.frombuffer(stream.read(32).ljust(32, b"\0"), "<u8").tolist())
    _, _, pointer, count = max(headings)
    words: list[int] = []
    read: set[int] = set()
    while pointer != _END:
        if pointer in read:  # a circle
            return count, None
        read.add(pointer)
        stream.seek(_FIRST + (pointer & (2**56 - 1)) * _BLOCK + 8 + (pointer >> 56) * _PIECE)
        piece = np.frombuffer(stream.read(_PIECE), "<u8").tolist()
        if len(piece) < _PIECE // 8:
            return count, None
        pointer = piece[0]
        words += piece[1:]
    listed = words[1 : 1 + words[0]] if words else []
    rises = all(one < other for one, other in pairwise(listed))
    return count, set(listed) if len(listed) == (words[0] if words else 0) and rises else None


def _is_sound(stream: BinaryIO, number: int) -> bool:
    stream.seek(_FIRST + number * _BLOCK)
    words = np.frombuffer(stream.read(_BLOCK), "<u8")
    return bool(np.bitwise_xor.reduce(words[1:] * _FACTOR) ^ _START == words[0])
