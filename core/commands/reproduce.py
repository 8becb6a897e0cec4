"""`python -m core reproduce CHECKPOINT... --data DIR --out DIR`: the papers' figures and tables beside ours."""

import contextlib
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated

from ..config import settings
from ..errors import JobError
from ..jobs import api
from ..jobs.chain import JobRequest, run_in_turn
from ..jobs.executors import JobPlacement
from ..report import recorded_report, rendering, report
from ..report.discoveries import together
from ..report.plan import ReportOptions
from ..report.records import ClaimRecord, Records, records_of
from ..report.rendering.words import About, numbers_of
from ..store import exchange, runs, shipped_record
from ..store.database import Database
from ..store.rows import Row
from ..studies.contract import Flag
from ..studies.options import LARGEST_SEED
from .output import Form, follow, open_or_beside, show_rows, tell
from .study_commands import FORMS, PLACES, of_record

NO_LIMIT_AT_0 = ("limit", "sweep_limit", "train_limit", "dev_limit")


@dataclass(frozen=True)
class ReproduceOptions:
    """What is reproduced, and where the report goes."""

    checkpoints: Annotated[list[str] | None, Flag("one or more: bundled names, folders or hub ids", argument=True)] = (
        None
    )
    data: Annotated[
        str | None, Flag("folder with GLUE's, the papers' lists, a treebank; default: the bundled samples")
    ] = None
    hub: Annotated[bool, Flag("GLUE's rows from the hub instead", name="--hub")] = False
    out: Annotated[Path, Flag("folder for report.html and the Parquet files")] = Path("report")
    task: Annotated[list[str] | None, Flag("several times; default: all that --data has")] = None
    part: Annotated[list[str] | None, Flag("several times; default: all parts")] = None
    limit: Annotated[int, Flag("dev rows of a task whose maps are looked at; 0 for all", least=0)] = 100
    sweep_limit: Annotated[int, Flag("dev rows that heads are disabled on; 0 for all", least=0)] = 200
    effective_limit: Annotated[int, Flag("dev rows of a task for effective attention", least=2)] = 30
    tree_limit: Annotated[int, Flag("gold sentences of dev and of test", least=8)] = 150
    train_limit: Annotated[int, Flag("train rows of a task; 0 for all", least=0)] = 1000
    dev_limit: Annotated[int, Flag("dev rows that Table 1 is measured on; 0 for all", least=0)] = 0
    seeds: Annotated[int, Flag("fine-tuning runs of each task and initialisation", least=1)] = 1
    random_seeds: Annotated[int | None, Flag("how many of them from random weights, too; default: all", least=1)] = None
    folds: Annotated[int, Flag("parts of RTE's and MRPC's train rows, swept cross-fitted; 0: not", least=0)] = 0
    unseen: Annotated[
        bool, Flag("heads disabled on train rows, too, that fine-tuning left out and nothing learned is like")
    ] = False
    preset: Annotated[str, Flag("auto, paper, replication, small, bundled, long or compact")] = "auto"
    precision: Annotated[str, Flag("of training: float32, or bfloat16 where the processor computes in it")] = "float32"
    folder: Annotated[str | None, Flag("where checkpoints go; default data/runs/finetuned")] = None
    seed: Annotated[int, Flag("of rows, nulls and intervals", least=0, most=LARGEST_SEED)] = 0
    stored: Annotated[bool, Flag("run nothing: report on what the database has", name="--stored")] = False
    from_record: Annotated[bool, Flag("of the results that ship, without weights or data", name="--from-record")] = (
        False
    )
    figures: Annotated[bool, Flag("the pictures as SVG, too", name="--figures")] = False
    anew: Annotated[bool, Flag("run again what the database has already", name="--anew")] = False

    @property
    def report(self) -> ReportOptions:
        """The report's own; a limit of 0 is none."""
        shared = {
            option.name: getattr(self, option.name) for option in fields(ReportOptions) if hasattr(self, option.name)
        }
        shared |= {name: shared[name] or None for name in NO_LIMIT_AT_0}
        data_folder = self.data and str(Path(self.data).expanduser().resolve())
        choices = {"checkpoints": self.checkpoints or [], "tasks": self.task or [], "parts": self.part or []}
        return ReportOptions.read(shared | choices | {"data": data_folder})


@of_record(ReproduceOptions, beside=FORMS | PLACES)
def reproduce(asked: ReproduceOptions, form: Form, where: JobPlacement) -> None:
    """Run every study of the papers, then write their numbers beside ours: self-contained HTML, and Parquet.

    What the database holds is not run again, so the same command goes on after an interruption.
    """
    started = time.monotonic()
    if asked.from_record:
        _of_the_record(asked, form, started)
        return
    options = asked.report
    db, holder = open_or_beside(report.STUDY_NAME, asdict(options))
    try:
        api.runner(db, where)
        run = _make(db, options, anew=asked.anew, stored=asked.stored)
        provenance, records = runs.one_run(db, run), records_of(runs.run_rows(db, run))
        left = _leave(db, run, records) if holder else []
    finally:
        api.runner(db).close()
        db.close()
    if left:
        tell(f"{holder} {len(left)} runs are left in {left[0].parent}: import them on the Jobs page.", err=True)
    about = {name: value for name, value in provenance.items() if name != "row_ids"}
    _end(asked, About.of(provenance), records, about, form, started)


def _of_the_record(options: ReproduceOptions, form: Form, started: float) -> None:
    """Write the report of what ships; of these checkpoints, or of all."""
    evidence = recorded_report.recorded_evidence(options.checkpoints or ())
    about, records = recorded_report.about_record(evidence), report.records_of(evidence)
    provenance = {"title": about.title, "created": about.created, "record": shipped_record.about()}
    _end(options, about, records, provenance, form, started)


def _end(
    options: ReproduceOptions, about: About, records: Records, provenance: Row, form: Form, started: float
) -> None:
    """Write the files, and print the claims, what they say together, and how long it took."""
    page = rendering.html.write_report(options.out.expanduser(), about, records, figures=options.figures)
    show_rows("reproduce", provenance, [_short(claim) for claim in records.claims], form)
    tell(together(records.claims), err=True)
    seconds = time.monotonic() - started
    tell(f"{page} is written, with its rows as Parquet in the same folder. ({seconds:.0f} s)", err=True)


def _make(db: Database, options: ReportOptions, *, anew: bool, stored: bool) -> str:
    """Run the steps, a line each; then the report's own run."""
    planned = report.prepared(db, options)
    requests = [JobRequest(step.study, step.asked, step.title) for step in planned.steps]
    if stored:
        return report.finish(db, planned, [(api.finished_like(db, job.study, job.options), "") for job in requests])

    def before(number: int, job: str | None) -> None:
        state = "stored already" if job is None else "running"
        tell(f"{number + 1}/{len(requests)} {requests[number].title}: {state}", err=True)

    ended = run_in_turn(db, requests, watch=_watch, before=before, anew=anew)
    for step, end in zip(planned.steps, ended, strict=True):
        if end.error:
            tell(f"{step.title}: {end.error}", err=True)
    return report.finish(db, planned, [(end.run, end.error) for end in ended])


def _watch(db: Database, job: str) -> None:
    with contextlib.suppress(JobError):  # its sentence is the report's, and the next step starts
        follow(db, job)


def _leave(db: Database, run: str, records: Records) -> list[Path]:
    """Every run of the report as a file for the app that holds the database."""
    folder = exchange.runs_folder(settings().database.expanduser().resolve())
    names = [step.run for step in records.steps if step.run]
    return [exchange.export_run(db, name, folder / f"report-{name[:10]}.jsonl") for name in [*names, run]]


def _short(claim: ClaimRecord) -> Row:
    names = ("claim", "checkpoint", "task", "outcome", "n", "needed")
    return {name: getattr(claim, name) for name in names} | {"said": numbers_of(claim)}
