"""`python -m core findings list|export`: pinned results, and files of them to send."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from core.commands.output import Csv, Json, Latex, database, form_of, show_rows
from core.findings import export
from core.store.findings import findings

app = typer.Typer(help="Results that were pinned with a note.", no_args_is_help=True)
COLUMNS = ("finding", "title", "note", "about", "checkpoint", "weights_hash", "command", "annotator", "stored")


@app.command("list")
def list_findings(as_json: Json = False, csv: Csv = False, latex: Latex = False) -> None:
    """Which results are pinned, newest first, each with the command that gives it again."""
    form = form_of(as_json, csv, latex)
    with database(beside=False) as db:
        rows = [{name: asdict(one)[name] for name in COLUMNS} for one in findings(db)]
        show_rows("findings", {"database": str(db.path)}, rows, form)


@app.command("export")
def export_findings(
    html: Annotated[Path | None, typer.Option(help="one page to open anywhere, with maps to explore")] = None,
    md: Annotated[Path | None, typer.Option(help="Markdown, with a folder of pictures beside it")] = None,
    bib: Annotated[Path | None, typer.Option(help="BibTeX")] = None,
    only: Annotated[list[str] | None, typer.Option(help="a finding's id; several times; default: all")] = None,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
) -> None:
    """Write the findings to files: pictures, numbers with intervals, the exact command and checkpoint hash."""
    form = form_of(as_json, csv, latex)
    with database(beside=False) as db:
        written = export.write(findings(db, only or None), page=html, text=md, cited=bib)
    show_rows("findings-export", {}, [{"file": str(file), "bytes": file.stat().st_size} for file in written], form)
