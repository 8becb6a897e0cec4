"""The DuckDB file: opened once per process, read with one cursor per thread, written under one lock.

DuckDB lets only one process hold a file. External access is off while the file is open, so no statement can read
another file; exports use Arrow (`core.store.exchange`).
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
from contextlib import contextmanager, suppress
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
    import pyarrow as pa

    from .rows import Row


# ---------------------------------------------------------------- the open file


BUSY = 10.0  # seconds to wait for statements of other threads before closing the file


def begin(path: Path, config: Mapping[str, Any]) -> None:
    """Create an empty database file atomically if the file does not exist. Raises StoreError if the path cannot be
    checked.

    DuckDB creates a file in four steps and cannot open a file left by a kill between them.
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
        with suppress(OSError):  # a read-only file system says so even of a file that is not there
            part.unlink(missing_ok=True)


def _place(part: Path, path: Path) -> None:
    try:
        os.link(part, path)  # replaces nothing if two processes create it at once
    except FileExistsError:
        return
    except OSError:  # the file system has no hard links
        part.rename(path)


class Opening:
    """An open DuckDB connection to a database file. `stopped` is True after `end`, or if an error made it unusable."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection):
        self.path, self.connection = path, connection
        self.stopped = False
        self._own = threading.local()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return the database cursor of the current thread. Raises StoreError if the database is closed."""
        if not hasattr(self._own, "cursor"):
            with self.explaining():
                self._own.cursor = self.connection.cursor()
        return self._own.cursor

    @property
    def inside(self) -> bool:
        return getattr(self._own, "inside", False)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Return a context manager that marks the current thread as being in a transaction, without starting one."""
        before, self._own.inside = self.inside, True
        try:
            yield
        finally:
            self._own.inside = before

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Return a context manager that converts DuckDB errors about the database file or its disk to StoreError."""
        try:
            yield
        except duckdb.Error as error:
            if not self._of_file(error):
                raise
            self.heed(error)
            raise explain(error, self.path) from error

    def heed(self, error: duckdb.Error) -> None:
        """Set `stopped` to True if a DuckDB error has made the connection unusable."""
        if isinstance(error, duckdb.FatalException) or STOPPED in str(error):
            self.stopped = True

    def _of_file(self, error: duckdb.Error) -> bool:
        return is_of_file(error) or (self.stopped and bool(LET_GO.search(str(error))))

    def end(self) -> None:
        """Close the database connection and all its cursors once no other thread is running a statement.

        Raises StoreError if a statement still runs after BUSY seconds; the file is then partly closed, so call this
        again.
        """
        self.stopped = True
        last = time.monotonic() + BUSY
        while True:
            try:
                return self.connection.close()
            except duckdb.ResourceInUseException as error:
                # A cursor is in use; the cursors before it are closed by now
                if time.monotonic() > last:
                    raise StoreError(
                        f"The database {self.path} cannot be closed now, because another statement is still reading "
                        "it. Repeat the last step in a moment; everything stored before is safe."
                    ) from error
            time.sleep(0.01)


# ---------------------------------------------------------------- detecting a file that was deleted or replaced


_HEADERS = 12_288  # bytes before the first block of a DuckDB file
_GUARDS: "weakref.WeakSet[DatabaseFileGuard]" = weakref.WeakSet()


class DatabaseFileGuard:
    """A check that the file at the path of an open database is still the file that was opened."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self.identity, self.size = _seen(path)
        except OSError as error:
            raise explain(error, path) from error
        _GUARDS.add(self)

    def let_go(self) -> None:
        _GUARDS.discard(self)

    def must_hold(self, cursor: Any) -> None:
        """Raise StoreError if the open database file was deleted, replaced or truncated, or if its log was deleted.

        The cursor is used only if the file is smaller than before, or its log does not exist.
        """
        log = self.path.with_name(self.path.name + ".wal")
        try:
            identity, size = _seen(self.path)
            log_exists = log.exists()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise self._gone("deleted") from error
        except OSError as error:  # for example, a stale network folder
            raise explain(error, self.path) from error
        if identity != self.identity:
            raise self._gone("replaced by another file")
        if size < self.size or not log_exists:
            self._ask(cursor, size, log)
        self.size = size

    def _ask(self, cursor: Any, size: int, log: Path) -> None:
        """Ask DuckDB whether a checkpoint explains a smaller file or a missing log."""
        (is_known, waiting) = cursor.execute(
            "SELECT block_size * total_blocks, wal_size FROM pragma_database_size()"
        ).fetchall()[0]
        if size < self.size and size < _HEADERS + is_known:
            raise self._gone("truncated")
        if waiting != "0 bytes" and not log.exists():
            raise self._gone("separated from its log, which was deleted")

    def _gone(self, what: str) -> StoreError:
        return StoreError(
            f"The database {self.path} was {what} while this program had it open, so nothing more can be stored. "
            "Put the original file back, or restart the program to use the current file."
        )


def _seen(path: Any) -> tuple[tuple[int, int], int]:
    status = os.stat(path)  # noqa: PTH116 - once a label
    return (status.st_dev, status.st_ino), status.st_size


def _refuse_databases(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse to open the database file outside DuckDB in this process.

    Closing another descriptor of the file would release the lock of DuckDB, and a second program could write to it.
    """
    if event != "open" or not _GUARDS or not isinstance(arguments[0], (str, bytes, os.PathLike)):
        return
    try:
        identity, _ = _seen(arguments[0])
    except (OSError, ValueError):
        return
    if any(guard.identity == identity for guard in list(_GUARDS)):
        raise StoreError(
            "This file is the database that this program has open, so it cannot be used for anything else. Choose "
            "another file."
        )


sys.addaudithook(_refuse_databases)


# ---------------------------------------------------------------- reading


_READS = {duckdb.StatementType.SELECT}
_MOVES = re.compile(r"\b(nextval|setval)\s*\(", re.IGNORECASE)  # functions that make a SELECT write


class Reader:
    """A read-only database cursor for one thread. Fetch all rows of a query before running the next query.

    `current` returns the open file, so that a reader stays valid when the file is reopened. All methods raise
    StoreError for problems with the file or its disk.
    """

    __slots__ = ("_current", "_cursor", "_opening")

    def __init__(self, current: Callable[[], Opening]):
        self._current = current
        self._opening = current()
        self._cursor = self._opening.cursor()

    def execute(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> "Reader":
        """Run one SQL query. Raises StoreError if the statement could change the database."""
        _must_only_read(sql)
        self._opening = self._current()
        self._cursor = self._opening.cursor()
        with self._opening.explaining():
            self._cursor.execute(sql, parameters)
        return self

    @property
    def description(self) -> list[Any]:
        return self._cursor.description

    def fetchall(self) -> list[tuple[Any, ...]]:
        with self._opening.explaining():
            return self._cursor.fetchall()

    def fetchone(self) -> tuple[Any, ...] | None:
        with self._opening.explaining():
            return self._cursor.fetchone()

    def arrow(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> "pa.Table":
        """Run one SQL query and return the result as an Arrow table. Raises StoreError if the statement could change
        the database."""
        _must_only_read(sql)
        with self._opening.explaining():
            return self._cursor.sql(sql, params=parameters).to_arrow_table()

    def df(self) -> "pd.DataFrame":
        with self._opening.explaining():
            return self._cursor.df()


@lru_cache(maxsize=512)
def _must_only_read(sql: str) -> None:
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1 or statements[0].type not in _READS or _MOVES.search(sql):
        raise StoreError(
            "SQL outside write() must be a single statement that only reads the database; got other SQL. Use write() "
            "for it."
        )


# ---------------------------------------------------------------- checkpoints while nothing is written


REST = 3.0  # seconds without a write


class IdleCheckpointer:
    """A background thread that merges the database log into the database file after some seconds without writes."""

    def __init__(self, fold: Callable[[], None], seconds: float = REST):
        self._fold, self._seconds = fold, seconds
        self._wrote, self._over = threading.Event(), False
        self._thread: threading.Thread | None = None

    def wrote(self) -> None:
        self._wrote.set()
        if self._thread is None and not self._over:
            self._thread = threading.Thread(target=self._watch, name="atlas-log", daemon=True)
            self._thread.start()

    def end(self) -> None:
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


class Database:
    """An open database file. The file is created if it does not exist, and migrated if its schema is older.

    `notice` is a message for users if the end of the log could not be recovered. `person` is the acting user: whoever
    opens the file may do everything, and `acting_as` returns handles with fewer rights. Raises StoreError if the file
    is held by another process, written by newer code, damaged, not a database, or read-only.
    """

    person: Person = OWNER
    _opened: "Database | None" = None
    _id: str | None = None
    _writes = 0  # committed transactions of this file

    def __init__(self, path: str | Path):
        self.path = Path(path).expanduser().resolve()
        with _LOCKS_GUARD:
            self._lock = _LOCKS.setdefault(self.path, threading.RLock())
        self._closed = False
        with self._lock:
            self._opening = Opening(self.path, self._open())
            self._place = DatabaseFileGuard(self.path)
        self._rest = IdleCheckpointer(self.fold)
        _OPEN.add(self)

    def acting_as(self, person: Person) -> "Database":
        """Return a second handle for this open database, with the access rights of `person`."""
        handle = copy.copy(self)
        handle.person, handle._opened = person, self.shared
        return handle

    @property
    def shared(self) -> "Database":
        """Return the original handle of this open database. `acting_as` creates further handles from it."""
        return self._opened or self

    @property
    def id(self) -> str:
        """Return the unique ID of the database, which is stored in its file. Copies of the file have the same ID."""
        shared = self.shared
        if shared._id is None:
            shared._id = str(self.rows("SELECT id FROM store_id")[0][0])
        return shared._id

    @property
    def writes(self) -> int:
        """Return how many transactions this process has committed. Caches use this number to detect changed data."""
        return self.shared._writes

    @property
    def closed(self) -> bool:
        return self.shared._closed

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> duckdb.DuckDBPyConnection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"The folder of the database cannot be created: {self.path.parent} ({error.strerror}). Choose another "
                "file with --db or ATLAS_DB."
            ) from error
        self.notice = None
        if any(other.path == self.path and not other._opening.stopped for other in list(_OPEN)):
            try:
                return duckdb.connect(str(self.path), config=CONFIG)
            except duckdb.Error as error:
                raise explain(error, self.path) from error
        connection, self.notice = _connect(self.path)
        try:
            missing = migrations.missing(connection, self.path)
            if missing and migrations.applied(connection):
                connection.close()  # the copy must be made while this process has no lock on the file
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
        """Return a read-only cursor for the current thread.

        Fetch all rows of a statement (`fetchall`, `df`) before the next: an unread result blocks the cursor.
        """
        return Reader(self._current)

    def _current(self) -> Opening:
        """Return the open file, reopened if DuckDB has stopped."""
        self.person.must("viewer", "read stored data")
        shared = self.shared
        if shared._opening.stopped:
            shared._reopen()
        if shared._closed:
            raise StoreError(f"The database {self.path} must be open; this process has closed it. Open it again.")
        return shared._opening

    def _reopen(self) -> None:
        """Reopen the file, for every handle of this process on it, after a failure that stopped DuckDB."""
        with self._lock:
            if self._closed or not self._opening.stopped:
                return
            if self._opening.inside:
                raise explain(StoreError(STOPPED), self.path)  # this transaction fails; the next one reopens the file
            handles = [other for other in list(_OPEN) if other.path == self.path]
            for database in handles:
                database._opening.end()
                database._place.let_go()
            for database in handles:
                if not database._closed:
                    database._opening = Opening(self.path, database._open())
                    database._place = DatabaseFileGuard(self.path)

    @contextmanager
    def write(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Return a context manager that runs a write transaction and yields its cursor. All changes are rolled back if
        an exception is raised.

        A nested call in the same thread joins the outer transaction. Raises RightsError for a viewer, and StoreError if
        the file was deleted, replaced or truncated since it was opened.
        """
        self.person.must("annotator", "change stored data")
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
        """Run one SQL query and return the result as a data frame. Pass values as query parameters, never inside the
        SQL text."""
        return self.cursor().execute(sql, parameters).df()

    def arrow(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> "pa.Table":
        """Run one SQL query and return the result as an Arrow table. For many rows of text, this is faster than
        `read`."""
        return self.cursor().arrow(sql, parameters)

    def rows(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run one SQL query and return the result as a list of tuples."""
        return self.cursor().execute(sql, parameters).fetchall()

    def records(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> "list[Row]":
        """Run one SQL query and return the result as a list of dictionaries with column names as keys."""
        cursor = self.cursor().execute(sql, parameters)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    @contextmanager
    def snapshot(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Return a context manager for a read-only transaction, in which all queries see the same database state."""
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
        """Return a context manager that prevents changes to the database and its file while it is active."""
        with self._lock:
            yield

    def fold(self) -> None:
        """Merge the database log into the database file, so that copies of the file are complete."""
        with self._lock:
            opening = self.shared._opening
            if opening.stopped:
                return
            try:
                opening.connection.execute("CHECKPOINT")
            except duckdb.Error as error:
                opening.heed(error)  # DuckDB stops here on a full disk

    def close(self) -> None:
        """Merge the database log into the database file, and close the file."""
        with self._lock:
            self.fold()
            self.shared._rest.end()
            self.shared._closed = True
            self.shared._opening.end()
            self.shared._place.let_go()


@atexit.register
def _end_quietly() -> None:
    """Silence standard error at exit, because DuckDB then lists objects that threads still hold."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


@atexit.register
def _close_all() -> None:
    for database in list(_OPEN):
        with contextlib.suppress(StoreError):  # a database that is still being read is closed with the process
            database.close()


def _roll_back(cursor: duckdb.DuckDBPyConnection) -> None:
    try:
        cursor.execute("ROLLBACK")
    except duckdb.Error:
        return  # a failed commit has been rolled back already


def _connect(path: Path) -> tuple[duckdb.DuckDBPyConnection, str | None]:
    log = LogCopy(path)
    begin(path, CONFIG)
    try:
        connection = duckdb.connect(str(path), config=CONFIG)
    except (duckdb.Error, OSError) as error:
        log.discard_unless(damaged="WAL" in str(error))
        raise explain(error, path) from error
    try:
        # `python -c` counts as a prompt and would show a progress bar
        connection.execute("SET enable_progress_bar = false")
        return connection, log.check(connection)
    except duckdb.Error as error:
        connection.close()
        raise explain(error, path) from error
