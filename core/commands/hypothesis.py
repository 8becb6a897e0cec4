"""`python -m core hypothesis add|test|withdraw|list|export|verify`: hypotheses about heads, tested once registered."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..attention import Head
from ..errors import InputError
from ..findings import hypothesis_crate
from ..jobs.executors import JobPlacement
from ..models.present import present_weights
from ..store import hypotheses as store
from ..store.database import Database
from ..store.rows import Row
from ..studies.contract import Flag, as_json
from ..studies.hypotheses.hypothesis import STUDY, RowChoice
from ..studies.hypotheses.predicates import PREDICATES
from ..studies.hypotheses.records import CRITERIA, Criterion
from ..studies.hypotheses.registering import Proposal, batch_of, hypothesis_of, options_of, register
from .output import Form, database, ran, show_rows, tell
from .study_commands import FORMS, PLACES, of_record, with_form

app = typer.Typer(help="Hypotheses about heads, registered before they are tested.", no_args_is_help=True)


@dataclass(frozen=True)
class Adding:
    """What is said of which heads, thought of on which rows, to be judged on which."""

    checkpoint: Annotated[str, Flag("bundled name, local folder or hub id", argument=True)]
    head: Annotated[tuple[str, ...], Flag("a head such as L2H3; several times, all in one batch", required=True)]
    predicate: Annotated[str, Flag(", ".join(PREDICATES), required=True)]
    thought: Annotated[str, Flag("rows it was thought of on: task:split:limit:seed, as sst2:dev:200:0", required=True)]
    judged: Annotated[str, Flag("rows that judge it, likewise; none may be among the others", required=True)]
    set: Annotated[tuple[str, ...], Flag("a parameter, as feature=noun; several times")] = ()
    data: Annotated[str | None, Flag("folder in GLUE's TSV form, or hub; default: the bundled samples")] = None
    author: Annotated[str, Flag("who registers it")] = ""


@app.command("add")
@of_record(Adding)
def add(asked: Adding, form: Form) -> None:
    """Register hypotheses before they are tested; heads named together are one batch, whose level they share."""
    parameters = dict(_parameter(text) for text in asked.set)
    proposals = [Proposal(Head.parse(name), asked.predicate, parameters) for name in asked.head]
    rows = {name: RowChoice.parse(getattr(asked, name), data=asked.data) for name in ("thought", "judged")}
    with database() as db:
        batch, _ = register(db, asked.checkpoint, proposals, **rows, annotator=asked.author)
        show_rows("hypothesis-add", {}, _rows(db, batch), form)


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f'A parameter is written like feature=noun; "{text[:60]}" is not.')
    return name.strip(), value.strip()


@dataclass(frozen=True)
class Testing:
    """Which batch is tested."""

    id: Annotated[str, Flag("a hypothesis or its batch, as `hypothesis list` prints it; or latest", argument=True)]


@app.command("test")
@of_record(Testing, beside=FORMS | PLACES)
def test(asked: Testing, form: Form, where: JobPlacement) -> None:
    """Test all hypotheses of a batch that were not withdrawn: which of seven criteria each meets."""
    with database() as db:
        options = options_of(*batch_of(db, asked.id))
    provenance, rows = ran(STUDY.name, as_json(options), where=where)
    criteria = Criterion.among(rows)
    if form != "table":
        show_rows(STUDY.name, provenance, rows, form)
        return
    for hypothesis in dict.fromkeys(criterion.hypothesis for criterion in criteria):
        judged = [criterion for criterion in criteria if criterion.hypothesis == hypothesis]
        tell(f"{judged[0].sentence} ({hypothesis})")
        names = ("criterion", "state", "measure", "amount", "low", "high", "n", "adjusted", "level", "note")
        show_rows(STUDY.name, {}, [{name: getattr(c, name) for name in names} for c in judged], form)


@app.command("withdraw")
def withdraw(
    hypothesis: Annotated[str, typer.Argument(help="its id")],
    note: Annotated[str, typer.Option(help="why")] = "",
) -> None:
    """Say that a hypothesis is no longer held. It stays, unchanged, and still counts."""
    with database() as db:
        store.withdraw(db, hypothesis, note)
    tell(f"Withdrawn: {hypothesis}. It stays in the list and still counts towards its batch's level.")


@app.command("list")
@with_form
def list_hypotheses(
    checkpoint: Annotated[str | None, typer.Option(help="of this checkpoint only")] = None, *, form: Form
) -> None:
    """Every hypothesis that was ever registered, with what it meets."""
    with database() as db:
        rows = [row for row in _rows(db) if checkpoint in (None, row["checkpoint"])]
        show_rows("hypotheses", {"database": str(db.path)}, rows, form)


def _rows(db: Database, batch: str | None = None) -> list[Row]:
    by_id = {stored_batch.batch: stored_batch for stored_batch in store.batches(db)}
    chosen = (hypothesis for hypothesis in store.hypotheses(db) if batch in (None, hypothesis.batch))
    return [_row(db, hypothesis, by_id[hypothesis.batch]) for hypothesis in chosen]


def _row(db: Database, hypothesis: store.StoredHypothesis, batch: store.StoredBatch) -> Row:
    states: dict[str, Any] = {row["criterion"]: row["state"] for row in hypothesis.criteria}
    now = present_weights(batch.checkpoint)
    return {
        "hypothesis": hypothesis.hypothesis, "batch": hypothesis.batch, "checkpoint": batch.checkpoint,
        "weights_hash": batch.weights_hash, "weights": "other now" if now and now != batch.weights_hash else "present",
        "head": str(hypothesis_of(hypothesis).subject), "says": hypothesis_of(hypothesis).sentence,
        "predicate": hypothesis.predicate,
        "thought": str(RowChoice(**batch.thought)), "judged": str(RowChoice(**batch.judged)),
        "batch_number": batch.number, "level": batch.level,
        "ever_registered_on_these_weights": store.ever_registered(db, batch.weights_hash),
        "earlier_runs_on_its_inputs": batch.seen, "imported": hypothesis.imported,
        "author": batch.annotator, "registered": batch.stored,
        "withdrawn": hypothesis.withdrawn, "run": hypothesis.run,
        **{name.replace(" ", "_"): states.get(name, "not tested") for name in CRITERIA},
    }  # fmt: skip


@app.command("export")
def export_crate(
    checkpoint: Annotated[str, typer.Argument(help="whose hypotheses")],
    out: Annotated[Path, typer.Argument(help="a new folder")],
) -> None:
    """Write all hypotheses about a checkpoint as an RO-Crate, which another machine can read and run again."""
    with database() as db:
        tell(str(hypothesis_crate.export(db, checkpoint, out)))


@app.command("verify")
def verify_crate(crate: Annotated[Path, typer.Argument(help="a crate, or a folder of crates")]) -> None:
    """Compute every criterion of a crate again; what differs is named, and the exit status is then 2."""
    differing = False
    for folder in hypothesis_crate.crates(crate):
        compared, differences = hypothesis_crate.verify(folder)
        for difference in differences:
            tell(f"{folder.name}: {difference.what} was {difference.then} and is {difference.now}.", err=True)
        if not differences:
            tell(f"{folder.name}: {compared} criteria are as they were, to {hypothesis_crate.TOLERANCE:g}.")
        differing |= bool(differences)
    if differing:
        raise typer.Exit(2)
