"""`python -m core labels export|import FILE`: labels of attention maps as JSONL or Parquet."""

from pathlib import Path
from typing import Annotated

import typer

from core.commands.output import Csv, Json, Latex, form_of, show_rows
from core.commands.patterns import database
from core.errors import InputError
from core.store import label_files

app = typer.Typer(help="Labels of attention maps, in and out.", no_args_is_help=True)


@app.command("export")
def export_command(
    file: Annotated[Path, typer.Argument(help="ends in .jsonl or .parquet")],
    class_set: Annotated[str | None, typer.Option(help="only this one")] = None,
    weights: Annotated[bool, typer.Option(help="with the maps' weights")] = True,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
) -> None:
    """Write every label event, with its map, to a file that `import` reads back without loss."""
    form = form_of(as_json, csv, latex)
    if not file.parent.is_dir():
        raise InputError(f"The folder of the file must exist; {file.parent} does not: create it or name another file.")
    with database(beside=False) as db:
        count = label_files.export_labels(db, file, class_set, weights=weights)
    if form != "table":
        show_rows("labels-export", {"class_set": class_set}, [{"file": str(file), "events": count}], form)
    else:
        typer.echo(f"{count} events in {file}")


@app.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(help="a file of `export`, or JSONL with map_id, class, class_set, annotator")],
    all_or_nothing: Annotated[bool, typer.Option("--all-or-nothing", help="keep nothing if one row is bad")] = False,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
) -> None:
    """Add labels to the store; rows that cannot be used are named with their number and the reason."""
    form = form_of(as_json, csv, latex)
    with database(beside=False) as db:
        report = label_files.import_labels(db, file, keep_rest=not all_or_nothing)
    if form != "table":
        rows = [{"row": number, "reason": reason} for number, reason in report.refused]
        said = {"rows": report.rows, "new": report.new, "already": report.already, "maps": report.maps}
        show_rows("labels-import", said | {"file": str(file)}, rows, form)
    else:
        for number, reason in report.refused:
            typer.echo(f"row {number}: {reason}", err=True)
        typer.echo(
            f"{report.rows} rows: {report.new} new, {report.already} there already, {len(report.refused)} "
            f"refused; {report.maps} new maps"
        )
    if report.refused:
        raise typer.Exit(2)
