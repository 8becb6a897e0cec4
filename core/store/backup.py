"""Backup of the database while it is in use, and restoring of backups.

Only one process can hold the file. Another process writes a request into the folder of runs, and the holder answers it
there. A backup is one file, into which the log is merged.
"""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import duckdb
import numpy as np

from ..config import command_line
from ..errors import StoreError
from ..writing import replacing, write_whole
from . import migrations
from .database import CONFIG, Database
from .exchange import runs_folder
from .recovery import LockedError, LogCopy, explain
from .rows import quoted

# ---------------------------------------------------------------- checksums of a DuckDB file's blocks


_HEADERS, _FIRST, _BLOCK = (4096, 8192), 12_288, 262_144
_PIECE = (_BLOCK - 8) // 64 // 8 * 8  # bytes of the 64 pieces of a block that lists lie in
_END = 2**64 - 1
_FACTOR, _START = np.uint64(0xBF58476D1CE4E5B9), np.uint64(5381)


def damaged_blocks(path: Path, free: int) -> list[int]:
    """Return the indices of damaged or missing blocks in a DuckDB file, in ascending order. No process may have the
    file open.

    Empty if the list of free blocks has an unknown format. Raises OSError if the file cannot be read.
    """
    with path.open("rb") as stream:
        there = (path.stat().st_size - _FIRST) // _BLOCK
        count, unused = _heading(stream)
        if unused is None or free not in {len(unused), sum(number < there for number in unused)}:
            return []
        used = (number for number in range(count) if number not in unused)
        return [number for number in used if number >= there or not _is_sound(stream, number)]


def _heading(stream: BinaryIO) -> tuple[int, set[int] | None]:
    """Return the number of blocks and the set of free ones; None for the latter if the list cannot be read."""
    headings = []
    for start in _HEADERS:
        stream.seek(start + 8)
        headings.append(np.frombuffer(stream.read(32).ljust(32, b"\0"), "<u8").tolist())
    _, _, pointer, count = max(headings)
    words: list[int] = []
    read: set[int] = set()
    while pointer != _END:
        if pointer in read:  # a cycle
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


ANSWER_SECONDS = 120.0  # copying a large file takes a while
LOOK_SECONDS = 0.05
_COPY = """
import shutil, sys
try:
    shutil.copyfile(sys.argv[1], sys.argv[2])
except OSError as error:
    sys.exit(str(error.errno))
"""
_REQUEST, _ANSWER = "backup-*.json", ".answer"


def back_up(db: Database, file: str | Path) -> int:
    """Copy the open database to a new file and verify the copy. Return the size of the copy in bytes.

    Nothing is written during the copy, so it contains every acknowledged label and no partial write. Raises StoreError
    if the file exists or cannot be written, or the database is damaged.
    """
    target = Path(file).expanduser().resolve()
    _must_be_new(target, "A backup")
    with replacing(target, StoreError) as part:
        log = part.with_name(part.name + ".wal")
        try:
            with db.still():
                copy_held(db.path, part)
                if (own := db.path.with_name(db.path.name + ".wal")).exists():
                    copy_held(own, log)
            try:
                with duckdb.connect(str(part), config=CONFIG) as connection:
                    connection.execute("CHECKPOINT")
            except duckdb.Error as error:
                if re.search(r"Could not (write|sync)|No space left|File too large|Disk quota", str(error)):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
                raise explain(error, part) from error
            _must_be_whole(part, db.path)
        finally:
            log.unlink(missing_ok=True)
    return target.stat().st_size


def copy_held(source: Path, target: Path) -> None:
    """Copy a file that this process has locked. A second process makes the copy. Raises OSError if copying fails.

    Closing a file descriptor in this process would release the lock (POSIX, fcntl), and a second process could write to
    the database.
    """
    copied = subprocess.run(  # noqa: S603 - this interpreter, and paths as arguments
        [sys.executable, "-I", "-S", "-c", _COPY, str(source), str(target)], capture_output=True, text=True, check=False
    )
    if copied.returncode:
        complaint = copied.stderr.strip()
        number = int(complaint) if complaint.isdecimal() else errno.EIO
        raise OSError(number, os.strerror(number))


def restore(file: str | Path, database: Path, *, say: Callable[[str], object] = lambda _: None) -> int:
    """Restore a backup file to a path where no database exists. Return the number of label events in the restored
    database.

    `file` was written by `back_up`, or is a database that was moved away; its log is read if it has one. `say` receives
    a message if a log could only be read in part. Raises StoreError if `file` is damaged, is not a database of this
    program or comes from a newer version, or `database` exists.
    """
    source, target = Path(file).expanduser().resolve(), database.expanduser().resolve()
    if not _is_file(source):
        raise StoreError(
            f"The backup to restore must be an existing file; there is no file at {source}. Correct the path."
        )
    _must_be_new(target, "A restored database")
    if log := next((log for log in _logs(target) if os.path.lexists(log)), None):
        raise StoreError(
            f"{log} is the log of an earlier database, and DuckDB would apply it to the restored one. Move this log to "
            "the folder of its own database, and restore again."
        )
    with replacing(target, StoreError) as part:
        part_logs = _logs(part)
        try:
            shutil.copyfile(source, part)
            if _logs(source)[0].exists():
                shutil.copyfile(_logs(source)[0], part_logs[0])
            events = _checked(part, source, say)
        finally:
            for log in part_logs:
                log.unlink(missing_ok=True)
        with part.open("rb+") as stream:
            os.fsync(stream.fileno())
        try:
            os.link(part, target)
        except FileExistsError:
            _must_be_new(target, "A restored database")
        except OSError:  # the file system has no hard links
            try:
                os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                _must_be_new(target, "A restored database")
    _verify(target, events)
    return events


def _logs(database: Path) -> list[Path]:
    """Return the paths of a database's log and of the logs that exist during a checkpoint."""
    return [database.with_name(database.name + ending) for ending in (".wal", ".wal.checkpoint", ".wal.recovery")]


def _verify(target: Path, events: int) -> None:
    """Open the restored database and check its content. Raises StoreError."""
    try:
        with duckdb.connect(str(target), config=CONFIG) as connection:
            found = connection.execute("SELECT count(*) FROM label_event").fetchall()[0][0]
    except duckdb.Error as error:
        why = explain(error, target)
        if isinstance(why, LockedError):  # the app has been started meanwhile and checks the database itself
            return
        raise why from error
    if found != events:
        raise StoreError(
            f"A restored database must contain the {events} label events of its backup; {target} contains {found}, "
            "because another program has written to it. Move this file away, and restore again."
        )


def _checked(part: Path, source: Path, say: Callable[[str], object]) -> int:
    """Return the number of label events. Raises StoreError for an unsound database."""
    try:
        log = LogCopy(part)
        with duckdb.connect(str(part), config=CONFIG) as connection:
            connection.execute("SET enable_progress_bar = false")
            if notice := log.check(connection):
                say(notice)
            applied = migrations.applied(connection)
            if not applied:
                raise StoreError(
                    f"A backup must be an Attention Atlas database; {source} has none of the tables of such a "
                    "database. Choose a file that the command `backup` wrote."
                )
            newest = migrations.known()[-1].number
            if max(applied) > newest:
                raise StoreError(
                    f"A backup must come from this version of the program or an earlier one; {source} has schema "
                    f"{max(applied)}, and this version has schema {newest}. Update the program, then restore the "
                    "backup."
                )
            events = connection.execute("SELECT count(*) FROM label_event").fetchall()[0][0]
    except duckdb.Error as error:
        raise StoreError(
            f"A backup must be a readable DuckDB file; got {source} ({str(error).splitlines()[0][:120]}). Use "
            "another backup."
        ) from error
    _must_be_whole(part, source, restoring=True)
    return events


def _must_be_whole(part: Path, source: Path, *, restoring: bool = False) -> None:
    """Read every column and every index block of the copy `part`. Raises StoreError if `source` is damaged."""
    try:
        with duckdb.connect(str(part), config=CONFIG) as connection:
            for (name,) in connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall():
                connection.execute(f"SELECT bit_xor(hash(r)) FROM {quoted(name)} AS r").fetchall()  # noqa: S608 - quoted
            free = connection.execute("SELECT free_blocks FROM pragma_database_size()").fetchall()[0][0]
    except duckdb.Error as error:
        raise _damaged(source, str(error).splitlines()[0][:120], restoring=restoring) from error
    if damaged := damaged_blocks(part, free):
        reason = f"{len(damaged)} damaged blocks, the first is {damaged[0]}"
        raise _damaged(source, reason, restoring=restoring)


def _damaged(source: Path, reason: str, *, restoring: bool) -> StoreError:
    if restoring:
        return StoreError(
            f"Only an undamaged backup can be restored; {source} is damaged ({reason}). Use another backup."
        )
    return StoreError(
        f"Only an undamaged database can be backed up; {source} is damaged ({reason}). Restore an earlier backup, or "
        f"save the data that can still be read with `{command_line('export')}`."
    )


def _is_file(path: Path) -> bool:
    """Return whether the path is a file. Raises StoreError if its folder cannot be read."""
    try:
        return path.is_file()
    except OSError as error:
        raise explain(error, path) from error


def _must_be_new(target: Path, what: str) -> None:
    try:
        is_there = target.exists() or target.is_symlink()
    except OSError as error:
        raise explain(error, target) from error
    if is_there:
        raise StoreError(
            f"{what} must be written to a new file; {target} already exists. Choose another name, or move the existing "
            "file away."
        )


def schema_of(file: str | Path) -> int:
    """Return the schema version of a backup file. Raises StoreError if the file is not a readable database."""
    try:
        with duckdb.connect(str(Path(file).expanduser()), read_only=True, config=CONFIG) as connection:
            return max(migrations.applied(connection), default=0)
    except duckdb.Error as error:
        raise explain(error, Path(file)) from error


# ---------------------------------------------------------------- backups by the process that holds the file


def ask(database: Path, file: str | Path, seconds: float = ANSWER_SECONDS) -> int:
    """Request a backup from the process that has a database open. Return the size of the backup in bytes.

    Raises StoreError if this process reports an error or does not answer in time.
    """
    folder = runs_folder(database.expanduser().resolve())
    folder.mkdir(parents=True, exist_ok=True)
    request = folder / f"backup-{uuid.uuid4().hex[:12]}.json"
    answer = request.with_suffix(_ANSWER)
    write_whole(request, json.dumps({"file": str(Path(file).expanduser().resolve())}))
    end = time.monotonic() + seconds
    try:
        while not answer.exists():
            if time.monotonic() > end:
                raise StoreError(
                    "The program that has the database open must make the backup; it has not answered within "
                    f"{seconds:g} seconds. Open a page of the app or stop the app, and try again."
                )
            time.sleep(LOOK_SECONDS)
        answered = json.loads(answer.read_text(encoding="utf-8"))
    finally:
        request.unlink(missing_ok=True)
        answer.unlink(missing_ok=True)
    if "error" in answered:
        raise StoreError(answered["error"])
    return answered["bytes"]


def answer_requests(db: Database) -> None:
    """Create the database backups that other processes have requested."""
    for request in runs_folder(db.path).glob(_REQUEST):
        taken = request.with_suffix(".taken")
        try:
            request.rename(taken)  # only one thread can take a request
        except OSError:
            continue
        write_whole(request.with_suffix(_ANSWER), json.dumps(_answer(db, taken)))


def _answer(db: Database, request: Path) -> dict[str, int | str]:
    try:
        return {"bytes": back_up(db, json.loads(request.read_text(encoding="utf-8"))["file"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        return {"error": f"The request for a backup could not be read ({type(error).__name__}). Try again."}
    except (StoreError, duckdb.Error) as error:
        return {"error": str(error)}
    finally:
        request.unlink(missing_ok=True)


def back_up_now(database: Path, file: str | Path) -> int:
    """Copy a database to a new file, even if another process has the database open. Return the size of the copy in
    bytes.

    Raises StoreError if the database does not exist, or the backup cannot be made.
    """
    if not _is_file(database.expanduser()):
        raise StoreError(
            f"Only an existing database can be backed up; {database} does not exist. Choose the database with --db or "
            "ATLAS_DB."
        )
    try:
        with Database(database) as db:
            return back_up(db, file)
    except LockedError:
        return ask(database, file)
