"""The file that was opened, and whether it still lies there: nothing is acknowledged into a file that is gone."""

import os
import sys
import weakref
from pathlib import Path
from typing import Any

from ..errors import StoreError
from .recovery import explain

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
