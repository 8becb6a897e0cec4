"""`python -m core export DIR` and `python -m core import DIR`: the whole database as Parquet, and back."""

from pathlib import Path
from typing import Annotated

from typer import Argument

from core.commands.output import Csv, Form, Json, Latex, form_of, show_rows
from core.config import settings
from core.store import exchange
from core.store.database import Database


def export(
    folder: Annotated[Path, Argument(help="a folder that is new or empty")],
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
) -> None:
    """Write every table of the database to DIR as Parquet."""
    form = form_of(as_json, csv, latex)
    with Database(settings().database) as db:
        _show("export", db, folder, exchange.export_all(db, folder), form)


def import_export(
    folder: Annotated[Path, Argument(help="a folder that `export` wrote")],
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
) -> None:
    """Read what `export` wrote into a database that is still empty (choose a new file with ATLAS_DB)."""
    form = form_of(as_json, csv, latex)
    with Database(settings().database) as db:
        _show("import", db, folder, exchange.import_all(db, folder), form)


def _show(study: str, db: Database, folder: Path, counts: dict[str, int], form: Form) -> None:
    rows = [{"table": name, "rows": count} for name, count in counts.items()]
    show_rows(study, {"database": str(db.path), "folder": str(folder)}, rows, form)
