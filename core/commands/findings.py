"""`python -m core findings list|export`: list pinned results, and export them to files."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..findings import export
from ..store.findings import findings
from ..studies.contract import Flag
from .output import Form, database, show_rows
from .parameters import of_record, with_form

app = typer.Typer(
    help="List and export findings, which are results that were pinned on the pages of the app.", no_args_is_help=True
)
COLUMNS = ("finding", "title", "note", "about", "checkpoint", "weights_hash", "command", "annotator", "stored")


@app.command("list")
@with_form
def list_findings(form: Form) -> None:
    """List findings, newest first, with the commands that reproduce them."""
    with database() as db:
        rows = [{name: fields[name] for name in COLUMNS} for fields in map(asdict, findings(db))]
        show_rows("findings", {"database": str(db.path)}, rows, form)


@dataclass(frozen=True)
class Exporting:
    """Options for exporting findings: which findings to export, and to which files."""

    html: Annotated[
        Path | None, Flag("HTML file to write: one self-contained page of the findings with interactive maps")
    ] = None
    md: Annotated[
        Path | None, Flag("Markdown file to write; charts of the findings are saved in a folder next to the file")
    ] = None
    bib: Annotated[Path | None, Flag("BibTeX file to write, with one entry per finding")] = None
    only: Annotated[
        list[str] | None,
        Flag("ID of a finding to export; repeat the option for several findings (default: all findings)"),
    ] = None


@app.command("export")
@of_record(Exporting)
def export_findings(asked: Exporting, form: Form) -> None:
    """Export findings with charts, numbers and intervals, the exact command and the checkpoint hash."""
    with database() as db:
        written = export.write(findings(db, asked.only or None), page=asked.html, text=asked.md, cited=asked.bib)
    show_rows("findings-export", {}, [{"file": str(file), "bytes": file.stat().st_size} for file in written], form)
