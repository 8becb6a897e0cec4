"""DuckDB's log beside the file, read without DuckDB: which transactions are whole in it, and whether it was folded in.

The log is a heading, then entries: their length, a checksum (8 bytes each, little-endian) and their content; an entry
of its own ends each transaction. A fold first writes an entry that names the root block of the file as it will be, then
the file's new heading, and removes the log last: a log whose entry names the root that the file has is folded in.
"""

import mmap
from dataclasses import dataclass
from pathlib import Path

_COMMIT = bytes.fromhex("640064ffff")  # the entry that ends a transaction
_FOLD = bytes.fromhex("6400636500")  # the start of the entry that names a root block
_BLOCK = bytes.fromhex("6400")  # before the block's number; a block 0 is left out
_HEADING = bytes.fromhex("640062")  # the start of every log
_LONGEST_HEADING = 128  # bytes of a log before its first entry
_HEADERS = (4096, 8192)  # where a database file has its two headings, the newer one in force


@dataclass(frozen=True)
class LogContent:
    """What can be read of a log.

    Attributes:
        size: bytes of the log.
        whole: bytes up to the end of the last whole transaction; None where there is none.
        end: the same, or the end of a fold's entry behind it.
        root: the root block that a fold's entry names; None without one.
        is_torn: the log begins like one, and no transaction ends in it: a kill inside the first write leaves this.
    """

    size: int
    whole: int | None
    end: int | None
    root: int | None
    is_torn: bool


def read_log(log: Path) -> LogContent:
    """What can be read of `log`, which is not empty. Raises OSError."""
    with log.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        ends = [_ends(data, start) for start in range(8, min(_LONGEST_HEADING, len(data)))]
        whole, end, root = max(ends, key=lambda each: each[1] or 0, default=(None, None, None))
        is_torn = _HEADING.startswith(data[: len(_HEADING)]) and data.find(_COMMIT) < 0
        return LogContent(len(data), whole, end, root, is_torn)


def _ends(data: mmap.mmap, start: int) -> tuple[int | None, int | None, int | None]:
    """As if the first entry were at `start`: the end of the last whole transaction, of a fold's, and its root block."""
    position, whole, end, root, fold = start, None, None, None, None
    while position + 16 <= len(data):
        length = int.from_bytes(data[position : position + 8], "little")
        if not 0 < length <= len(data) - position - 16:
            break
        content, position = data[position + 16 : position + 16 + min(length, 64)], position + 16 + length
        if content.startswith(_FOLD):
            fold = _block_of(content)
        elif length == len(_COMMIT) and content == _COMMIT:
            end, root = position, fold
            whole, fold = (whole if fold is not None else position), None
    return whole, end, root


def _block_of(content: bytes) -> int:
    """The root block that a fold's entry names, a number of 7 bits a byte."""
    rest, number = content[len(_FOLD) :], 0
    if rest.startswith(_BLOCK):
        for index, byte in enumerate(rest[len(_BLOCK) : len(_BLOCK) + 10]):
            number |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                break
    return number


def root_block(path: Path) -> int | None:
    """The root block of the database file at `path`: checksum, iteration and root stand first in each of two headings.

    None where the file is too short to have them. Raises OSError.
    """
    with path.open("rb") as stream:
        data = stream.read(_HEADERS[-1] + 24)
    if len(data) < _HEADERS[-1] + 24:
        return None
    numbers = [(_number(data, header + 8), _number(data, header + 16)) for header in _HEADERS]
    return max(numbers)[1]


def _number(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "little")
