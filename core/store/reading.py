"""A cursor that reads: what is handed out outside `write()` changes nothing, whoever holds it."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import duckdb

from core.errors import StoreError
from core.store.opening import Opening

if TYPE_CHECKING:
    import pandas as pd

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
