"""The report of the bundled record, recomputed from its rows with the current rules, without weights or data.

The record stores each report as a run whose steps name the runs of their studies. The steps of all reports are
combined, and every exhibit and claim is computed as in `core.report.report`.
"""

import json
import math
from collections.abc import Iterable, Sequence
from datetime import datetime

from .. import config
from ..errors import AtlasError, InputError
from ..store import shipped_record
from ..store.rows import from_json
from ..studies.ablation import knockout, sinks
from ..studies.attention import redundancy
from ..studies.circuits import gates, pairs, shapley
from ..studies.contract import WITHDRAWN
from ..studies.lookup import find_study
from ..studies.tuning import finetune
from ..studies.tuning.records import TunedScore
from ..tasks.glue import SPLIT, TASKS
from .evidence import Evidence, Origin, StepResult
from .ids import Part
from .plan import CUT_WORDS, ReportOptions, ReportStep
from .published_values import REPLICATION
from .records import REPORT, Records, StepRecord, records_of
from .rendering.words import About
from .report import stored_beside

ROWS = ("limit", "split")  # options that say how many rows
CLASSIFIERS = ("classifier", "name")  # options that name the classifier; another classifier leaves a step the same
BY_COMMAND = {  # parts that a study's own command makes for the record: its runs stand beside the reports'
    Part.SHAPLEY: shapley.STUDY.name,
    Part.GATES: gates.STUDY.name,
    Part.PAIRS: pairs.STUDY.name,
    Part.SINKS: sinks.STUDY.name,
    Part.WORD_LINKS: knockout.STUDY.name,
    Part.REDUNDANCY: redundancy.STUDY.name,
}


def recorded_evidence(checkpoints: Sequence[str] = ()) -> list[Evidence]:
    """Collect the results of each checkpoint from bundled reports and other bundled runs.

    Among equal steps, the one with most examples is used, then the newest. `checkpoints` selects checkpoints (empty:
    all with reports). Raises InputError if there is no such report, and StoreError if the record is damaged.
    """
    reports = {run: records_of(shipped_record.run_rows(run)) for run in shipped_record.runs(REPORT)["run"]}
    steps = _newest(step for records in reports.values() for step in records.steps)
    names = list(checkpoints or dict.fromkeys(step.checkpoint for step in steps))
    if not names:
        raise InputError(
            "The bundled results must contain a report to recompute; they contain none. Compute a new report instead."
        )
    if unreported := [name for name in names if name not in {step.checkpoint for step in steps}]:
        reported = ", ".join(dict.fromkeys(step.checkpoint for step in steps))
        raise InputError(
            f"A report can be recomputed only for checkpoints with a bundled report ({reported or 'none'}); got "
            f"{unreported[0]}. Choose one of these checkpoints."
        )
    chosen = []
    for part, study in BY_COMMAND.items():
        for run in shipped_record.runs(study).to_dict("records"):
            options = from_json(run["options"])
            if part == Part.REDUNDANCY:  # random weights are needed to judge repeated patterns
                checkpoint = run["checkpoint"] if options.get("random") else None
            elif part == Part.WORD_LINKS and tuple(options.get("edges", ())) != CUT_WORDS:
                checkpoint = None
            else:
                checkpoint = config.ENCODER if run["checkpoint"] == config.CLASSIFIER else None
            if checkpoint:  # whose report the run belongs to
                task = None if part == Part.REDUNDANCY else run["task"]  # a step on several tasks has no single task
                chosen.append(
                    StepRecord(
                        part, study, checkpoint, task, run["title"], run["run"], "", options, **vars(Origin.of(run)),
                    )
                )  # fmt: skip
    newest_steps = _newest([*steps, *chosen])
    return [
        _evidence(name, [step for step in newest_steps if step.checkpoint == name], reports.values()) for name in names
    ]


def about_record(evidence: Sequence[Evidence]) -> About:
    """Return the title and time of a report that is computed from bundled results."""
    names = [checkpoint_evidence.checkpoint for checkpoint_evidence in evidence]
    dates = [
        result.origin.created
        for checkpoint_evidence in evidence
        for result in checkpoint_evidence.results
        if result.origin.created
    ]
    newest = max((datetime.fromisoformat(date) for date in dates), default=datetime(1970, 1, 1))
    return About(f"Report on {', '.join(names)}, from the record", newest, ReportOptions(checkpoints=names))


def _newest(steps: Iterable[StepRecord]) -> list[StepRecord]:
    """Choose among steps that differ only in the number of examples: with a run, then most examples, then newest."""
    chosen: dict[str, StepRecord] = {}
    for step in steps:
        compared_options = {
            name: value for name, value in step.options.items() if name not in (*CLASSIFIERS, *ROWS, *WITHDRAWN)
        }
        identity = json.dumps([step.part, step.study, step.checkpoint, step.task, compared_options], sort_keys=True)
        if identity not in chosen or _worth(step) > _worth(chosen[identity]):
            chosen[identity] = step
    return list(chosen.values())


def _worth(step: StepRecord) -> tuple[bool, bool, float, str]:
    limit = step.options.get("limit")
    of_all_rows = step.options.get("split") == SPLIT
    return step.run is not None, of_all_rows, math.inf if limit is None else limit, step.created or ""


def _evidence(name: str, steps: Sequence[StepRecord], reports: Iterable[Records]) -> Evidence:
    results = tuple(map(_result, steps))
    tuned = shipped_record.runs(finetune.STUDY.name).sort_values("created", ascending=False).to_dict("records")
    results += tuple(stored_beside(results, tuned, shipped_record.run_rows))
    sources = {value.source for records in reports for value in records.values if value.checkpoint == name}
    own_rows = any(step.options.get("data") for step in steps)
    tuned = [result for result in results if result.step.part == Part.TUNING]
    sizes = {(score.task, score.dev_rows) for result in tuned for score in TunedScore.among(result.rows)}
    return Evidence(
        name,
        REPLICATION in sources,
        tuple(key for key, task in TASKS.items() if (key, task.dev_rows) in sizes),
        results,
        bundled=not own_rows,
    )


def _result(record: StepRecord) -> StepResult:
    """Return a step with its result rows if its run is in the record, otherwise with the reason."""
    try:
        options = find_study(record.study).read(record.options)
    except AtlasError as error:
        return StepResult(_step(record, None), None, (), str(error))
    rows = shipped_record.run_rows(record.run) if record.run else []
    if not rows:
        return StepResult(_step(record, options), None, (), record.error or "its run is not in the record")
    return StepResult(_step(record, options), record.run, tuple(rows), "", Origin.of(vars(record)))


def _step(record: StepRecord, options: object) -> ReportStep:
    return ReportStep(Part(record.part), record.study, options, record.checkpoint, record.title, record.task)
