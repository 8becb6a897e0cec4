"""Results and findings that are taken away whole, so that they can be put back as they were."""

from dataclasses import dataclass, field

import pyarrow as pa

from .database import Database
from .findings import findings, unpin
from .rows import quoted
from .runs import delete_runs, one_run

RUN_TABLES = ("run", "study_row", "head_score", "part_score")


@dataclass(frozen=True)
class Removed:
    """What was taken away."""

    title: str
    tables: dict[str, pa.Table] = field(default_factory=dict)


def remove_run(db: Database, run: str) -> Removed:
    """Take a stored run away with all its rows. Raises StoreError if unknown; RightsError."""
    removed = Removed(str(one_run(db, run)["title"]), {name: _rows(db, name, "run", run) for name in RUN_TABLES})
    delete_runs(db, [run])
    return removed


def remove_finding(db: Database, finding: str) -> Removed:
    """Take a pinned result away. Raises StoreError if it is gone; RightsError where another pinned it."""
    title = "".join(finding_row.title for finding_row in findings(db, [finding]))
    removed = Removed(title, {"finding": _rows(db, "finding", "finding", finding)})
    unpin(db, finding)
    return removed


def put_back(db: Database, removed: Removed) -> None:
    """Undo the removal. Raises RightsError for a viewer."""
    db.person.must("annotator", "put a result back")
    with db.write() as cursor:
        for name, rows in removed.tables.items():
            cursor.register("removed_rows", rows)
            cursor.execute(f"INSERT INTO {quoted(name)} BY NAME SELECT * FROM removed_rows")  # noqa: S608 - quoted
            cursor.unregister("removed_rows")


def _rows(db: Database, table: str, column: str, value: str) -> pa.Table:
    with db.write() as cursor:  # the reader has no Arrow; nothing is written here
        cursor_rows = cursor.execute(f"SELECT * FROM {quoted(table)} WHERE {quoted(column)} = ?", [value])  # noqa: S608 - quoted
        return cursor_rows.to_arrow_table()
