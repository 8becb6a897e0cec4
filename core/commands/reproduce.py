"""`python -m core reproduce CHECKPOINT... --data DIR --out DIR`: reproduce the papers' figures and tables.

`python -m core analyse CHECKPOINT --task sst2`: run every study that applies to a checkpoint, as one job.
"""

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
from ..report.analysis import JOB, plan_analysis
from ..report.headlines import together
from ..report.plan import ReportOptions
from ..report.records import REPORT, Records, records_of
from ..report.rendering.words import About, numbers_of
from ..store import exchange, runs, shipped_record
from ..store.database import Database
from ..store.rows import Row
from ..studies.contract import Flag, as_json
from ..studies.options import LARGEST_SEED, Checkpoint, TaskName
from .output import Form, database, follow, open_or_beside, ran, show_rows, tell
from .parameters import FORMS, PLACES, of_record

NO_LIMIT_AT_0 = ("limit", "sweep_limit", "train_limit", "dev_limit")


@dataclass(frozen=True)
class ReproduceOptions:
    """Options for reproducing the papers: what to reproduce, and where to write the report."""

    checkpoints: Annotated[
        list[str] | None, Flag("one or more checkpoints: bundled names, local folders or hub IDs", argument=True)
    ] = None
    data: Annotated[
        str | None,
        Flag(
            "folder with GLUE, the frame sentences of Kovaleva et al. 2019 and of the GPT-2 replication, and a "
            "treebank (default: bundled samples)"
        ),
    ] = None
    hub: Annotated[
        bool, Flag("download GLUE from the Hugging Face hub instead of reading it from --data", name="--hub")
    ] = False
    out: Annotated[Path, Flag("folder to which report.html and Parquet files are written")] = Path("report")
    task: Annotated[
        list[str] | None,
        Flag("task to include in the report; repeat the option for several tasks (default: all tasks in --data)"),
    ] = None
    part: Annotated[
        list[str] | None,
        Flag(
            "part of the report to compute; repeat the option for several parts (default: all parts except shapley, "
            "gates and pairs)"
        ),
    ] = None
    limit: Annotated[int, Flag("number of dev examples per task for attention statistics; 0 uses all", least=0)] = 100
    sweep_limit: Annotated[int, Flag("number of dev examples per task for ablating heads; 0 uses all", least=0)] = 200
    effective_limit: Annotated[
        int,
        Flag(
            "number of dev examples per task for effective attention and for the sources of attention scores", least=2
        ),
    ] = 30
    tree_limit: Annotated[
        int,
        Flag("number of annotated sentences from each split of the treebank (for probes, four times as many)", least=8),
    ] = 150
    train_limit: Annotated[int, Flag("number of training examples per task for fine-tuning; 0 uses all", least=0)] = (
        1000
    )
    dev_limit: Annotated[
        int, Flag("number of dev examples per task for Table 1 (fine-tuning scores); 0 uses all", least=0)
    ] = 0
    seeds: Annotated[int, Flag("number of fine-tuning runs per task and initialisation", least=1)] = 1
    random_seeds: Annotated[
        int | None,
        Flag(
            (
                "number of fine-tuning runs that start from random weights (default: as many as from pre-trained "
                "weights)"
            ),
            least=1,
        ),
    ] = None
    folds: Annotated[
        int,
        Flag("number of folds for cross-fitted ablation on the training splits of RTE and MRPC; 0 skips it", least=0),
    ] = 0
    unseen: Annotated[
        bool,
        Flag(
            "also ablate heads on unused training examples (not used for fine-tuning, and without any four-word "
            "sequence of a used example)"
        ),
    ] = False
    preset: Annotated[
        str,
        Flag(
            "fine-tuning recipe: auto (chosen for each checkpoint), paper, replication, small, bundled, long or compact"
        ),
    ] = "auto"
    precision: Annotated[
        str, Flag("number format during training: float32, or bfloat16 if the processor supports it")
    ] = "float32"
    folder: Annotated[str | None, Flag("folder for fine-tuned checkpoints (default: data/runs/finetuned)")] = None
    seed: Annotated[
        int,
        Flag(
            "random seed for sampling examples, null distributions and bootstrap intervals", least=0, most=LARGEST_SEED
        ),
    ] = 0
    stored: Annotated[
        bool, Flag("do not run any study; report only results that are already in the database", name="--stored")
    ] = False
    from_record: Annotated[
        bool,
        Flag(
            "report on the results that are bundled with Attention Atlas; this needs neither weights nor data",
            name="--from-record",
        ),
    ] = False
    figures: Annotated[bool, Flag("also save the figures of the report as SVG files", name="--figures")] = False
    anew: Annotated[bool, Flag("rerun studies whose results are already stored", name="--anew")] = False

    @property
    def report(self) -> ReportOptions:
        """Return the options for the report of the command `reproduce`. On the command line, a limit of 0 means no
        limit."""
        shared = {
            option.name: getattr(self, option.name) for option in fields(ReportOptions) if hasattr(self, option.name)
        }
        shared |= {name: shared[name] or None for name in NO_LIMIT_AT_0}
        data_folder = self.data and str(Path(self.data).expanduser().resolve())
        choices = {"checkpoints": self.checkpoints or [], "tasks": self.task or [], "parts": self.part or []}
        return ReportOptions.read(shared | choices | {"data": data_folder})


@of_record(ReproduceOptions, beside=FORMS | PLACES)
def reproduce(asked: ReproduceOptions, form: Form, where: JobPlacement) -> None:
    """Run all studies of the papers and report their published and reproduced numbers as HTML and Parquet.

    Stored results are not recomputed, so the same command continues after an interruption.
    """
    started = time.monotonic()
    if asked.from_record:
        evidence = recorded_report.recorded_evidence(asked.checkpoints or ())
        record, records = recorded_report.about_record(evidence), report.records_of(evidence)
        provenance = {"title": record.title, "created": record.created, "record": shipped_record.about()}
        _end(asked, record, records, provenance, form, started)
        return
    options = asked.report
    db, holder = open_or_beside(REPORT, asdict(options))
    try:
        api.runner(db, where)
        run = _make(db, options, anew=asked.anew, stored=asked.stored)
        provenance, records = runs.one_run(db, run), records_of(runs.run_rows(db, run))
        left = []
        if holder:  # leave every run of the report for the app that holds the database
            folder = exchange.runs_folder(settings().database.expanduser().resolve())
            names = [*(step.run for step in records.steps if step.run), run]
            left = [exchange.export_run(db, name, folder / f"report-{name[:10]}.jsonl") for name in names]
    finally:
        api.runner(db).close()
        db.close()
    if left:
        tell(f"{holder} {len(left)} runs have been left in {left[0].parent}. Import them on the Jobs page.", err=True)
    about = {name: value for name, value in provenance.items() if name != "row_ids"}
    _end(asked, About.of(provenance), records, about, form, started)


def _end(
    options: ReproduceOptions, about: About, records: Records, provenance: Row, form: Form, started: float
) -> None:
    """Write the files, and print the claims, their summary and the duration."""
    page = rendering.html.write_report(options.out.expanduser(), about, records, figures=options.figures)
    names = ("claim", "checkpoint", "task", "outcome", "n", "needed")
    rows = [{name: getattr(claim, name) for name in names} | {"said": numbers_of(claim)} for claim in records.claims]
    show_rows("reproduce", provenance, rows, form)
    tell(together(records.claims), err=True)
    seconds = time.monotonic() - started
    tell(f"{page} has been written, with its rows as Parquet in the same folder ({seconds:.0f} s).", err=True)


def _make(db: Database, options: ReportOptions, *, anew: bool, stored: bool) -> str:
    """Run the steps with one progress line each, then the report itself."""
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
    with contextlib.suppress(JobError):  # the report shows the error, and the next step starts
        follow(db, job)


# ---------------------------------------------------------------- analyse


@dataclass(frozen=True)
class AnalyseOptions:
    """Options for analysing a checkpoint: the checkpoint, the task and the studies."""

    checkpoint: Checkpoint = "atlas-encoder"
    task: TaskName = "sst2"
    data: Annotated[str | None, Flag("folder with the TSV files of the GLUE tasks (default: bundled samples)")] = None
    study: Annotated[
        list[str] | None,
        Flag(
            "name of a study to run; repeat the option for several studies (default: a quick plan of at most ten "
            "minutes)"
        ),
    ] = None
    all: Annotated[bool, Flag("run every study that applies to the model", name="--all")] = False
    plan: Annotated[
        bool, Flag("print the planned studies with their time and memory, but run nothing", name="--plan")
    ] = False


@of_record(AnalyseOptions, beside=FORMS | PLACES)
def analyse(asked: AnalyseOptions, form: Form, where: JobPlacement) -> None:
    """Analyse a checkpoint on a task with a quick selection of studies, all possible studies, or chosen studies.

    With --plan, only the expected time and memory of each study are printed. Each study is stored as its own result,
    which the app's views show. The same command continues after an interruption.
    """
    with database() as db:
        plan = plan_analysis(db, asked.checkpoint, asked.task, asked.data)
    names = asked.study or ([planned.study for planned in plan.studies] if asked.all else plan.quick)
    chosen = set(names)
    rows = [
        {"study": planned.study, "run": planned.study in chosen, "shows": planned.shows,
         "seconds": None if planned.seconds is None else round(planned.seconds),
         "megabytes": round(planned.memory / 1e6)}
        for planned in plan.studies
    ]  # fmt: skip
    if asked.plan:
        show_rows("analyse", {"checkpoint": plan.checkpoint, "task": plan.task}, rows, form)
        return
    options = plan.job(names)
    minutes = max(1, round(plan.seconds(names) / 60))
    tell(f"{len(options.studies)} of {len(rows)} studies: about {minutes} min.", err=True)
    provenance, results = ran(JOB, as_json(options), where=where, title=plan.title(names))
    shown = [{"study": row["study"], "result": row["says"]} for row in results] if form == "table" else results
    show_rows(JOB, provenance, shown, form)
