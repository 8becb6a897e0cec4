"""Safe reading of user text files: opening, decoding, and splitting into lines."""

import codecs
import errno
import json
import math
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from . import config
from .errors import InputError

LARGEST = 512 * 2**20  # bytes of a file that is read whole
_MARKS = (  # longest first: the mark of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PROBE = 4096  # bytes used to detect UTF-16 without a byte order mark


def open_file(file: str | Path, *, given: bool = False) -> BinaryIO:
    """Open a regular file for reading. The file type is checked after opening, so that the file cannot be replaced
    after the check.

    Args:
        given: whether a user named the file. It must then be in an allowed folder, without links out of it.

    Raises:
        InputError: the file is not in an allowed folder, or the system cannot check this.
        OSError: the file cannot be opened, or is a folder, device or pipe.
    """
    path = config.inside(file) if given else Path(file)
    number = _open_inside(path) if given and config.settings().folders is not None else _open(path)
    try:
        mode = os.fstat(number).st_mode
        if not stat.S_ISREG(mode):
            code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(code, "Is a directory" if stat.S_ISDIR(mode) else "Not a regular file", str(file))
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def read_bytes(file: str | Path, *, most: int = LARGEST, given: bool = False) -> bytes:
    """Return the content of a file. Raises OSError for more than `most` bytes, and the errors of `open_file`."""
    with open_file(file, given=given) as stream:
        blocks, size = [], 0
        while block := stream.read(1 << 20):  # one read of `most` bytes would reserve that much memory first
            size += len(block)
            if size > most:
                raise OSError(errno.EFBIG, f"larger than {most >> 20} MB")
            blocks.append(block)
    return b"".join(blocks)


def open_in(folder: Path, name: str) -> BinaryIO:
    """Open a file in the folder of a checkpoint. Raises the errors of `open_file`. Unless the folder itself is outside
    the allowed folders, as for hub downloads, links out of the allowed folders are refused."""
    return open_file(folder / name, given=config.within(folder))


def read_in(folder: Path, name: str, *, most: int = LARGEST) -> bytes:
    """Return the content of a file in the folder of a checkpoint. Raises the errors of `open_in` and `read_bytes`."""
    return read_bytes(folder / name, most=most, given=config.within(folder))


def read_text(file: str | Path, *, most: int = LARGEST, given: bool = False) -> str:
    """Return the content of a file as text. Raises the errors of `read_bytes` and `decoded`."""
    return decoded(read_bytes(file, most=most, given=given), Path(file).name)


def decoded(data: bytes, name: str) -> str:
    """Decode a text file by its byte order mark, otherwise as UTF-16 if it looks like UTF-16, otherwise as UTF-8.
    Raises InputError if bytes are invalid or the file is not a text file."""
    if kind := next((kind for start, kind in _NO_TEXT if data.startswith(start)), None):
        raise InputError(f"{name} must be a text file; it is {kind}. Save its content as CSV or plain text.")
    encoding = encoding_of(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise _wrong_byte(data, error.start, name, encoding.removesuffix("-sig").upper()) from error
    if "\0" in text:
        place = len(text[: text.index("\0")].encode(encoding))
        raise _wrong_byte(data, place, name, "text")
    return text.lstrip("\ufeff")


def encoding_of(data: bytes) -> str:
    """Return the text encoding of a file's content: utf-8, utf-8-sig, utf-16, utf-16-le, utf-16-be or utf-32."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    even, odd = data[:_PROBE:2], data[1:_PROBE:2]
    for encoding, empty, letters in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if len(data) % 2 == 0 and empty.count(0) > 0.3 * len(empty) and letters.count(0) <= 0.05 * len(letters):
            return encoding
    return "utf-8"


def lines_of(text: str) -> list[str]:
    r"""Split a text at \n, \r\n and \r. Other separators, such as U+2028, remain part of a line."""
    return plain_ends(text).removesuffix("\n").split("\n")


def json_line(line: str | bytes) -> Any:
    """Parse a line of JSON. NaN, which pandas and json.dumps write for missing values, becomes None. Raises ValueError
    or RecursionError."""
    return json.loads(line, parse_constant={"Infinity": math.inf, "-Infinity": -math.inf}.get)


def plain_ends(text: str) -> str:
    r"""Replace all line endings of a text by \n."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


# ---------------------------------------------------------------- behind them

_NO_TEXT = (  # how files begin that people give in place of a text
    (b"PK\x03\x04", "a ZIP archive or an Excel file"), (b"\xd0\xcf\x11\xe0", "an Excel or Word file"),
    (b"\x1f\x8b\x08", "compressed by gzip"), (b"PAR1", "a Parquet file"), (b"%PDF-", "a PDF file"),
)  # fmt: skip
_FLAGS = os.O_RDONLY
for _name in ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY"):  # a pipe without a writer would block forever
    _FLAGS |= getattr(os, _name, 0)  # Windows lacks the first two, other systems the third


def _open(path: Path) -> int:
    try:
        return os.open(path, _FLAGS)
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, "not a path", str(path)[:120]) from error


def _open_inside(path: Path) -> int:
    """Open a file in a folder that users may access, one path component at a time, without following links.
    `config.inside` has resolved all links, so a component that is a link now was exchanged and is refused."""
    whole = path.resolve()
    root = next((folder for folder in config.roots() if whole.is_relative_to(folder)), None)
    if os.open not in os.supports_dir_fd:
        raise InputError(
            "ATLAS_FOLDERS works only on Linux and macOS; this is another system. Run the app on Linux or macOS, or "
            "unset ATLAS_FOLDERS."
        )
    if root is None:  # exchanged after the check by `config.inside`
        raise OSError(errno.ELOOP, "a link leads out of the folder", str(path)[:120])
    *folders, name = whole.relative_to(root).parts or (".",)
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = below
        return os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=at)
    finally:
        os.close(at)


def _wrong_byte(data: bytes, place: int, name: str, wanted: str) -> InputError:
    line = data.count(b"\n", 0, place) + 1
    return InputError(
        f"{name[:120]} must be text in UTF-8 or UTF-16; byte {place + 1} (0x{data[place]:02X}, line {line}) is not "
        f"{wanted}. Save the file as UTF-8."
    )
