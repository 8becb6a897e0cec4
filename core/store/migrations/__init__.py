"""Numbered migrations of the database schema: `NNN_name.sql`, each in a recorded transaction."""

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
    """A migration of the database schema, with a number, a name and SQL statements."""

    number: int
    name: str
    sql: str


@cache
def known() -> tuple[Migration, ...]:
    """Return all database schema migrations that this program version contains, in order."""
    steps = []
    for file in sorted(FOLDER.glob("*.sql")):
        match = re.fullmatch(r"(\d{3})_(\w+)", file.stem)
        if not match:
            raise StoreError(f"A migration file must be named NNN_name.sql; got {file.name}. Rename it.")
        steps.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    return tuple(steps)


def applied(connection: duckdb.DuckDBPyConnection) -> set[int]:
    """Return the numbers of the schema migrations that have been applied to a database; empty for a new file."""
    table = connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE table_name = 'migration' AND schema_name = 'main'"
    ).fetchall()
    return {number for (number,) in connection.execute("SELECT number FROM migration").fetchall()} if table else set()


def missing(connection: duckdb.DuckDBPyConnection, path: Path) -> list[Migration]:
    """Return the schema migrations that have not been applied to a database yet. Raises StoreError if a newer program
    version wrote the database."""
    steps, done = known(), applied(connection)
    unknown = done - {step.number for step in steps}
    if unknown:
        raise StoreError(
            f"The database {path} comes from a newer version of the program: it has migration {max(unknown)}, and this "
            f"version knows migrations up to {max(step.number for step in steps)}. Update the program, or choose "
            "another file with --db or ATLAS_DB."
        )
    return [step for step in steps if step.number not in done]


def apply(connection: duckdb.DuckDBPyConnection, steps: list[Migration]) -> None:
    """Apply schema migrations to a database, each in its own transaction, and record them."""
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
    """Copy a closed database file and its log before a schema migration, and return the path of the copy."""
    folder = backups(path)
    copy = folder / f"{path.stem}-before-{step.number:03}-{stamp()}{path.suffix}"
    try:
        copied(path, copy)
        log = path.with_name(path.name + ".wal")
        if log.exists():
            copied(log, copy.with_name(copy.name + ".wal"))
    except OSError as error:
        with contextlib.suppress(OSError):  # the folder may not be a folder
            copy.unlink()
        raise StoreError(
            f"The database {path} must be copied to {folder} before it is migrated; copying failed "
            f"({error.strerror}). Free space, or make the folder writable."
        ) from error
    return copy
