"""The database file as it was opened once: a cursor for each thread, and the end of them all.

After some failures, a full disk above all, DuckDB stops: whatever is asked of the opening fails from then on, and the
file must be opened anew. It comes back only when every cursor of the old opening was closed; as long as one is left,
or a connection, `duckdb.connect` gives out the one that stopped.
"""

import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from ..errors import StoreError
from .recovery import LET_GO, STOPPED, explain, is_of_file

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
