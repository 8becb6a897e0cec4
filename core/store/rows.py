"""Rows as JSON text: what the store keeps of a row, the same on every machine."""

import contextlib
import json
import math
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

import duckdb
import pyarrow as pa

Row = dict[str, Any]


def plain(value: Any) -> Any:
    """`value` in JSON's own types: numpy scalars as numbers, arrays and tuples as lists, paths and dates as text.

    Numbers that are not finite become None, as "not defined". Finite floats come back bit for bit.
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
    """JSON text of `value` (see `plain`), keys in the order given."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


def from_json(text: str | None) -> Any:
    """The value of JSON text; None of None."""
    return None if text is None else json.loads(text)


FEW = 8


def quoted(*names: str) -> str:
    """SQL of these names of tables or columns, a comma between them: whatever they hold, each is one name.

    Every name that is put into a statement outside the text of this code goes through here; values never do, they are
    parameters (tests/store/test_statements.py).
    """
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def marks(count: int) -> str:
    """SQL of so many parameters."""
    return ", ".join("?" * count)


def among(column: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """SQL that `column` is one of `values`, and its parameters.

    A few are written out: DuckDB plans that in half the time, and it is what a key press asks.
    """
    if 0 < len(values) <= FEW:
        return f"{quoted(column)} IN ({marks(len(values))})", list(values)
    return f"{quoted(column)} IN (SELECT unnest(?))", [list(values)]


def insert(cursor: duckdb.DuckDBPyConnection, table: str, schema: pa.Schema, rows: Iterable[Row]) -> int:
    """Append `rows` to `table` by column name through Arrow; returns how many."""
    incoming = pa.Table.from_pylist(list(rows), schema=schema)
    columns = quoted(*schema.names)
    cursor.register("incoming", incoming)
    try:
        cursor.execute(f"INSERT INTO {quoted(table)} ({columns}) SELECT {columns} FROM incoming")  # noqa: S608 - quoted
    finally:
        with contextlib.suppress(duckdb.Error):  # after an error the transaction takes nothing more
            cursor.unregister("incoming")
    return incoming.num_rows
