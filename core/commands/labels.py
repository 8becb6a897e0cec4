"""`python -m core labels`: labels of attention maps in and out, maps from elsewhere, one truth, and erasure."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..labelling import assignment_service, crowd
from ..labelling.dataset import export_dataset, import_dataset
from ..labelling.foreign_maps import import_maps
from ..labelling.label_studio import export_studio, import_studio
from ..patterns.snapshot import retire_unknown
from ..store import erasure, label_files, labels, projects
from ..store.database import Database
from ..store.label_checks import say_alike
from ..studies.contract import Flag
from .output import Form, database, show_rows, tell
from .study_commands import of_record, with_form

app = typer.Typer(help="Labels of attention maps, in and out; many people's labels as one.", no_args_is_help=True)
FILE = "ends in .jsonl or .parquet; .json: Label Studio's form; a folder: Parquet with its card"


@app.command("export")
@with_form
def export_command(
    file: Annotated[Path, typer.Argument(help=FILE)],
    class_set: Annotated[str | None, typer.Option(help="only this one; needed for .json and folders")] = None,
    weights: Annotated[bool, typer.Option(help="with the maps' weights")] = True,
    *,
    form: Form,
) -> None:
    """Write every label event, with its map, to a file that `import` reads back without loss."""
    if not file.parent.is_dir():
        raise InputError(f"The folder of the file must exist; {file.parent} does not: create it or name another file.")
    with database() as db:
        count = _exported(db, file, class_set, weights)
        _say_alike(db, class_set)
    noun = "tasks" if file.suffix.lower() == ".json" else "events"
    _say("labels-export", [{"file": str(file), noun: count}], form, f"{count} {noun} in {file}", class_set=class_set)


def _exported(db: Database, file: Path, class_set: str | None, weights: bool) -> int:
    if file.suffix.lower() in label_files.ENDINGS:
        return label_files.export_labels(db, file, class_set, weights=weights)
    if class_set is None:
        raise InputError(f"{file.name[:60]!r} holds the labels of one class set: name it with --class-set.")
    if file.suffix.lower() == ".json":
        return export_studio(db, file, class_set)
    return export_dataset(db, file, class_set)


def _say_alike(db: Database, class_set: str | None) -> None:
    """Names among the labels that look alike, on standard error."""
    if sentence := say_alike(labels.annotators(db, class_set)):
        tell(sentence, err=True)


def _say(study: str, rows: list[dict[str, object]], form: Form, sentence: str, **provenance: object) -> None:
    if form == "table":
        tell(sentence)
    else:
        show_rows(study, provenance, rows, form)


@dataclass(frozen=True)
class Importing:
    """Which labels come in."""

    file: Annotated[Path, Flag("what `export` wrote; JSONL with map_id, class, class_set, annotator", argument=True)]
    all_or_nothing: Annotated[bool, Flag("keep nothing if one row is bad", name="--all-or-nothing")] = False
    class_set: Annotated[str, Flag("of Label Studio's JSON")] = "bert"
    person: Annotated[list[str] | None, Flag("ID=NAME: who a user of Label Studio is; may be repeated")] = None


@app.command("import")
@of_record(Importing)
def import_command(asked: Importing, form: Form) -> None:
    """Add labels to the store; rows that cannot be used are named with their number and the reason."""
    file, keep_rest = asked.file, not asked.all_or_nothing
    people = dict(map(_named, asked.person or []))
    with database() as db:
        if file.suffix.lower() == ".json":
            report = import_studio(db, file, asked.class_set, people=people, keep_rest=keep_rest)
        elif file.is_dir():
            report = import_dataset(db, file, keep_rest=keep_rest)
        else:
            report = label_files.import_labels(db, file, keep_rest=keep_rest)
    if form != "table":
        rows = [{"row": number, "reason": reason} for number, reason in report.refused]
        counts = {"rows": report.rows, "new": report.new, "already": report.already, "maps": report.maps}
        show_rows("labels-import", counts | {"notes": report.notes, "file": str(file)}, rows, form)
    else:
        for number, reason in report.refused:
            tell(f"row {number}: {reason}", err=True)
        for note in report.notes:
            tell(note, err=True)
        tell(
            f"{report.rows} rows: {report.new} new, {report.already} there already, {len(report.refused)} "
            f"refused; {report.maps} new maps"
        )
    if report.refused:
        raise typer.Exit(2)


@dataclass(frozen=True)
class Retiring:
    """Which labels are taken back, by whom and why."""

    events: Annotated[list[str] | None, Flag('labels by "event", as `export` writes it', argument=True)] = None
    unknown: Annotated[str | None, Flag("labels of no class of this class set")] = None
    annotator: Annotated[str, Flag("who retires them")] = "admin"
    why: Annotated[str, Flag("the reason, kept with the events")] = "retired from a terminal"


@app.command("retire")
@of_record(Retiring)
def retire_command(asked: Retiring, form: Form) -> None:
    """Take labels back, whoever gave them, as events: nothing is deleted, and what stood before stands again."""
    if bool(asked.events) == bool(asked.unknown):
        raise InputError("Labels to retire are given by event or as --unknown CLASS_SET; give one of the two.")
    with database() as db:
        if asked.unknown:
            count = retire_unknown(db, asked.unknown, annotator=asked.annotator)
        else:
            count = assignment_service.retire(db, asked.events or [], annotator=asked.annotator, why=asked.why).new
    if form != "table":
        provenance = {"class_set": asked.unknown, "annotator": asked.annotator}
        show_rows("labels-retire", provenance, [{"retired": count}], form)
    else:
        tell(f"{count} labels retired")


def _named(typed: str) -> tuple[str, str]:
    number, equals, name = typed.partition("=")
    if not equals or not number.strip() or not name.strip():
        raise InputError(f"A person is written ID=NAME, but {typed[:60]!r} is not; for example --person 3=ada.")
    return number.strip(), name.strip()


@app.command("maps")
@with_form
def maps_command(
    file: Annotated[Path, typer.Argument(help="an .npz of attention maps, [query, key] each")],
    facts: Annotated[Path, typer.Argument(help="JSONL: key, checkpoint, layer, head (from 0) of each, tokens ...")],
    *,
    form: Form,
) -> None:
    """Bring in maps from a notebook or any model, to be labelled like our own."""
    with database() as db:
        count, new = import_maps(db, file, facts)
    _say("labels-maps", [{"file": str(file), "maps": count, "new": new}], form, f"{count} maps, {new} of them new")


@dataclass(frozen=True)
class Judging:
    """Whose labels become one, and how."""

    class_set: Annotated[str, Flag("bert, gpt2, or a set of your own")] = "bert"
    project: Annotated[str | None, Flag("title of a project: its labels alone")] = None
    method: Annotated[str, Flag("majority, dawid-skene or mace")] = "dawid-skene"
    people: Annotated[bool, Flag("a row a person instead of a row a map", name="--people")] = False


@app.command("truth")
@of_record(Judging)
def truth_command(asked: Judging, form: Form) -> None:
    """One class a map from many people's labels, with the probability of each class; or who can be relied on."""
    chosen = crowd.checked_method(asked.method) or "majority"
    with database() as db:
        project = _titled(db, asked.project) if asked.project else None
        class_set = project.class_set if project else asked.class_set
        judged = crowd.truth_of(db, class_set, chosen, project.project if project else None)
        pace = labels.pace(db, class_set)
        _say_alike(db, class_set)
    table = crowd.people_table(judged, pace)
    if not asked.people:
        best = judged.labels.fillna("(tie)")
        table = best.to_frame("class").join(judged.adjudicated).join(judged.soft.round(4))
        table = table.rename_axis("map").reset_index()
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    provenance = {"class_set": class_set, "project": asked.project, "method": asked.method}
    show_rows("labels-truth", provenance, rows, form)


def _titled(db: Database, title: str) -> projects.Project:
    all_projects = projects.projects(db)
    titled = next((project for project in all_projects if title in (project.title, project.project)), None)
    if titled is None:
        raise InputError(
            f"A project is named by its title; {title[:60]!r} is none of "
            f"{', '.join(project.title for project in all_projects)[:200] or 'none yet'}: correct it."
        )
    return titled


@app.command("erase")
@with_form
def erase_command(
    name: Annotated[str, typer.Argument(help="the name that labels carry")],
    events: Annotated[bool, typer.Option("--events", help="delete the person's labels too, not only the name")] = False,
    *,
    form: Form,
) -> None:
    """Take a person's name out of the whole record, or their label events too; that it was done is recorded."""
    with database() as db:
        erased = (erasure.erase_events if events else erasure.erase_name)(db, name, annotator="terminal")
    sentence = f"Done: {erased.pseudonym} stands in the place of the name; {erased.events} rows were touched."
    _say("labels-erase", [vars(erased)], form, sentence + " Copies made before (backups, exports) still have it.")
