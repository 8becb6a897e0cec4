"""Rows as JSON text, and SQL of names and values."""

import contextlib
import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import duckdb
import pyarrow as pa

Row = dict[str, Any]


def now() -> datetime:
    """Return the current time in UTC without a time zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def plain(value: Any) -> Any:
    """Convert a value to JSON-serialisable types, for example NumPy scalars to numbers, arrays to lists, and paths to
    text.

    Non-finite numbers become None. Finite floats are preserved exactly.
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value) if isinstance(value, (set, frozenset)) else value
        return [plain(item) for item in items]
    if isinstance(value, date):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def to_json(value: Any) -> str:
    """Return a value as JSON text, after converting NumPy values, paths and dates."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


def from_json(text: str | None) -> Any:
    """Parse JSON text from the database. None remains None."""
    return None if text is None else json.loads(text)


FEW = 8


def quoted(*names: str) -> str:
    """Return table or column names, quoted for SQL and separated by commas.

    Every name in a statement that is not literal code goes through this function; values are always parameters
    (tests/store/test_statements.py).
    """
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def marks(count: int) -> str:
    """Return `count` SQL placeholders separated by commas, such as "?, ?"."""
    return ", ".join("?" * count)


def among(column: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return an SQL condition that a column has one of the values in a list, and the parameters of the condition.

    Up to FEW values are written out, which DuckDB plans in half the time.
    """
    if 0 < len(values) <= FEW:
        return f"{quoted(column)} IN ({marks(len(values))})", list(values)
    return f"{quoted(column)} IN (SELECT unnest(?))", [list(values)]


def insert_row(cursor: Any, table: str, row: Row) -> None:
    """Append one row to a database table. The keys of `row` are column names."""
    cursor.execute(f"INSERT INTO {quoted(table)} ({quoted(*row)}) VALUES ({marks(len(row))})", list(row.values()))  # noqa: S608 - quoted


def insert(cursor: duckdb.DuckDBPyConnection, table: str, schema: pa.Schema, rows: Iterable[Row]) -> int:
    """Append rows to a database table, and return how many were appended. The keys of each row are column names in
    `schema`."""
    return insert_arrow(cursor, table, pa.Table.from_pylist(list(rows), schema=schema))


def insert_arrow(cursor: duckdb.DuckDBPyConnection, table: str, incoming: pa.Table) -> int:
    """Append an Arrow table to a database table with the same column names, and return how many rows were appended."""
    columns = quoted(*incoming.schema.names)
    cursor.register("incoming", incoming)
    try:
        cursor.execute(f"INSERT INTO {quoted(table)} ({columns}) SELECT {columns} FROM incoming")  # noqa: S608 - quoted
    finally:
        with contextlib.suppress(duckdb.Error):  # after an error the transaction accepts no statement
            cursor.unregister("incoming")
    return incoming.num_rows
