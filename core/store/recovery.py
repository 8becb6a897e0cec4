"""One-message explanations of errors of the database file, and copies of a damaged log.

DuckDB keeps the latest writes in `<file>.wal` until a checkpoint. It silently skips a log that it cannot read, and
those writes would be lost at the next start. Here that is an error, and a copy of the log is kept.
"""

import contextlib
import errno
import hashlib
import math
import mmap
import os
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from ..errors import StoreError

# ---------------------------------------------------------------- parsing DuckDB's log


_COMMIT = bytes.fromhex("640064ffff")  # entry that ends a transaction
_FOLD = bytes.fromhex("6400636500")  # start of the entry that names a root block
_BLOCK = bytes.fromhex("6400")  # before the block number; omitted for block 0
_HEADING = bytes.fromhex("640062")  # start of every log
_LONGEST_HEADING = 128  # bytes of a log before its first entry
_HEADERS = (4096, 8192)  # positions of the two headers of a database file; the newer one is valid


@dataclass(frozen=True)
class LogContent:
    """The size of the write-ahead log of a database, and how much of the log can be read.

    Attributes:
        size: bytes.
        whole: bytes up to the end of the last complete transaction, or None.
        end: like `whole`, but including a checkpoint entry after it.
        root: root block of the checkpoint entry, or None.
        is_torn: the log starts correctly but has no complete transaction, as after a kill during the first write.
    """

    size: int
    whole: int | None
    end: int | None
    root: int | None
    is_torn: bool


def read_log(log: Path) -> LogContent:
    """Parse the write-ahead log of a database. Raises OSError if the log cannot be read."""
    with log.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        ends = [_ends(data, start) for start in range(8, min(_LONGEST_HEADING, len(data)))]
        whole, end, root = max(ends, key=lambda each: each[1] or 0, default=(None, None, None))
        is_torn = _HEADING.startswith(data[: len(_HEADING)]) and data.find(_COMMIT) < 0
        return LogContent(len(data), whole, end, root, is_torn)


def _ends(data: mmap.mmap, start: int) -> tuple[int | None, int | None, int | None]:
    """Return the ends of the last transaction and of a checkpoint, and its root block."""
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
    """Decode the root block of a checkpoint entry: 7 bits in each byte."""
    rest, number = content[len(_FOLD) :], 0
    if rest.startswith(_BLOCK):
        for index, byte in enumerate(rest[len(_BLOCK) : len(_BLOCK) + 10]):
            number |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                break
    return number


def root_block(path: Path) -> int | None:
    """Return the number of the root block of a DuckDB file, as stated in the newer of its two file headers. Return None
    if the file is too short."""
    with path.open("rb") as stream:
        data = stream.read(_HEADERS[-1] + 24)
    if len(data) < _HEADERS[-1] + 24:
        return None
    numbers = [(_number(data, header + 8), _number(data, header + 16)) for header in _HEADERS]
    return max(numbers)[1]


def _number(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "little")


STOPPED = "database has been invalidated"  # DuckDB's message for: no statement works until the file is reopened
_QUOTA = re.compile(r"No space left|File too large|Disk quota")
_DISK = re.compile(
    "fsync failed|Could not fsync|"
    + "|".join(
        re.escape(os.strerror(number))
        for number in (errno.EIO, errno.ESTALE, errno.ENXIO, errno.ENODEV, errno.ENOTCONN, errno.ETIMEDOUT)
    )
)
_NO_LOCKS = re.compile(r"Could not set lock(?!.*lock is held in (?!PID 0\b))")  # DuckDB names the process that has one
_RIGHTS = re.compile(r"Permission denied|Operation not permitted|Read-only|read-only")
_TROUBLE = re.compile(rf"Could not |Cannot open file|Corrupt database file|{_QUOTA.pattern}|{_DISK.pattern}")
# DuckDB's message for: the cursor was closed, or its rows were dropped
LET_GO = re.compile(r"already closed|No open result set")
_HELD = re.compile(r"lock is held in (?P<program>.+?) \(PID (?P<pid>\d+)\)")


class LockedError(StoreError):
    """Exception that is raised if another process (`holder`) has the database file open."""

    def __init__(self, message: str, holder: str):
        super().__init__(message)
        self.holder = holder


def backups(path: Path) -> Path:
    """Return the folder for backups of a database, which is next to the database file."""
    return path.parent / "backups"


def explain(error: BaseException, path: Path) -> StoreError:
    """Convert an error about a database file, from DuckDB or the operating system, to a StoreError with a message for
    users."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if _NO_LOCKS.search(text):
        return StoreError(
            f"The database {path} must be on a file system with file locks, which network and cloud folders often "
            "lack; no lock could be set. Choose a file on a local disk with --db or ATLAS_DB."
        )
    if "lock" in text and "Could not set lock" in text:
        holder = _HELD.search(text)
        who = f"process {holder['pid']} ({Path(holder['program']).name})" if holder else "another process"
        return LockedError(
            f"Only one process can open the database {path}; {who} has it open. Stop that process, or choose another "
            "file with --db or ATLAS_DB.",
            who,
        )
    if _QUOTA.search(str(error)):  # also the reason for a stop
        return StoreError(
            f"The database {path} needs space to grow, but its disk is full. Free some space and repeat the last "
            "step; everything stored before is safe."
        )
    if reason := _DISK.search(str(error)):
        return StoreError(
            f"The disk or network folder of the database {path} failed ({reason[0]}), so nothing of the last step has "
            "been stored. Check the disk or mount, and repeat the last step."
        )
    if STOPPED in text:
        return StoreError(
            f"The database {path} stopped after a failed write, often because the disk is full. Repeat the last "
            "step; everything stored before is safe."
        )
    if LET_GO.search(text):
        return StoreError(
            f"The database {path} was closed while it was being read. Repeat the last step; everything stored is safe."
        )
    if _RIGHTS.search(text):
        return StoreError(
            f"The database {path} must be writable; it is read-only. Make the file and its folder writable for "
            "this user, or choose another file with --db or ATLAS_DB."
        )
    if "WAL" in text:
        log = path.with_name(path.name + ".wal")
        return StoreError(
            f"The log {log} contains the latest writes but is damaged. To open the database without "
            f"these writes, move {log.name} to another folder. A copy of the log is in {backups(path)}."
        )
    if re.search(r"version number|newer version of DuckDB|future version", text):
        return StoreError(
            f"The database {path} must have the format of DuckDB {duckdb.__version__}; another version wrote it. "
            "Install the version that wrote it (see requirements.txt), or choose another file with --db or "
            "ATLAS_DB."
        )
    if re.search(r"Is a directory|Cannot open file|Could not read from file", text):
        return StoreError(
            f"The database must be a file; {path} cannot be opened ({text.split(': ')[-1]}). Choose another file "
            "with --db or ATLAS_DB."
        )
    if isinstance(error, duckdb.Error) and re.search(r"Could not write", text):
        return StoreError(
            f"The database {path} must be writable; a write failed ({text}), and nothing was "
            "stored. Check the disk and repeat the last step."
        )
    return StoreError(
        f"The database {path} is damaged or not a DuckDB file ({text[:120]}). Move it away to start with an empty "
        f"one, or restore a copy from {backups(path)}."
    )


def is_of_file(error: duckdb.Error) -> bool:
    """Return whether a DuckDB error concerns the database file or its disk, and not the SQL statement."""
    if isinstance(error, (duckdb.IOException, duckdb.FatalException)):
        return True
    if type(error) in {duckdb.Error, duckdb.TransactionException}:  # a damaged block; a failed commit
        return bool(_TROUBLE.search(str(error)) or ("Failed to commit" in str(error) and _RIGHTS.search(str(error))))
    return bool(re.search(r"Could not (write|read|sync|truncate)|No space left|File too large", str(error)))


class LogCopy:
    """A backup of the write-ahead log of a database, made before DuckDB reads the log. It is deleted if DuckDB reads
    the whole log.

    If one connection commits during the checkpoint of another, DuckDB writes a second log (`.wal.checkpoint`), whose
    incomplete end it also skips. Raises StoreError if the log cannot be copied, or has no database next to it.
    """

    def __init__(self, path: Path):
        self.path = path
        self.copy: Path | None = None
        self._torn: tuple[int, Path] | None = None  # bytes of the second log without a complete write, and its copy
        log = self._log
        try:
            self._keep_torn(log.with_name(log.name + ".checkpoint"))
            if log.is_file() and log.stat().st_size > 0:
                self._must_have_database(log)
                self._root = root_block(path)
                self.copy = copied(log, _named_by_content(log, backups(path)))
        except (FileExistsError, NotADirectoryError) as error:
            raise StoreError(
                f"The log of the database {path} must be copied to the folder {backups(path)} before it is read; "
                "this path is not a folder. Move the file at this path away, and start the program again."
            ) from error
        except OSError as error:
            raise explain(error, path) from error

    @property
    def _log(self) -> Path:
        return self.path.with_name(self.path.name + ".wal")

    def _keep_torn(self, second: Path) -> None:
        """Copy the second log if it has bytes after its last complete write. Raises OSError."""
        if second.is_file() and second.stat().st_size > 0:
            content = read_log(second)
            if not content.is_torn and (lacking := content.size - (content.end or 0)):
                self._torn = lacking, copied(second, _named_by_content(second, backups(self.path)))

    def _must_have_database(self, log: Path) -> None:
        if not self.path.exists():
            raise StoreError(
                f"The log {log} contains the latest writes of a database, but the database file {self.path} is "
                f"missing. Put this file back. To start with an empty database, move {log.name} to another folder."
            )

    def discard_unless(self, *, damaged: bool) -> None:
        if self.copy and not damaged:
            self.copy.unlink(missing_ok=True)

    def check(self, connection: duckdb.DuckDBPyConnection) -> str | None:
        """Check whether DuckDB read the whole log. If not, keep the backup of the log and return a warning; otherwise
        return None.

        Raises StoreError if nothing was read of a log with content; `connection` is then closed.
        """
        if self.copy is None:
            return self._notice(self._torn)
        content = read_log(self.copy)
        ((size,),) = connection.execute("SELECT wal_size FROM pragma_database_size()").fetchall()
        low, high = _bytes(str(size))
        is_folded = content.root is not None and content.root == self._root
        if high == 0 and not is_folded and not content.is_torn:
            connection.close()
            raise self._unread()
        lacking = content.size - self._read_of(content, low, high, is_folded=is_folded)
        if lacking == 0:
            self.discard_unless(damaged=False)
            return self._notice(self._torn)
        return self._notice((lacking, self.copy))

    @staticmethod
    def _notice(torn: tuple[int, Path] | None) -> str | None:
        if torn is None:
            return None
        return (
            f"The last {torn[0]} bytes of the database's log could not be read, as after a crash during a write. "
            f"A copy of the log is {torn[1]}."
        )

    @staticmethod
    def _read_of(content: LogContent, low: int, high: int, *, is_folded: bool) -> int:
        """Return how many bytes of the log are in the database. low, high: the least and most that DuckDB reports."""
        ends = [end for end in (content.whole, content.end) if end is not None and low <= end <= high]
        if content.end is not None and (is_folded or ends):
            return content.end
        return min(content.size, high)  # torn, or an unknown format of the log

    def _unread(self) -> StoreError:
        log = self._log
        if self.copy and not log.exists():
            shutil.copy2(self.copy, log)
        return StoreError(
            f"The log {log} contains the latest writes but cannot be read. To open the database "
            f"without these writes, move {log.name} to another folder. A copy of the log is {self.copy}."
        )


def stamp() -> str:
    """Return the current time in UTC as text for file names."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")


def _named_by_content(log: Path, folder: Path) -> Path:
    """Return the path of a log's copy, named by its content."""
    with log.open("rb") as stream:
        content = hashlib.file_digest(stream, "blake2b").hexdigest()[:16]
    return folder / f"{log.name}.{content}.unread"


def copied(source: Path, copy: Path) -> Path:
    """Copy a file to a path, and return the path. A missing folder is created. Raises OSError if the file cannot be
    copied."""
    try:
        copy.parent.mkdir(exist_ok=True)
        shutil.copy2(source, copy)
    except OSError:
        with contextlib.suppress(OSError):
            copy.unlink(missing_ok=True)
        raise
    return copy


def _bytes(size: str) -> tuple[int, int]:
    """Return the least and most bytes that DuckDB means by "2.2 MiB", which it truncates to one decimal."""
    number, unit = size.split()
    scale = {"byte": 1, "bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}[unit]
    if scale == 1:
        return int(number), int(number)
    return math.floor((float(number) - 0.1) * scale), math.ceil((float(number) + 0.1) * scale)
