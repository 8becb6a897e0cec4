"""`backup FILE`, `restore FILE` and `import-database FILE`: whole copies of databases."""

from pathlib import Path
from typing import Annotated

import typer

from ..config import settings
from ..errors import InputError
from ..store.backup import back_up_now, restore, schema_of
from ..store.recovery import LockedError
from .output import tell


def backup(file: Annotated[Path, typer.Argument(help="a new file for the copy, like atlas-2026-11-21.duckdb")]) -> None:
    """Copy the database to FILE, whole, also while the app runs and labels arrive."""
    size = back_up_now(settings().database, file)
    tell(f"{settings().database} is copied to {file} ({size / 1e6:.1f} MB, schema {schema_of(file)}).")


def restore_backup(file: Annotated[Path, typer.Argument(help="a file that `backup` wrote")]) -> None:
    """Put the copy FILE where the database is to be; refused while one lies there (choose a place with ATLAS_DB)."""
    events = restore(file, settings().database, say=lambda notice: tell(notice, err=True))
    tell(f"{file} is restored to {settings().database} ({events} label events).")


def import_database(
    file: Annotated[Path, typer.Argument(help="a database, such as data/atlas.duckdb of a clone")],
    db: Annotated[Path | None, typer.Option("--db", help="where to; default: ATLAS_DB, or the app's own")] = None,
) -> None:
    """Copy the database FILE with its labels and results to where the app looks for its own; refused while one lies
    there. FILE is left as it is and may be in use. Checkpoints that were fine-tuned
    beside FILE are not copied: open them by their folder."""
    source, target = file.expanduser().resolve(), (db or settings().database).expanduser().resolve()
    if not source.is_file() or source == target:
        raise InputError(
            f"import-database takes the file of another database than {target}; got {file}. Give the path of the "
            "database to copy, such as data/atlas.duckdb of a clone."
        )
    try:
        schema_of(source)
    except LockedError:
        size = back_up_now(source, target)  # by the program that has it open
        tell(f"{source} is copied to {target} ({size / 1e6:.1f} MB).")
    else:
        events = restore(source, target, say=lambda notice: tell(notice, err=True))
        tell(f"{source} is copied to {target} ({events} label events).")
