"""`python -m core labels`: labels of attention maps in and out, maps from elsewhere, one truth, and erasure."""

from pathlib import Path
from typing import Annotated

import typer

from core.commands.output import Csv, Form, Json, Latex, database, form_of, show_rows
from core.errors import InputError
from core.labelling import crowd
from core.labelling.dataset import export_dataset, import_dataset
from core.labelling.elsewhere import import_maps
from core.labelling.label_studio import export_studio, import_studio
from core.labelling.snapshot import retire_unknown
from core.store import erasure, label_files, labels, projects, retiring
from core.store.database import Database

app = typer.Typer(help="Labels of attention maps, in and out; many people's labels as one.", no_args_is_help=True)
FILE = "ends in .jsonl or .parquet; .json: Label Studio's form; a folder: Parquet with its card"
ClassSetName = Annotated[str, typer.Option(help="bert, gpt2, or a set of your own")]


@app.command("export")
def export_command(
    file: Annotated[Path, typer.Argument(help=FILE)],
    class_set: Annotated[str | None, typer.Option(help="only this one; needed for .json and folders")] = None,
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
        count = _exported(db, file, class_set, weights)
    what = "tasks" if file.suffix.lower() == ".json" else "events"
    _say("labels-export", [{"file": str(file), what: count}], form, f"{count} {what} in {file}", class_set=class_set)


def _exported(db: Database, file: Path, class_set: str | None, weights: bool) -> int:
    if file.suffix.lower() in label_files.ENDINGS:
        return label_files.export_labels(db, file, class_set, weights=weights)
    if class_set is None:
        raise InputError(f"{file.name[:60]!r} holds the labels of one class set: name it with --class-set.")
    if file.suffix.lower() == ".json":
        return export_studio(db, file, class_set)
    return export_dataset(db, file, class_set)


def _say(study: str, rows: list[dict[str, object]], form: Form, sentence: str, **about: object) -> None:
    if form == "table":
        typer.echo(sentence)
    else:
        show_rows(study, about, rows, form)


@app.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(help="what `export` wrote; JSONL with map_id, class, class_set, annotator")],
    all_or_nothing: Annotated[bool, typer.Option("--all-or-nothing", help="keep nothing if one row is bad")] = False,
    class_set: Annotated[str, typer.Option(help="of Label Studio's JSON")] = "bert",
    person: Annotated[
        list[str] | None, typer.Option(help="ID=NAME: who a user of Label Studio is; may be repeated")
    ] = None,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
) -> None:
    """Add labels to the store; rows that cannot be used are named with their number and the reason."""
    form = form_of(as_json, csv, latex)
    people = dict(map(_named, person or []))
    with database(beside=False) as db:
        if file.suffix.lower() == ".json":
            report = import_studio(db, file, class_set, people=people, keep_rest=not all_or_nothing)
        elif file.is_dir():
            report = import_dataset(db, file, keep_rest=not all_or_nothing)
        else:
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


def _named(said: str) -> tuple[str, str]:
    number, equals, name = said.partition("=")
    if not equals or not number.strip() or not name.strip():
        raise InputError(f"A person is written ID=NAME, but {said[:60]!r} is not; for example --person 3=ada.")
    return number.strip(), name.strip()


@app.command("maps")
def maps_command(
    file: Annotated[Path, typer.Argument(help="an .npz of attention maps, [query, key] each")],
    facts: Annotated[Path, typer.Argument(help="JSONL: key, checkpoint, layer, head (from 0) of each, tokens ...")],
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
) -> None:
    """Bring in maps from a notebook or any model, to be labelled like our own."""
    form = form_of(as_json, csv, latex)
    with database(beside=False) as db:
        count, new = import_maps(db, file, facts)
    _say("labels-maps", [{"file": str(file), "maps": count, "new": new}], form, f"{count} maps, {new} of them new")


@app.command("truth")
def truth_command(
    class_set: ClassSetName = "bert",
    project: Annotated[str | None, typer.Option(help="title of a project: its labels alone")] = None,
    method: Annotated[str, typer.Option(help="majority, dawid-skene or mace")] = "dawid-skene",
    people: Annotated[bool, typer.Option("--people", help="a row a person instead of a row a map")] = False,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
) -> None:
    """One class a map from many people's labels, with the probability of each class; or who can be relied on."""
    form = form_of(as_json, csv, latex)
    chosen = crowd.checked_method(method) or "majority"
    with database(beside=False) as db:
        known = _titled(db, project) if project else None
        class_set = known.class_set if known else class_set
        judged = crowd.truth_of(db, class_set, chosen, known.project if known else None)
        pace = labels.pace(db, class_set)
    table = crowd.people_table(judged, pace)
    if not people:
        best = judged.labels.fillna("(tie)")
        table = best.to_frame("class").join(judged.probabilities.round(4)).rename_axis("map").reset_index()
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    show_rows("labels-truth", {"class_set": class_set, "project": project, "method": method}, rows, form)


def _titled(db: Database, title: str) -> projects.Project:
    found = [one for one in projects.projects(db) if title in (one.title, one.project)]
    if not found:
        raise InputError(
            f"A project is named by its title; {title[:60]!r} is none of "
            f"{', '.join(one.title for one in projects.projects(db))[:200] or 'none yet'}: correct it."
        )
    return found[0]


@app.command("erase")
def erase_command(
    name: Annotated[str, typer.Argument(help="the name that labels carry")],
    events: Annotated[bool, typer.Option("--events", help="delete the person's labels too, not only the name")] = False,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
) -> None:
    """Take a person's name out of the whole record, or their label events too; that it was done is recorded."""
    form = form_of(as_json, csv, latex)
    with database(beside=False) as db:
        done = (erasure.erase_events if events else erasure.erase_name)(db, name, annotator="terminal")
    sentence = f"Done: {done.pseudonym} stands in the place of the name; {done.events} rows were touched."
    _say("labels-erase", [vars(done)], form, sentence + " Copies made before (backups, exports) still have it.")
