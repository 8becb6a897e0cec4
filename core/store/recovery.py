"""What went wrong with the file, in one sentence; and a copy of its log, so that recovery can be tried again.

DuckDB keeps the latest writes in `<file>.wal` until it folds them in. A log that it cannot read is skipped
silently, and the writes in it are lost at the next start; here that is an error, and the log is kept.
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

# ---------------------------------------------------------------- duckDB's log beside the file, read without DuckDB


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


STOPPED = "database has been invalidated"  # DuckDB's words for: nothing more until the file is opened again
_QUOTA = re.compile(r"No space left|File too large|Disk quota")
_DISK = re.compile(
    "fsync failed|Could not fsync|"
    + "|".join(
        re.escape(os.strerror(number))
        for number in (errno.EIO, errno.ESTALE, errno.ENXIO, errno.ENODEV, errno.ENOTCONN, errno.ETIMEDOUT)
    )
)
_NO_LOCKS = re.compile(r"Could not set lock.*(File locks are not supported|PID 0\b)")
_RIGHTS = re.compile(r"Permission denied|Operation not permitted|Read-only|read-only")
_TROUBLE = re.compile(rf"Could not |Cannot open file|Corrupt database file|{_QUOTA.pattern}|{_DISK.pattern}")
LET_GO = re.compile(r"already closed|No open result set")  # its words for: the cursor was closed, or its rows dropped
_HELD = re.compile(r"lock is held in (?P<program>.+?) \(PID (?P<pid>\d+)\)")


class LockedError(StoreError):
    """Another process holds the file. holder: which, in words."""

    def __init__(self, message: str, holder: str):
        super().__init__(message)
        self.holder = holder


def backups(path: Path) -> Path:
    """The folder beside the database where copies of it are kept."""
    return path.parent / "backups"


def explain(error: BaseException, path: Path) -> StoreError:
    """The StoreError, one sentence, that says what DuckDB or the system meant about the file at `path`."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if _NO_LOCKS.search(text):
        return StoreError(
            f"The database {path} must be in a folder whose file system has locks, but no lock could be set: network "
            "and cloud folders often have none, or a process on another machine holds the file. Choose a file on a "
            "local disk with --db or ATLAS_DB."
        )
    if "lock" in text and "Could not set lock" in text:
        return _held(text, path)
    if _QUOTA.search(str(error)):  # also as the reason why it stopped
        return StoreError(
            f"The database {path} needs room to grow but its disk is full; free some space and do the last step "
            "again, nothing stored before is affected."
        )
    if reason := _DISK.search(str(error)):
        return StoreError(
            f"The disk or the network folder of the database {path} failed ({reason[0]}): nothing of the last step is "
            "stored, and what was stored before is as it was; see that the disk works or the folder is mounted, and do "
            "the last step again."
        )
    if STOPPED in text:
        return StoreError(
            f"The database {path} stopped at a write that failed, often for a full disk; do the last step again, "
            "nothing stored before is affected."
        )
    if LET_GO.search(text):
        return StoreError(
            f"The database {path} was let go of while it was being read; do the last step again, nothing stored is "
            "affected."
        )
    if _RIGHTS.search(text):
        return StoreError(
            f"The database {path} must be writable but is read-only here; give this user write access to the file "
            "and its folder, or choose another with --db or ATLAS_DB."
        )
    if "WAL" in text:
        log = path.with_name(path.name + ".wal")
        return StoreError(
            f"The log {log} holds the latest writes but is damaged (copied to {backups(path)}); move {log.name} "
            "away to open the database without them."
        )
    if re.search(r"version number|newer version of DuckDB|future version", text):
        return StoreError(
            f"The database {path} was written by another version of DuckDB than {duckdb.__version__}; install the "
            "version that wrote it (see requirements.txt), or choose another file with --db or ATLAS_DB."
        )
    if re.search(r"Is a directory|Cannot open file|Could not read from file", text):
        return StoreError(
            f"The database must be a file, but {path} cannot be opened as one ({text.split(': ')[-1]}); choose "
            "another with --db or ATLAS_DB."
        )
    if isinstance(error, duckdb.Error) and re.search(r"Could not write", text):
        return StoreError(f"The database {path} must be writable but a write failed ({text}); nothing was stored.")
    return StoreError(
        f"The database {path} is damaged or is no DuckDB file ({text[:120]}); move it away to start empty, or put "
        f"a copy from {backups(path)} in its place."
    )


def is_of_file(error: duckdb.Error) -> bool:
    """Whether DuckDB raised this for the file or its disk, and not for what it was asked."""
    if isinstance(error, (duckdb.IOException, duckdb.FatalException)):
        return True
    if type(error) in {duckdb.Error, duckdb.TransactionException}:  # a block that is damaged; a commit that failed
        return bool(_TROUBLE.search(str(error)) or ("Failed to commit" in str(error) and _RIGHTS.search(str(error))))
    return bool(re.search(r"Could not (write|read|sync|truncate)|No space left|File too large", str(error)))


def _held(text: str, path: Path) -> StoreError:
    holder = _HELD.search(text)
    who = f"process {holder['pid']} ({Path(holder['program']).name})" if holder else "another process"
    return LockedError(
        f"One process at a time may hold the database {path}, and {who} holds it now; stop that one, or choose "
        "another file with --db or ATLAS_DB.",
        who,
    )


class LogCopy:
    """A copy of the log of `path`, kept only when DuckDB could not read it whole; one log has one copy.

    Where one connection folds and another commits meanwhile, DuckDB writes a second log (`.wal.checkpoint`): a copy of
    it is kept where its end is missing, which DuckDB passes over.

    Raises:
        StoreError: when there is a log and no copy of it can be made, or no database beside it.
    """

    def __init__(self, path: Path):
        self.path = path
        self.copy: Path | None = None
        self._torn: tuple[int, Path] | None = None  # bytes of the second log that are no whole write, and its copy
        log = self._log
        try:
            self._keep_torn(log.with_name(log.name + ".checkpoint"))
            if log.is_file() and log.stat().st_size > 0:
                self._must_have_database(log)
                self._root = root_block(path)
                self.copy = copied(log, _named_by_content(log, backups(path)))
        except (FileExistsError, NotADirectoryError) as error:
            raise StoreError(
                f"The log of the database {path} is copied to the folder {backups(path)} before it is read, but "
                "something that is no folder lies there; move it away and start again, the database is sound."
            ) from error
        except OSError as error:
            raise explain(error, path) from error

    @property
    def _log(self) -> Path:
        return self.path.with_name(self.path.name + ".wal")

    def _keep_torn(self, second: Path) -> None:
        """Copy the second log where bytes behind its whole writes are no whole write. Raises OSError."""
        if second.is_file() and second.stat().st_size > 0:
            content = read_log(second)
            if not content.is_torn and (lacking := content.size - (content.end or 0)):
                self._torn = lacking, copied(second, _named_by_content(second, backups(self.path)))

    def _must_have_database(self, log: Path) -> None:
        if not self.path.exists():
            raise StoreError(
                f"The log {log} holds the latest writes of a database, but {self.path} is gone; put it back, or move "
                f"{log.name} away to start empty."
            )

    def discard_unless(self, *, damaged: bool) -> None:
        """Remove the copy, unless the log was `damaged`."""
        if self.copy and not damaged:
            self.copy.unlink(missing_ok=True)

    def check(self, connection: duckdb.DuckDBPyConnection) -> str | None:
        """What people should know of a log that was read in part, or None; the copy is kept then.

        Raises:
            StoreError: when nothing was read of a log that holds something; `connection` is closed.
        """
        if self.copy is None:
            return self._notice(self._torn)
        content, (low, high) = read_log(self.copy), _bytes(_log_size(connection))
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
            f"The last {torn[0]} bytes of the database's log could not be read, as after a crash in the middle of "
            f"a write; a copy of the log is {torn[1]}."
        )

    @staticmethod
    def _read_of(content: LogContent, low: int, high: int, *, is_folded: bool) -> int:
        """How many bytes of the log are in the database. low, high: the least and the most that DuckDB says it has."""
        ends = [end for end in (content.whole, content.end) if end is not None and low <= end <= high]
        if content.end is not None and (is_folded or ends):
            return content.end
        return min(content.size, high)  # torn, or a form of log that is not known here

    def _unread(self) -> StoreError:
        log = self._log
        if self.copy and not log.exists():
            shutil.copy2(self.copy, log)
        return StoreError(
            f"The log {log} holds the latest writes but cannot be read (a copy is {self.copy}); move {log.name} away "
            "to open the database without them."
        )


def stamp() -> str:
    """The time in UTC as part of a file's name, so that no copy takes the place of another."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")


def _named_by_content(log: Path, folder: Path) -> Path:
    """Where a copy of `log` goes: one place for one content."""
    with log.open("rb") as stream:
        content = hashlib.file_digest(stream, "blake2b").hexdigest()[:16]
    return folder / f"{log.name}.{content}.unread"


def copied(source: Path, copy: Path) -> Path:
    """`copy`, made whole with its folder, or not there at all. Raises OSError."""
    try:
        copy.parent.mkdir(exist_ok=True)
        shutil.copy2(source, copy)
    except OSError:
        with contextlib.suppress(OSError):
            copy.unlink(missing_ok=True)
        raise
    return copy


def _log_size(connection: duckdb.DuckDBPyConnection) -> str:
    return str(connection.execute("SELECT wal_size FROM pragma_database_size()").fetchall()[0][0])


def _bytes(size: str) -> tuple[int, int]:
    """The least and the most bytes that DuckDB means by "2.2 MiB": it says one decimal, and leaves the rest away."""
    number, unit = size.split()
    scale = {"byte": 1, "bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}[unit]
    if scale == 1:
        return int(number), int(number)
    return math.floor((float(number) - 0.1) * scale), math.ceil((float(number) + 0.1) * scale)
