"""A whole copy of the database while it is used, and a copy put back.

One process holds the file, so another one asks it for the copy: a request lies in the folder of runs, and the holder
answers it beside it. The copy is one file: the log is folded into it.
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

# ---------------------------------------------------------------- the blocks of a DuckDB file, read without DuckDB


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


ANSWER_SECONDS = 120.0  # a copy of a large file takes a while
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
    """Copy the database to a file as it is at this moment, and read the copy to its end.

    Nothing is written meanwhile, so every label acknowledged before is in the copy and none is half in it.

    Args:
        file: where nothing lies yet.

    Returns:
        The copy's size in bytes.

    Raises:
        StoreError: a file is there already, none can be written, or the database itself is damaged.
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
            _fold(part)
            _must_be_whole(part, db.path)
        finally:
            log.unlink(missing_ok=True)
    return target.stat().st_size


def copy_held(source: Path, target: Path) -> None:
    """Copy a file that this process has a lock on, in another process: here, closing what was read would let go of the
    lock (POSIX, fcntl), and a second process could write to the database. Raises OSError."""
    copied = subprocess.run(  # noqa: S603 - this interpreter, and paths as arguments
        [sys.executable, "-I", "-S", "-c", _COPY, str(source), str(target)], capture_output=True, text=True, check=False
    )
    if copied.returncode:
        complaint = copied.stderr.strip()
        number = int(complaint) if complaint.isdecimal() else errno.EIO
        raise OSError(number, os.strerror(number))


def restore(file: str | Path, database: Path, *, say: Callable[[str], object] = lambda _: None) -> int:
    """Put a copy where a database is to be, and open it there once.

    Args:
        file: the copy, as `back_up` wrote it, or a database that was moved away; its log is read if it has one.
        database: where nothing lies yet, also no log.
        say: is told what people should know of a log that could be read in part only.

    Raises:
        StoreError: `file` is no database of ours that opens whole, is of a newer version, or something lies at
            `database`.
    """
    source, target = Path(file).expanduser().resolve(), database.expanduser().resolve()
    if not _is_file(source):
        raise StoreError(f"A backup is a file that `backup` wrote; there is none at {source}: give its path.")
    _must_be_new(target, "A restored database")
    if log := next((log for log in _logs(target) if os.path.lexists(log)), None):
        raise StoreError(
            f"A database is restored where no log lies, because DuckDB would read {log} into it. That log belongs to "
            f"the database that was here: move it beside that database, under its name with the ending "
            f"{log.name.removeprefix(target.name)}, and restore again."
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
        _place_new(part, target)
    _verify(target, events)
    return events


def _logs(database: Path) -> list[Path]:
    """Where DuckDB keeps the log of a database, and those of a log that is being folded."""
    return [database.with_name(database.name + ending) for ending in (".wal", ".wal.checkpoint", ".wal.recovery")]


def _place_new(part: Path, target: Path) -> None:
    """Put the whole copy at its place, unless something lies there by now: of two who restore at once, one is told.

    Raises OSError.
    """
    with part.open("rb+") as stream:
        os.fsync(stream.fileno())
    try:
        os.link(part, target)
    except FileExistsError:
        _must_be_new(target, "A restored database")
    except OSError:  # no hard links on this disk
        try:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            _must_be_new(target, "A restored database")


def _verify(target: Path, events: int) -> None:
    """Open the restored database where it lies. Raises StoreError where it does not hold what was restored."""
    try:
        with duckdb.connect(str(target), config=CONFIG) as connection:
            found = connection.execute("SELECT count(*) FROM label_event").fetchall()[0][0]
    except duckdb.Error as error:
        why = explain(error, target)
        if isinstance(why, LockedError):  # the app was started meanwhile, and checks it itself
            return
        raise why from error
    if found != events:
        raise StoreError(
            f"A restored database must hold what its backup holds, but {target} has {found} label events instead of "
            f"{events}; something else has written to it. Move it away and restore again."
        )


def _checked(part: Path, source: Path, say: Callable[[str], object]) -> int:
    """How many events of labels the copy holds. Raises StoreError where it is no sound database of ours."""
    try:
        log = LogCopy(part)
        with duckdb.connect(str(part), config=CONFIG) as connection:
            connection.execute("SET enable_progress_bar = false")
            if notice := log.check(connection):
                say(notice)
            applied = migrations.applied(connection)
            if not applied:
                raise StoreError(
                    f"A backup must be of an Attention Atlas database, but {source} has none of its tables."
                )
            newest = migrations.known()[-1].number
            if max(applied) > newest:
                raise StoreError(
                    f"A backup must be of this version or an earlier one; {source} is of a newer version (schema "
                    f"{max(applied)}, this one has {newest}). Update this program, then restore it."
                )
            events = connection.execute("SELECT count(*) FROM label_event").fetchall()[0][0]
    except duckdb.Error as error:
        raise StoreError(
            f"A backup must open as a DuckDB file, but {source} does not ({str(error).splitlines()[0][:120]}); take "
            "another copy."
        ) from error
    _must_be_whole(part, source)
    return events


def _must_be_whole(part: Path, source: Path) -> None:
    """Read all of the copy `part`: every column of every table, and every block of an index.

    Raises:
        StoreError: where `source`, which it is a copy of, is damaged.
    """
    try:
        with duckdb.connect(str(part), config=CONFIG) as connection:
            for (name,) in connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall():
                connection.execute(f"SELECT bit_xor(hash(r)) FROM {quoted(name)} AS r").fetchall()  # noqa: S608 - quoted
            free = connection.execute("SELECT free_blocks FROM pragma_database_size()").fetchall()[0][0]
    except duckdb.Error as error:
        raise _damaged(source, str(error).splitlines()[0][:120]) from error
    if damaged := damaged_blocks(part, free):
        raise _damaged(source, f"{len(damaged)} of its blocks are not what was written, the first is {damaged[0]}")


def _damaged(source: Path, reason: str) -> StoreError:
    return StoreError(
        f"A backup must be whole, but {source} is damaged ({reason}), so no copy is made of it; take an earlier "
        f"backup, and `{command_line('export')}` for what can still be read."
    )


def _is_file(path: Path) -> bool:
    """Raises StoreError for a folder that may not be entered."""
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
        raise StoreError(f"{what} goes where nothing is yet, but {target} exists; name another file or move it away.")


def _fold(part: Path) -> None:
    """Raises OSError where the disk has no room for the folded file."""
    try:
        with duckdb.connect(str(part), config=CONFIG) as connection:
            connection.execute("CHECKPOINT")
    except duckdb.Error as error:
        if re.search(r"Could not (write|sync)|No space left|File too large|Disk quota", str(error)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise explain(error, part) from error


def schema_of(file: str | Path) -> int:
    """The newest step of the schema that a backup names. Raises StoreError."""
    try:
        with duckdb.connect(str(Path(file).expanduser()), read_only=True, config=CONFIG) as connection:
            return max(migrations.applied(connection), default=0)
    except duckdb.Error as error:
        raise explain(error, Path(file)) from error


# ---------------------------------------------------------------- while another process holds the file


def ask(database: Path, file: str | Path, seconds: float = ANSWER_SECONDS) -> int:
    """Have the process that holds a database copy it to a file.

    Args:
        file: where nothing lies yet.

    Returns:
        The copy's size in bytes.

    Raises:
        StoreError: with the holder's own sentence, or where it does not answer in time.
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
                    f"What is stored is copied by the program that holds the database, and it did not answer within "
                    f"{seconds:g} seconds; open one of the app's pages and ask again, or stop it and ask then."
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
    """Make the copies that other processes asked this one for."""
    for request in runs_folder(db.path).glob(_REQUEST):
        taken = request.with_suffix(".taken")
        try:
            request.rename(taken)  # one thread takes a request
        except OSError:
            continue
        write_whole(request.with_suffix(_ANSWER), json.dumps(_answer(db, taken)))


def _answer(db: Database, request: Path) -> dict[str, int | str]:
    try:
        return {"bytes": back_up(db, json.loads(request.read_text(encoding="utf-8"))["file"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        return {"error": f"The request for a backup could not be read ({type(error).__name__}); ask again."}
    except (StoreError, duckdb.Error) as error:
        return {"error": str(error)}
    finally:
        request.unlink(missing_ok=True)


def back_up_now(database: Path, file: str | Path) -> int:
    """Copy a database to a file, whether another process holds it or none does.

    Args:
        file: where nothing lies yet.

    Returns:
        The copy's size in bytes.

    Raises:
        StoreError: there is no database, or the copy cannot be made or written.
    """
    if not _is_file(database.expanduser()):
        raise StoreError(
            f"A backup needs a database, but there is none at {database}; choose it with --db or ATLAS_DB."
        )
    try:
        with Database(database) as db:
            return back_up(db, file)
    except LockedError:
        return ask(database, file)
