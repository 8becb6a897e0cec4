"""`python -m core labels export|import|retire`: labels of attention maps as JSONL or Parquet, and taken back."""

from pathlib import Path
from typing import Annotated

import typer

from core.commands.output import Csv, Json, Latex, form_of, show_rows
from core.commands.patterns import database
from core.errors import InputError
from core.labelling.snapshot import retire_unknown
from core.store import label_files, retiring

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


@app.command("retire")
def retire_command(
    events: Annotated[list[str] | None, typer.Argument(help='labels by "event", as `export` writes it')] = None,
    unknown: Annotated[str | None, typer.Option(help="labels of no class of this class set")] = None,
    annotator: Annotated[str, typer.Option(help="who retires them")] = "admin",
    why: Annotated[str, typer.Option(help="the reason, kept with the events")] = "retired from a terminal",
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
) -> None:
    """Take labels back, whoever gave them, as events: nothing is deleted, and what stood before stands again."""
    form = form_of(as_json, csv, latex)
    if bool(events) == bool(unknown):
        raise InputError("Labels to retire are given by event or as --unknown CLASS_SET; give one of the two.")
    with database(beside=False) as db:
        if unknown:
            count = retire_unknown(db, unknown, annotator=annotator)
        else:
            count = retiring.retire(db, events or [], annotator=annotator, why=why).new
    if form != "table":
        show_rows("labels-retire", {"class_set": unknown, "annotator": annotator}, [{"retired": count}], form)
    else:
        typer.echo(f"{count} labels retired")
