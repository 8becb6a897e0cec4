"""Copies of the whole database: `backup`, `restore`, `import-database`, and `export` and `import` as Parquet."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument

from ..config import settings
from ..errors import InputError
from ..store import exchange
from ..store.backup import back_up_now, restore, schema_of
from ..store.database import Database
from ..store.recovery import LockedError
from ..studies.imports import check_run
from .output import Form, show_rows, tell
from .parameters import with_form


def backup(
    file: Annotated[Path, typer.Argument(help="path of the new backup file, such as atlas-2026-11-21.duckdb")],
) -> None:
    """Back up the database to FILE; also works while the app is running."""
    size = back_up_now(settings().database, file)
    tell(f"{settings().database} has been backed up to {file} ({size / 1e6:.1f} MB, schema {schema_of(file)}).")


def restore_backup(
    file: Annotated[Path, typer.Argument(help="backup file that the command `backup` has written")],
) -> None:
    """Restore the backup FILE; refuses to overwrite a database (choose another file with ATLAS_DB)."""
    events = restore(file, settings().database, say=lambda notice: tell(notice, err=True))
    tell(f"{file} has been restored to {settings().database} ({events} label events).")


def import_database(
    file: Annotated[
        Path, typer.Argument(help="database file to import, such as data/atlas.duckdb in a clone of the repository")
    ],
    db: Annotated[
        Path | None,
        typer.Option(
            "--db",
            help="database file to write to (default: the path in ATLAS_DB, otherwise the "
            "default database of Attention Atlas)",
        ),
    ] = None,
) -> None:
    """Copy the database FILE, with its labels and results, to the database of the app. If that database exists already,
    it is not overwritten.

    FILE is not changed and may be in use. Checkpoints that were fine-tuned next to FILE are not copied: open them by
    folder.
    """
    source, target = file.expanduser().resolve(), (db or settings().database).expanduser().resolve()
    if not source.is_file() or source == target:
        raise InputError(
            f"The file to import must be an existing database, and not {target} itself; got {file}. Give the path "
            "of the database to copy, such as data/atlas.duckdb in a clone of the repository."
        )
    try:
        schema_of(source)
    except LockedError:
        size = back_up_now(source, target)  # copied by the program that holds it
        tell(f"{source} has been copied to {target} ({size / 1e6:.1f} MB).")
    else:
        events = restore(source, target, say=lambda notice: tell(notice, err=True))
        tell(f"{source} has been copied to {target} ({events} label events).")


# ---------------------------------------------------------------- export and import


@with_form
def export(
    folder: Annotated[Path, Argument(help="folder to which the database is exported; it must be new or empty")],
    *,
    form: Form,
) -> None:
    """Export every table of the database to FOLDER as Parquet."""
    with Database(settings().database) as db:
        _show("export", db, folder, exchange.export_all(db, folder), form)


@with_form
def import_export(
    folder: Annotated[Path, Argument(help="folder that the command `export` has written")], *, form: Form
) -> None:
    """Import the folder that `export` wrote into an empty database. To create a new database, set ATLAS_DB to a new
    file."""
    with Database(settings().database) as db:
        _show("import", db, folder, exchange.import_all(db, folder, check_run=check_run), form)


def _show(study: str, db: Database, folder: Path, counts: dict[str, int], form: Form) -> None:
    rows = [{"table": name, "rows": count} for name, count in counts.items()]
    show_rows(study, {"database": str(db.path), "folder": str(folder)}, rows, form)
