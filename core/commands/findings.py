"""`python -m core findings list|export`: pinned results, and files of them to send."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..findings import export
from ..store.findings import findings
from ..studies.contract import Flag
from .output import Form, database, show_rows
from .study_commands import of_record, with_form

app = typer.Typer(help="Results that were pinned with a note.", no_args_is_help=True)
COLUMNS = ("finding", "title", "note", "about", "checkpoint", "weights_hash", "command", "annotator", "stored")


@app.command("list")
@with_form
def list_findings(form: Form) -> None:
    """Which results are pinned, newest first, each with the command that gives it again."""
    with database() as db:
        rows = [{name: fields[name] for name in COLUMNS} for fields in map(asdict, findings(db))]
        show_rows("findings", {"database": str(db.path)}, rows, form)


@dataclass(frozen=True)
class Exporting:
    """Which findings go to which files."""

    html: Annotated[Path | None, Flag("one page to open anywhere, with maps to explore")] = None
    md: Annotated[Path | None, Flag("Markdown, and a folder of its pictures")] = None
    bib: Annotated[Path | None, Flag("BibTeX")] = None
    only: Annotated[list[str] | None, Flag("a finding's id; several times; default: all")] = None


@app.command("export")
@of_record(Exporting)
def export_findings(asked: Exporting, form: Form) -> None:
    """Write the findings to files: pictures, numbers with intervals, the exact command and checkpoint hash."""
    with database() as db:
        written = export.write(findings(db, asked.only or None), page=asked.html, text=asked.md, cited=asked.bib)
    show_rows("findings-export", {}, [{"file": str(file), "bytes": file.stat().st_size} for file in written], form)
