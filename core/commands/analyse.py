"""`python -m core analyse CHECKPOINT --task sst2`: run every study that applies to a checkpoint, as one job."""

from dataclasses import dataclass
from typing import Annotated

from ..jobs.executors import JobPlacement
from ..report.analysis import JOB, plan_analysis
from ..studies.contract import Flag, as_json
from ..studies.options import Checkpoint, TaskName
from .output import Form, database, ran, show_rows, tell
from .parameters import FORMS, PLACES, of_record


@dataclass(frozen=True)
class AnalyseOptions:
    """Options for analysing a checkpoint: which checkpoint, task and studies."""

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
    """Run all studies that can measure a checkpoint on a task, or a selection of them, in one job.

    The plan with the expected time and memory of each study is printed first. Each study is stored as its own result,
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
