"""Numbered steps that bring a database file to the code's form: `NNN_name.sql`, one transaction each, recorded."""

import contextlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import duckdb

from ...errors import StoreError
from ..recovery import backups, copied, stamp

FOLDER = Path(__file__).parent
_RECORD = """
CREATE TABLE IF NOT EXISTS migration (
    number INTEGER PRIMARY KEY, name VARCHAR NOT NULL, applied TIMESTAMP NOT NULL
)"""


@dataclass(frozen=True)
class Migration:
    """One step. number: its order; name: what it adds; sql: its statements."""

    number: int
    name: str
    sql: str


@cache
def known() -> tuple[Migration, ...]:
    """The code's steps, in order."""
    steps = []
    for file in sorted(FOLDER.glob("*.sql")):
        match = re.fullmatch(r"(\d{3})_(\w+)", file.stem)
        if not match:
            raise StoreError(f"Migrations are named NNN_name.sql, but {file.name} is not; rename it.")
        steps.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    return tuple(steps)


def applied(connection: duckdb.DuckDBPyConnection) -> set[int]:
    """Numbers of the steps that the file records; empty for a new file."""
    table = connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE table_name = 'migration' AND schema_name = 'main'"
    ).fetchall()
    return {number for (number,) in connection.execute("SELECT number FROM migration").fetchall()} if table else set()


def missing(connection: duckdb.DuckDBPyConnection, path: Path) -> list[Migration]:
    """The code's steps that the file lacks. Raises StoreError when the file has steps the code does not know."""
    steps, done = known(), applied(connection)
    unknown = done - {step.number for step in steps}
    if unknown:
        raise StoreError(
            f"The database {path} was written by newer code (step {max(unknown)}, here up to "
            f"{max(step.number for step in steps)}); update this program, or choose another file with --db or ATLAS_DB."
        )
    return [step for step in steps if step.number not in done]


def apply(connection: duckdb.DuckDBPyConnection, steps: list[Migration]) -> None:
    """Run each step in its own transaction and record it there."""
    if steps:
        connection.execute(_RECORD)
    for step in steps:
        connection.execute("BEGIN")
        try:
            connection.execute(step.sql)
            now = datetime.now(UTC).replace(tzinfo=None)
            connection.execute("INSERT INTO migration VALUES (?, ?, ?)", [step.number, step.name, now])
            connection.execute("COMMIT")
        except duckdb.Error:
            connection.execute("ROLLBACK")
            raise


def back_up(path: Path, step: Migration) -> Path:
    """Copy a closed database file (and its log) beside itself before a step changes it.

    Raises:
        StoreError: that cannot be done whole; then no copy is left, and the file is as it was.
    """
    folder = backups(path)
    copy = folder / f"{path.stem}-before-{step.number:03}-{stamp()}{path.suffix}"
    try:
        copied(path, copy)
        log = path.with_name(path.name + ".wal")
        if log.exists():
            copied(log, copy.with_name(copy.name + ".wal"))
    except OSError as error:
        with contextlib.suppress(OSError):  # the folder may be no folder
            copy.unlink()
        raise StoreError(
            f"The database {path} must be copied to {folder} before it is brought up to date, but that failed "
            f"({error.strerror}); free space or give write access there."
        ) from error
    return copy
