"""`python -m core hypothesis add|test|withdraw|list|export|verify`: register and test hypotheses about heads."""

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
from .parameters import FORMS, PLACES, of_record, with_form

app = typer.Typer(help="Register hypotheses about heads before testing them.", no_args_is_help=True)


@dataclass(frozen=True)
class Adding:
    """Options for registering hypotheses: the claim, the heads, the examples that suggested the claim, and the test
    examples."""

    checkpoint: Annotated[str, Flag("checkpoint: bundled name, local folder or hub ID", argument=True)]
    head: Annotated[
        tuple[str, ...],
        Flag("name of a head, such as L2H3; repeat the option to register several heads in one batch", required=True),
    ]
    predicate: Annotated[
        str, Flag(f"what the hypothesis claims about the head: {', '.join(PREDICATES)}", required=True)
    ]
    thought: Annotated[
        str,
        Flag(
            "examples that suggested the hypothesis, as task:split:limit:seed, such as sst2:dev:200:0",
            required=True,
        ),
    ]
    judged: Annotated[
        str,
        Flag(
            (
                "examples on which the hypothesis is tested, as task:split:limit:seed; they must not overlap with "
                "the examples that suggested the hypothesis"
            ),
            required=True,
        ),
    ]
    set: Annotated[
        tuple[str, ...],
        Flag("parameter of the claim about the head, such as feature=noun; repeat the option for several parameters"),
    ] = ()
    data: Annotated[
        str | None,
        Flag('folder with the TSV files of the GLUE tasks, or "hub" to download them (default: bundled samples)'),
    ] = None
    author: Annotated[str, Flag("your name, which is stored with the hypothesis")] = ""


@app.command("add")
@of_record(Adding)
def add(asked: Adding, form: Form) -> None:
    """Register hypotheses about heads. Heads given together form one batch and share its significance level."""
    parameters = dict(_parameter(text) for text in asked.set)
    proposals = [Proposal(Head.parse(name), asked.predicate, parameters) for name in asked.head]
    rows = {name: RowChoice.parse(getattr(asked, name), data=asked.data) for name in ("thought", "judged")}
    with database() as db:
        batch, _ = register(db, asked.checkpoint, proposals, **rows, annotator=asked.author)
        show_rows("hypothesis-add", {}, _rows(db, batch), form)


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(
            f'A parameter of a hypothesis must be written like feature=noun; got "{text[:60]}". Correct the parameter.'
        )
    return name.strip(), value.strip()


@dataclass(frozen=True)
class Testing:
    """Options for testing registered hypotheses."""

    id: Annotated[
        str,
        Flag(
            'ID of a hypothesis or of a batch (see `hypothesis list`), or "latest" for the most recent one',
            argument=True,
        ),
    ]


@app.command("test")
@of_record(Testing, beside=FORMS | PLACES)
def test(asked: Testing, form: Form, where: JobPlacement) -> None:
    """Test every hypothesis of a batch against seven criteria. Withdrawn hypotheses are skipped."""
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
    hypothesis: Annotated[str, typer.Argument(help="ID of the hypothesis to withdraw")],
    note: Annotated[str, typer.Option(help="reason for withdrawing the hypothesis")] = "",
) -> None:
    """Withdraw a hypothesis. It remains stored and still counts when its batch is corrected for multiple testing."""
    with database() as db:
        store.withdraw(db, hypothesis, note)
    tell(
        f"Withdrew {hypothesis}. The hypothesis remains in the list. The correction for multiple testing still counts "
        "it as a test of its batch."
    )


@app.command("list")
@with_form
def list_hypotheses(
    checkpoint: Annotated[str | None, typer.Option(help="list only hypotheses about this checkpoint")] = None,
    *,
    form: Form,
) -> None:
    """List all registered hypotheses with the state of each criterion."""
    with database() as db:
        rows = [row for row in _rows(db) if checkpoint in (None, row["checkpoint"])]
        show_rows("hypotheses", {"database": str(db.path)}, rows, form)


def _rows(db: Database, batch: str | None = None) -> list[Row]:
    by_id = {stored_batch.batch: stored_batch for stored_batch in store.batches(db)}
    rows: list[Row] = []
    for stored in store.hypotheses(db):
        if batch not in (None, stored.batch):
            continue
        of, hypothesis = by_id[stored.batch], hypothesis_of(stored)
        states: dict[str, Any] = {row["criterion"]: row["state"] for row in stored.criteria}
        now = present_weights(of.checkpoint)
        rows.append({
            "hypothesis": stored.hypothesis, "batch": stored.batch, "checkpoint": of.checkpoint,
            "weights_hash": of.weights_hash, "weights": "other now" if now and now != of.weights_hash else "present",
            "head": str(hypothesis.subject), "says": hypothesis.sentence, "predicate": stored.predicate,
            "thought": str(RowChoice(**of.thought)), "judged": str(RowChoice(**of.judged)),
            "batch_number": of.number, "level": of.level,
            "ever_registered_on_these_weights": store.ever_registered(db, of.weights_hash),
            "earlier_runs_on_its_inputs": of.seen, "imported": stored.imported,
            "author": of.annotator, "registered": of.stored,
            "withdrawn": stored.withdrawn, "run": stored.run,
            **{name.replace(" ", "_"): states.get(name, "not tested") for name in CRITERIA},
        })  # fmt: skip
    return rows


@app.command("export")
def export_crate(
    checkpoint: Annotated[str, typer.Argument(help="checkpoint whose hypotheses are exported")],
    out: Annotated[Path, typer.Argument(help="new folder to which the RO-Crate (a research data package) is written")],
) -> None:
    """Export all hypotheses about a checkpoint as an RO-Crate, which other machines can verify."""
    with database() as db:
        tell(str(hypothesis_crate.export(db, checkpoint, out)))


@app.command("verify")
def verify_crate(
    crate: Annotated[
        Path,
        typer.Argument(help="RO-Crate folder that `hypothesis export` has written, or a folder with several RO-Crates"),
    ],
) -> None:
    """Recompute every criterion that was used to test the hypotheses in an RO-Crate. Exit with status 2 if any result
    differs."""
    differing = False
    for folder in hypothesis_crate.crates(crate):
        compared, differences = hypothesis_crate.verify(folder)
        for difference in differences:
            tell(f"{folder.name}: {difference.what} was {difference.then} and is now {difference.now}.", err=True)
        if not differences:
            tell(f"{folder.name}: {compared} criteria are unchanged (tolerance {hypothesis_crate.TOLERANCE:g}).")
        differing |= bool(differences)
    if differing:
        raise typer.Exit(2)
