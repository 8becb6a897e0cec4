"""The one DuckDB file: opened once per process, read by a cursor per thread, written under one lock.

DuckDB lets a single process hold a file. External access is off and cannot be switched on again while the file
is open, so no statement can reach another file; exports go through Arrow (`core.store.exchange`).
"""

import atexit
import contextlib
import copy
import os
import re
import sys
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from ..errors import StoreError
from . import migrations
from .people import OWNER, Person
from .recovery import LET_GO, STOPPED, LogCopy, explain, is_of_file

if TYPE_CHECKING:
    import pandas as pd


# ---------------------------------------------------------------- the database file as it was opened once


BUSY = 10.0  # seconds that statements of other threads are waited for, before the file is let go of


def begin(path: Path, config: Mapping[str, Any]) -> None:
    """A new database at a path, where there is none: whole or not at all.

    DuckDB writes a new file in four steps, and opens nothing that a kill leaves between them. Where this fails, DuckDB
    says why when it is asked for `path` itself.

    Args:
        path: the database file; one that is there stays as it is.

    Raises:
        StoreError: whether there is a file cannot be told.
    """
    try:
        if path.exists():
            return
    except OSError as error:
        raise explain(error, path) from error
    part = path.with_name(f".{uuid.uuid4().hex[:12]}.part")
    try:
        duckdb.connect(str(part), config=dict(config)).close()
        _place(part, path)
    except (OSError, duckdb.Error):
        return
    finally:
        part.unlink(missing_ok=True)


def _place(part: Path, path: Path) -> None:
    try:
        os.link(part, path)  # takes nobody's place, where two begin at once
    except FileExistsError:
        return
    except OSError:  # no such links on this disk
        part.rename(path)


class Opening:
    """The file at `path` by one `connection`. stopped: nothing can be asked of it any more."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection):
        self.path, self.connection = path, connection
        self.stopped = False
        self._own = threading.local()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """The cursor of the thread that asks. Raises StoreError."""
        if not hasattr(self._own, "cursor"):
            with self.explaining():
                self._own.cursor = self.connection.cursor()
        return self._own.cursor

    @property
    def inside(self) -> bool:
        """Whether the thread that asks is in a transaction."""
        return getattr(self._own, "inside", False)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Marks that this thread is in a transaction; begins none."""
        before, self._own.inside = self.inside, True
        try:
            yield
        finally:
            self._own.inside = before

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """What goes wrong inside for the file or its disk is raised as a StoreError, in one sentence."""
        try:
            yield
        except duckdb.Error as error:
            if not self._of_file(error):
                raise
            self.heed(error)
            raise explain(error, self.path) from error

    def heed(self, error: duckdb.Error) -> None:
        """Know from an error of any statement whether DuckDB stopped."""
        if isinstance(error, duckdb.FatalException) or STOPPED in str(error):
            self.stopped = True

    def _of_file(self, error: duckdb.Error) -> bool:
        return is_of_file(error) or (self.stopped and bool(LET_GO.search(str(error))))

    def end(self) -> None:
        """Let go of the file, with all cursors, as soon as no other thread's statement runs.

        Raises:
            StoreError: when one still runs after BUSY seconds; the file is let go of in part, so end it again.
        """
        self.stopped = True
        last = time.monotonic() + BUSY
        while True:
            try:
                return self.connection.close()
            except duckdb.ResourceInUseException as error:  # of a cursor; those before it are closed by now
                if time.monotonic() > last:
                    raise StoreError(
                        f"The database {self.path} must be opened again after a failure, but is still being read; do "
                        "the last step again in a while, nothing stored before is affected."
                    ) from error
            time.sleep(0.01)


# ----------------------------------------------------------------


# -------------------- The file that was opened, and whether it still lies there


_HEADERS = 12_288  # bytes before the first block of a DuckDB file
_GUARDS: "weakref.WeakSet[DatabaseFileGuard]" = weakref.WeakSet()


class DatabaseFileGuard:
    """The file at `path` as it was opened: its device, its number there, and its least size."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self.identity, self.size = _seen(path)
        except OSError as error:
            raise explain(error, path) from error
        _GUARDS.add(self)

    def let_go(self) -> None:
        """The file was closed: anybody may open it."""
        _GUARDS.discard(self)

    def must_hold(self, cursor: Any) -> None:
        """Raises StoreError when the file was deleted, replaced or cut, or its log was deleted, since it was opened.

        Args:
            cursor: of the open file, asked only where sizes leave a doubt.
        """
        log = self.path.with_name(self.path.name + ".wal")
        try:
            identity, size = _seen(self.path)
            log_exists = log.exists()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise self._gone("deleted") from error
        except OSError as error:  # a network folder that is stale, say
            raise explain(error, self.path) from error
        if identity != self.identity:
            raise self._gone("replaced by another")
        if size < self.size or not log_exists:
            self._ask(cursor, size, log)
        self.size = size

    def _ask(self, cursor: Any, size: int, log: Path) -> None:
        """DuckDB makes a file smaller and removes its log at a checkpoint; then it knows of it."""
        (is_known, waiting) = cursor.execute(
            "SELECT block_size * total_blocks, wal_size FROM pragma_database_size()"
        ).fetchall()[0]
        if size < self.size and size < _HEADERS + is_known:
            raise self._gone("cut short")
        if waiting != "0 bytes" and not log.exists():
            raise self._gone("left without its log, which was deleted")

    def _gone(self, what: str) -> StoreError:
        return StoreError(
            f"The database {self.path} was {what} while this program had it open, so nothing more is stored; put the "
            "file back, or start the program again to go on with what lies there now."
        )


def _seen(path: Any) -> tuple[tuple[int, int], int]:
    status = os.stat(path)  # noqa: PTH116 - once a label
    return (status.st_dev, status.st_ino), status.st_size


def _refuse_databases(event: str, arguments: tuple[Any, ...]) -> None:
    """Nothing but DuckDB opens its file in this process: when any other descriptor of it is closed, the system lets
    go of DuckDB's lock, and a second program can write."""
    if event != "open" or not _GUARDS or not isinstance(arguments[0], (str, bytes, os.PathLike)):
        return
    try:
        identity, _ = _seen(arguments[0])
    except (OSError, ValueError):
        return
    if any(guard.identity == identity for guard in list(_GUARDS)):
        raise StoreError(
            "A file must be another one than the database, which this program has open: name another file."
        )


sys.addaudithook(_refuse_databases)


# ----------------------------------------------------------------


# ---------------------------------------------------------------- A cursor that reads


_READS = {duckdb.StatementType.SELECT}
_MOVES = re.compile(r"\b(nextval|setval)\s*\(", re.IGNORECASE)  # of a SELECT, the one kind that writes


class Reader:
    """One thread's cursor for statements that read. Fetch all rows of one before the next.

    current: the file as it is open now, asked at every statement, so that a reader outlives an opening. Errors of all:
    StoreError where the file or its disk is in trouble.
    """

    __slots__ = ("_current", "_cursor", "_opening")

    def __init__(self, current: Callable[[], Opening]):
        self._current = current
        self._opening = current()
        self._cursor = self._opening.cursor()

    def execute(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> "Reader":
        """Run one statement. Raises StoreError for one that does not only read."""
        if not _only_reads(sql):
            raise StoreError(
                "A cursor outside write() only reads, but the statement it was given does more; use write() for what "
                "changes the store."
            )
        self._opening = self._current()
        self._cursor = self._opening.cursor()
        with self._opening.explaining():
            self._cursor.execute(sql, parameters)
        return self

    @property
    def description(self) -> list[Any]:
        """Name and type of each column of the last statement."""
        return self._cursor.description

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows of the last statement."""
        with self._opening.explaining():
            return self._cursor.fetchall()

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row of the last statement, or None."""
        with self._opening.explaining():
            return self._cursor.fetchone()

    def df(self) -> "pd.DataFrame":
        """All rows of the last statement as a data frame."""
        with self._opening.explaining():
            return self._cursor.df()


@lru_cache(maxsize=512)
def _only_reads(sql: str) -> bool:
    statements = duckdb.extract_statements(sql)
    return len(statements) == 1 and statements[0].type in _READS and not _MOVES.search(sql)


# -------------------- When nothing was written for a while, the log is folded into the file, so that a copy of


REST = 3.0  # seconds without a write


class IdleCheckpointer:
    """Calls `fold` once after each time of writing, in a thread of its own, as soon as `seconds` pass without one."""

    def __init__(self, fold: Callable[[], None], seconds: float = REST):
        self._fold, self._seconds = fold, seconds
        self._wrote, self._over = threading.Event(), False
        self._thread: threading.Thread | None = None

    def wrote(self) -> None:
        """Say that something was written."""
        self._wrote.set()
        if self._thread is None and not self._over:
            self._thread = threading.Thread(target=self._watch, name="atlas-log", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """End the thread; nothing is folded from now on."""
        self._over = True
        self._wrote.set()

    def _watch(self) -> None:
        while True:
            self._wrote.wait()
            while not self._over and self._wrote.is_set():
                self._wrote.clear()
                self._wrote.wait(self._seconds)
            if self._over:
                return
            self._fold()


CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_LOCKS: dict[Path, threading.RLock] = {}
_LOCKS_GUARD = threading.Lock()
_OPEN: "weakref.WeakSet[Database]" = weakref.WeakSet()


def _lock_of(path: Path) -> threading.RLock:
    with _LOCKS_GUARD:
        return _LOCKS.setdefault(path, threading.RLock())


class Database:
    """The database file at `path`, created with its folder when missing, brought up to date when older.

    `notice` is a sentence for people when the file was recovered without the end of its log, else None. `person` is who
    acts: whoever opens the file may do everything, and `acting_as` gives out handles that may do less.

    Raises:
        StoreError: in one sentence when the file is held by another process (which one), written by newer code,
            damaged, not a database, or not writable.
    """

    person: Person = OWNER
    _opened: "Database | None" = None
    _id: str | None = None
    _writes = 0  # transactions that were committed through this handle's file

    def __init__(self, path: str | Path):
        self.path = Path(path).expanduser().resolve()
        self._lock = _lock_of(self.path)
        self._closed = False
        with self._lock:
            self._opening = Opening(self.path, self._open())
            self._place = DatabaseFileGuard(self.path)
        self._rest = IdleCheckpointer(self.fold)
        _OPEN.add(self)

    def acting_as(self, person: Person) -> "Database":
        """The same open file in the hands of `person`: their role is asked before anything is written."""
        handle = copy.copy(self)
        handle.person, handle._opened = person, self.shared
        return handle

    @property
    def shared(self) -> "Database":
        """The handle that opened the file."""
        return self._opened or self

    @property
    def id(self) -> str:
        """What tells this database from every other: kept in the file, so that a copy of it has the same."""
        shared = self.shared
        if shared._id is None:
            shared._id = str(self.cursor().execute("SELECT id FROM store_id").fetchall()[0][0])
        return shared._id

    @property
    def writes(self) -> int:
        """How many transactions this process has committed: what was read before and after one number is the same."""
        return self.shared._writes

    @property
    def closed(self) -> bool:
        """Whether the file was let go of."""
        return self.shared._closed

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> duckdb.DuckDBPyConnection:
        _make_folder(self.path)
        self.notice = None
        if any(other.path == self.path and not other._opening.stopped for other in list(_OPEN)):
            return _connect_again(self.path)
        connection, self.notice = _connect(self.path)
        try:
            missing = migrations.missing(connection, self.path)
            if missing and migrations.applied(connection):
                connection.close()  # the copy must be read while this process holds no lock on the file
                migrations.back_up(self.path, missing[0])
                connection, _ = _connect(self.path)
            migrations.apply(connection, missing)
        except duckdb.Error as error:
            connection.close()
            raise explain(error, self.path) from error
        except StoreError:
            connection.close()
            raise
        return connection

    def cursor(self) -> Reader:
        """This thread's cursor for reading: use it in the thread that asked. What changes rows goes through `write()`.

        Fetch all rows of a statement before the next (`fetchall`, `df`): a result left open blocks the cursor.
        """
        return Reader(self._current)

    def _current(self) -> Opening:
        """The file as it is open now: opened again first, where DuckDB stopped."""
        self.person.must("viewer", "see what is stored")
        shared = self.shared
        if shared._opening.stopped:
            shared._reopen()
        if shared._closed:
            raise StoreError(f"The database {self.path} was closed in this process; open it again.")
        return shared._opening

    def _reopen(self) -> None:
        """After a failure that DuckDB does not go on from: let go of the file and open it again, once it can be."""
        with self._lock:
            if self._closed or not self._opening.stopped:
                return
            if self._opening.inside:
                raise explain(StoreError(STOPPED), self.path)  # the transaction fails; the next one opens the file
            for database in [other for other in list(_OPEN) if other.path == self.path]:
                database._opening.end()
                database._place.let_go()
            self._opening = Opening(self.path, self._open())
            self._place = DatabaseFileGuard(self.path)

    @contextmanager
    def write(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor inside one transaction and under the write lock: all of it is stored, or nothing.

        Nested in the same thread, the inner block joins the outer transaction. Raises RightsError for a viewer;
        StoreError when the file was deleted, replaced or cut since it was opened: what was written is then not
        acknowledged.
        """
        self.person.must("annotator", "change what is stored")
        with self._lock:
            opening = self._current()
            if opening.inside:
                yield opening.cursor()
                return
            with opening.transaction(), opening.explaining():
                yield from self._transaction(opening.cursor())

    def _transaction(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
        try:
            self.shared._place.must_hold(cursor)
            cursor.execute("BEGIN")
            yield cursor
            cursor.execute("COMMIT")
            self.shared._writes += 1
            self.shared._place.must_hold(cursor)
            self.shared._rest.wrote()
        except BaseException:
            _roll_back(cursor)
            raise

    def read(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> "pd.DataFrame":
        """Rows of one statement as a data frame. Values go in as parameters, never into the text."""
        return self.cursor().execute(sql, parameters).df()

    @contextmanager
    def one_moment(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor that sees the store as it is now, whatever is written meanwhile; nothing in it is kept."""
        opening = self._current()
        with opening.transaction(), opening.explaining():
            cursor = opening.cursor()
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            try:
                yield cursor
            finally:
                _roll_back(cursor)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Nothing is written to the file, and its log is not folded, while the block runs."""
        with self._lock:
            yield

    def fold(self) -> None:
        """Fold the log into the file, so that a copy of the file alone is whole; later where that cannot be now."""
        with self._lock:
            opening = self.shared._opening
            if opening.stopped:
                return
            try:
                opening.connection.execute("CHECKPOINT")
            except duckdb.Error as error:
                opening.heed(error)  # on a full disk DuckDB stops at this

    def close(self) -> None:
        """Fold the log and let go of the file; cursors of other threads end with it."""
        with self._lock:
            self.fold()
            self.shared._rest.end()
            self.shared._closed = True
            self.shared._opening.end()
            self.shared._place.let_go()


@atexit.register
def _end_quietly() -> None:
    """Last of all: DuckDB's binding lists on standard error what threads still hold of it as the process ends, which
    says nothing to whoever pressed Ctrl-C."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


@atexit.register
def _close_all() -> None:
    for database in list(_OPEN):
        with contextlib.suppress(StoreError):  # one that is still being read ends with the process
            database.close()


def _roll_back(cursor: duckdb.DuckDBPyConnection) -> None:
    try:
        cursor.execute("ROLLBACK")
    except duckdb.Error:
        return  # a commit that failed has rolled back already


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The database needs a folder that can be made, but {path.parent} cannot ({error.strerror}); "
            "choose another file with --db or ATLAS_DB."
        ) from error


def _connect_again(path: Path) -> duckdb.DuckDBPyConnection:
    """Another connection of the process that holds the file. The file and its log are not looked at: closing one of
    them lets go of the lock that keeps other processes out (POSIX, fcntl)."""
    try:
        return duckdb.connect(str(path), config=CONFIG)
    except duckdb.Error as error:
        raise explain(error, path) from error


def _connect(path: Path) -> tuple[duckdb.DuckDBPyConnection, str | None]:
    log = LogCopy(path)
    begin(path, CONFIG)
    try:
        connection = duckdb.connect(str(path), config=CONFIG)
    except (duckdb.Error, OSError) as error:
        log.discard_unless(damaged="WAL" in str(error))
        raise explain(error, path) from error
    try:
        connection.execute("SET enable_progress_bar = false")  # `python -c` counts as a prompt and gets one
        return connection, log.check(connection)
    except duckdb.Error as error:
        connection.close()
        raise explain(error, path) from error
