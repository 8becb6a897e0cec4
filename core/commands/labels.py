"""`python -m core labels`: export, import, aggregate, retract and erase labels; import maps."""

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
from .parameters import of_record, with_form

app = typer.Typer(help="Export, import and aggregate labels of attention maps.", no_args_is_help=True)
FILE = "file ending in .jsonl, .parquet or .json (Label Studio), or a folder (Parquet with a dataset card)"


@app.command("export")
@with_form
def export_command(
    file: Annotated[Path, typer.Argument(help=FILE)],
    class_set: Annotated[
        str | None,
        typer.Option(help="export only labels in this class set; required if the output is a .json file or a folder"),
    ] = None,
    weights: Annotated[
        bool, typer.Option(help="also export the attention weights of the maps to a .jsonl or .parquet file")
    ] = True,
    *,
    form: Form,
) -> None:
    """Export all labels and their attention maps to a file, including retracted labels. The command `import` restores
    the labels from this file without loss."""
    if not file.parent.is_dir():
        raise InputError(
            f"The folder of the output file must exist; {file.parent} does not. Create the folder, or choose "
            "another file."
        )
    with database() as db:
        if file.suffix.lower() in label_files.ENDINGS:
            count = label_files.export_labels(db, file, class_set, weights=weights)
        elif class_set is None:
            raise InputError(
                "A file in this format can contain the labels of only one class set; no class set was given for "
                f"{file.name[:60]!r}. Add --class-set."
            )
        else:
            count = (export_studio if file.suffix.lower() == ".json" else export_dataset)(db, file, class_set)
        _say_alike(db, class_set)
    noun = "tasks" if file.suffix.lower() == ".json" else "events"
    _say("labels-export", [{"file": str(file), noun: count}], form, f"{count} {noun} in {file}", class_set=class_set)


def _say_alike(db: Database, class_set: str | None) -> None:
    """Warn about annotator names that look alike, on standard error."""
    if sentence := say_alike(labels.annotators(db, class_set)):
        tell(sentence, err=True)


def _say(study: str, rows: list[dict[str, object]], form: Form, sentence: str, **provenance: object) -> None:
    if form == "table":
        tell(sentence)
    else:
        show_rows(study, provenance, rows, form)


@dataclass(frozen=True)
class Importing:
    """Options for importing labels: the file, and how to read its labels."""

    file: Annotated[
        Path,
        Flag(
            "label file to import: an export by `labels export`, or JSONL with the fields map_id, class, "
            "class_set and annotator",
            argument=True,
        ),
    ]
    all_or_nothing: Annotated[
        bool, Flag("import no labels if any row of the file is invalid", name="--all-or-nothing")
    ] = False
    class_set: Annotated[str, Flag("class set of the labels, if the file is in the JSON format of Label Studio")] = (
        "bert"
    )
    person: Annotated[
        list[str] | None,
        Flag("annotator name for a user ID of Label Studio, as ID=NAME; repeat the option for several users"),
    ] = None


@app.command("import")
@of_record(Importing)
def import_command(asked: Importing, form: Form) -> None:
    """Import labels from a file. Invalid rows are listed with their number and the reason."""
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
            f"{report.rows} rows: {report.new} new, {report.already} stored already, {len(report.refused)} "
            f"refused; {report.maps} new maps"
        )
    if report.refused:
        raise typer.Exit(2)


@dataclass(frozen=True)
class Retiring:
    """Options for retracting labels: which labels to retract, the name of the user, and the reason."""

    events: Annotated[
        list[str] | None, Flag('IDs of the label events to retract (the column "event" of an export)', argument=True)
    ] = None
    unknown: Annotated[str | None, Flag("retract all labels whose class does not exist in this class set")] = None
    annotator: Annotated[str, Flag("your name, which is stored with the retraction")] = "admin"
    why: Annotated[str, Flag("reason for retracting labels by ID, which is stored with them")] = (
        "retired from a terminal"
    )


@app.command("retire")
@of_record(Retiring)
def retire_command(asked: Retiring, form: Form) -> None:
    """Retract labels of any annotator without deleting them. An earlier label of the same map by the same annotator
    becomes valid again."""
    if bool(asked.events) == bool(asked.unknown):
        raise InputError(
            "Labels to retract must be given either as event IDs or as --unknown CLASS_SET; got both or neither. "
            "Give one of the two."
        )
    with database() as db:
        if asked.unknown:
            count = retire_unknown(db, asked.unknown, annotator=asked.annotator)
        else:
            count = assignment_service.retire(db, asked.events or [], annotator=asked.annotator, why=asked.why).new
    if form != "table":
        provenance = {"class_set": asked.unknown, "annotator": asked.annotator}
        show_rows("labels-retire", provenance, [{"retired": count}], form)
    else:
        tell(f"{count} labels retracted")


def _named(typed: str) -> tuple[str, str]:
    number, equals, name = typed.partition("=")
    if not equals or not number.strip() or not name.strip():
        raise InputError(
            f"The value of --person must be ID=NAME; got {typed[:60]!r}. Write, for example, --person 3=ada."
        )
    return number.strip(), name.strip()


@app.command("maps")
@with_form
def maps_command(
    file: Annotated[Path, typer.Argument(help="file of square attention maps [query, key] in .npz format")],
    facts: Annotated[
        Path,
        typer.Argument(
            help=(
                "JSONL file with one line per map: key, checkpoint, layer and head (counted from 0), and optional "
                "fields such as tokens"
            )
        ),
    ],
    *,
    form: Form,
) -> None:
    """Import attention maps from a notebook or any model for labelling."""
    with database() as db:
        count, new = import_maps(db, file, facts)
    _say("labels-maps", [{"file": str(file), "maps": count, "new": new}], form, f"{count} maps, {new} of them new")


@dataclass(frozen=True)
class Judging:
    """Options for aggregating labels: which labels to combine, and by which method."""

    class_set: Annotated[str, Flag("class set of the labels: bert, gpt2, or the name of a custom class set")] = "bert"
    project: Annotated[str | None, Flag("title of a labelling project whose labels are used (default: all labels)")] = (
        None
    )
    method: Annotated[
        str, Flag("method that combines the labels of several annotators: majority, dawid-skene or mace")
    ] = "dawid-skene"
    people: Annotated[bool, Flag("print one row per annotator instead of one row per map", name="--people")] = False


@app.command("truth")
@of_record(Judging)
def truth_command(asked: Judging, form: Form) -> None:
    """Aggregate the labels of several annotators to one class and probabilities per map, or compare annotators."""
    chosen = crowd.checked_method(asked.method) or "majority"
    with database() as db:
        project = None
        if asked.project:
            all_projects = projects.projects(db)
            project = next((one for one in all_projects if asked.project in (one.title, one.project)), None)
            if project is None:
                raise InputError(
                    "A project must be given by its title "
                    f"({', '.join(one.title for one in all_projects)[:200] or 'there are none yet'}); got "
                    f"{asked.project[:60]!r}. Correct the title."
                )
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


@app.command("erase")
@with_form
def erase_command(
    name: Annotated[str, typer.Argument(help="name of the annotator to erase from the database")],
    events: Annotated[
        bool,
        typer.Option(
            "--events", help="also delete the labels of this annotator (default: keep them under a pseudonym)"
        ),
    ] = False,
    *,
    form: Form,
) -> None:
    """Erase a person's name everywhere, optionally with their labels. The erasure itself is recorded."""
    with database() as db:
        erased = (erasure.erase_events if events else erasure.erase_name)(db, name, annotator="terminal")
    sentence = f"The name has been replaced by {erased.pseudonym} in {erased.events} rows."
    sentence += " Earlier copies (backups, exports) still contain it."
    _say("labels-erase", [vars(erased)], form, sentence)
