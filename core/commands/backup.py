"""`python -m core backup FILE` and `python -m core restore FILE`: a whole copy of the database, and back."""

from pathlib import Path
from typing import Annotated

import typer

from ..config import settings
from ..store.backup import back_up_now, restore, schema_of
from .output import tell


def backup(file: Annotated[Path, typer.Argument(help="a new file for the copy, like atlas-2026-11-21.duckdb")]) -> None:
    """Copy the database to FILE, whole, also while the app runs and labels arrive."""
    size = back_up_now(settings().database, file)
    tell(f"{settings().database} is copied to {file} ({size / 1e6:.1f} MB, schema {schema_of(file)}).")


def restore_backup(file: Annotated[Path, typer.Argument(help="a file that `backup` wrote")]) -> None:
    """Put the copy FILE where the database is to be; refused while one lies there (choose a place with ATLAS_DB)."""
    events = restore(file, settings().database, say=lambda notice: tell(notice, err=True))
    tell(f"{file} is restored to {settings().database} ({events} label events).")
