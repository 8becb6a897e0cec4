"""New databases of tests begin as a copy of one: to make its forty tables takes 0.1 CPU seconds, a thousand times.

The first is made as a user's is, by all migrations; each copy gets an id of its own, as a new one has.
"""

import shutil
import uuid
from pathlib import Path

import duckdb

from core.store import database, migrations


class Template:
    """Stands for `database._connect`: where there is no file yet, it puts a copy of the first."""

    def __init__(self, file: Path):
        self.file, self.connect, self.steps = file, database._connect, migrations.known()
        database.Database(file).close()

    def __call__(self, path: Path) -> tuple[duckdb.DuckDBPyConnection, str | None]:
        copied = self._copied(path)
        connection, notice = self.connect(path)
        if copied:
            connection.execute("UPDATE store_id SET id = ?", [str(uuid.uuid4())])
        return connection, notice

    def _copied(self, path: Path) -> bool:
        """Whether there was no file yet, and none of an earlier version is asked for."""
        if path.exists() or path.with_name(f"{path.name}.wal").exists() or migrations.known() != self.steps:
            return False
        try:
            shutil.copyfile(self.file, path)
        except OSError:
            return False  # the store says why it cannot
        return True
