"""Short lives of a database, to be killed anywhere: `python -m tests.survival.episodes FOLDER [NAME ...]` after
`prepare(FOLDER)`.

What labels prints "acknowledged N FOLDER" once the store has acknowledged the label with that number.
"""

import gzip
import os
import sys
import time
from pathlib import Path

from core.store import backup, exchange, labels
from core.store.database import Database
from tests.store.labelling import a_map, event

DATABASE = "atlas.duckdb"
EARLIER = Path(__file__).resolve().parents[1] / "store" / "files" / "version-0.1.0.duckdb.gz"


def label(db: Database, number: int) -> None:
    saved = labels.record_events(db, [event(number, f"m{number % 2}", ("vertical", "block")[number % 2])])
    os.write(1, f"acknowledged {saved.acknowledged} {db.path.parent.name}\n".encode())


def folds(folder: Path) -> None:
    """A new file, labels, a fold, labels, and a close."""
    with Database(folder / DATABASE) as db:
        labels.store_maps(db, [a_map(f"m{k}") for k in range(2)])
        label(db, 1)
        db.fold()
        label(db, 2)
        label(db, 3)


def automatic(folder: Path) -> None:
    """Folds that DuckDB begins by itself at a commit, and the one at rest; the process ends without a close."""
    db = Database(folder / DATABASE)
    labels.store_maps(db, [a_map(f"m{k}") for k in range(2)])
    db.fold()
    with db.write() as cursor:
        cursor.execute("SET wal_autocheckpoint = '3KB'")
    for number in range(1, 8):
        label(db, number)
    with db.write() as cursor:
        cursor.execute("SET wal_autocheckpoint = '16MB'")
    db.fold()
    db._rest._seconds = 0.01
    label(db, 8)
    log = db.path.with_name(db.path.name + ".wal")
    while log.exists():
        time.sleep(0.01)
    db._rest._seconds = 100
    label(db, 9)
    os._exit(0)


def opens(folder: Path) -> None:
    """Opened as it lies there (a killed one, or one of an earlier version), and closed."""
    Database(folder / DATABASE).close()


def imports(folder: Path) -> None:
    """The export in the folder into a new database."""
    with Database(folder / DATABASE) as db:
        exchange.import_all(db, folder / "export")


def restores(folder: Path) -> None:
    """The copy in the folder put back."""
    backup.restore(folder / "copy.duckdb", folder / DATABASE)


def backs_up(folder: Path) -> None:
    """A copy of an open database that has a log."""
    with Database(folder / DATABASE) as db:
        label(db, 4)
        backup.back_up(db, folder / "copy.duckdb")


EPISODES = {
    "labels and folds": folds,
    "a killed one opens": opens,
    "an earlier version opens": opens,
    "an import": imports,
    "a backup": backs_up,
    "a restore": restores,
    "folds by themselves": automatic,  # the last: it ends the process
}


def prepare(folder: Path) -> None:
    """What the episodes begin with, each in a folder of its own below `folder`."""
    for name in EPISODES:
        (folder / name).mkdir(parents=True)
    source = folder / "source.duckdb"
    with Database(source) as db:
        labels.store_maps(db, [a_map(f"m{k}") for k in range(2)])
        for number in (1, 2, 3):
            labels.record_events(db, [event(number, f"m{number % 2}")])
        exchange.export_all(db, folder / "an import" / "export")
        backup.back_up(db, folder / "a restore" / "copy.duckdb")
        db.fold()
        labels.record_events(db, [event(1, batch="late")])
        with db.still():
            for name in ("a killed one opens", "a backup"):
                for end in ("", ".wal"):
                    backup.copy_held(Path(f"{source}{end}"), folder / name / f"{DATABASE}{end}")
    source.unlink()
    (folder / "an earlier version opens" / DATABASE).write_bytes(gzip.decompress(EARLIER.read_bytes()))


if __name__ == "__main__":
    for name in sys.argv[2:] or EPISODES:
        EPISODES[name](Path(sys.argv[1]) / name)
