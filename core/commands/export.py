"""`python -m core export DIR` and `python -m core import DIR`: the whole database as Parquet."""

from pathlib import Path
from typing import Annotated

from typer import Argument

from ..config import settings
from ..store import exchange
from ..store.database import Database
from ..studies.imports import check_run
from .output import Form, show_rows
from .study_commands import with_form


@with_form
def export(folder: Annotated[Path, Argument(help="folder to write to; must be new or empty")], *, form: Form) -> None:
    """Export every table of the database to DIR as Parquet."""
    with Database(settings().database) as db:
        _show("export", db, folder, exchange.export_all(db, folder), form)


@with_form
def import_export(
    folder: Annotated[Path, Argument(help="folder that the command `export` has written")], *, form: Form
) -> None:
    """Import an export into an empty database (choose a new file with ATLAS_DB)."""
    with Database(settings().database) as db:
        _show("import", db, folder, exchange.import_all(db, folder, check_run=check_run), form)


def _show(study: str, db: Database, folder: Path, counts: dict[str, int], form: Form) -> None:
    rows = [{"table": name, "rows": count} for name, count in counts.items()]
    show_rows(study, {"database": str(db.path), "folder": str(folder)}, rows, form)
