"""The report: every exhibit and claim of the sources compared with the stored results of its plan.

`records_of` is pure: from evidence to steps, values, claims and heads. `keep` stores them as a run (study "reproduce").
Exhibits are in the order of the sources.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..models.present import present_weights
from ..store import jobs, runs
from ..store.database import Database
from ..store.rows import Row, from_json, plain
from ..studies.stored_runs import one_run
from ..studies.tuning import finetune
from ..tasks.glue import SPLIT, WORDS
from ..tuning.recipe import Recipe
from .claims import Claim, claims
from .claims.outcomes import UNTESTED, Outcome
from .data import Data, Facts, facts_of, find_data, rows_in_both
from .evidence import Evidence, Origin, StepResult
from .ids import Part
from .measures import MEASURES
from .measures.scores import head_maps
from .plan import COME_WITH, TUNED, ReportOptions, ReportStep, plan
from .published_values import REPLICATION, Exhibit, exhibits, figures
from .records import REPORT, ClaimRecord, Records, StepRecord, ValueRecord, rows_of
from .verdicts import MeasurementContext, paired

# ---------------------------------------------------------------- stored runs with other settings


SETTINGS: dict[Part, Mapping[str, int | str]] = {
    Part.BY_SEPARATOR: {"pooling": "sep"},
    Part.FRESH_LAST: {"reset_last": 2, "train_last": 2},
}


def stored_beside(
    results: Sequence[StepResult], stored: Iterable[Row], rows_of: Callable[[str], Sequence[Row]]
) -> list[StepResult]:
    """Find stored fine-tuning runs that differ from the runs of a report only in SETTINGS, such as pooling.

    The runs use the same weights and examples. `stored` holds runs of `finetune`, newest first. Settings and tasks in
    `results` are left out.
    """
    stored_runs = [run | {"options": from_json(run["options"])} for run in stored]
    measured_parts = {(result.step.checkpoint, result.step.part, result.task) for result in results}
    beside_results = []
    for result in results:
        if result.step.part != Part.TUNING or result.run is None:
            continue
        for part, settings in SETTINGS.items():
            run = next((run for run in stored_runs if _is_like(result, run, settings)), None)
            if run is not None and (result.step.checkpoint, part, result.task) not in measured_parts:
                rows = tuple(row for row in rows_of(run["run"]) if row.get("task") == result.task)
                options = finetune.STUDY.read(run["options"])
                title = f"{part} of {Path(result.step.checkpoint).name}, {result.task}"
                step = ReportStep(part, finetune.STUDY.name, options, result.step.checkpoint, title, result.task)
                beside_results.append(StepResult(step, run["run"], rows, "", Origin.of(run | {"seconds": None})))
    return beside_results


def _is_like(result: StepResult, run: Row, settings: Mapping[str, int | str]) -> bool:
    """Return whether a stored run equals the planned run except for these settings."""
    planned, run_options = result.step.asked, run["options"]
    starts_alike = all(run_options.get(name) == planned.get(name) for name in ("checkpoint", "preset"))
    return (
        starts_alike
        and run_options.get("settings") == {**planned["settings"], **settings}
        and result.task in run_options.get("tasks", ())
        and "pretrained" in run_options.get("initialisations", ())
        and _resolved(run_options.get("data")) == _resolved(planned.get("data"))
        and result.origin.weights_hash in (None, run.get("weights_hash"))
        and (
            "pooling" not in settings or (Recipe.of(planned["preset"], planned["settings"]).pooling in ("auto", "cls"))
        )
    )


def _resolved(folder: Any) -> str | None:
    """Return the folder of the examples as a normalised path."""
    return None if folder is None else str(Path(str(folder)).expanduser().resolve())


@dataclass(frozen=True)
class Report:
    """A report that has not run yet, with its options, data, checkpoint properties and steps."""

    options: ReportOptions
    data: Data
    facts: dict[str, Facts]
    steps: list[ReportStep]


def prepared(db: Database, options: ReportOptions) -> Report:
    """Check the data and checkpoints of a report, and plan its steps. Raises InputError or CheckpointError."""
    data = find_data(options.data, hub=options.hub)
    facts = {name: facts_of(name) for name in options.checkpoints}
    return Report(options, data, facts, plan(db, options, data, facts))


def finish(db: Database, report: Report, ended: Sequence[tuple[str | None, str]]) -> str:
    """Store a finished report and return its ID. `ended` holds the run ID and the error message of each step."""
    results = [result_of(db, step, *run) for step, run in zip(report.steps, ended, strict=True)]
    known = runs.known_runs(db, finetune.STUDY.name)
    stored = known[known["source"] != "imported"].to_dict("records")
    results += stored_beside(results, stored, lambda run: runs.run_rows(db, run))
    records = records_of(evidence_of(results, report.data, report.facts), report.options.parts)
    return keep(db, report.options, records)


def result_of(db: Database, step: ReportStep, run: str | None, error: str) -> StepResult:
    """Load the result rows of the run that computed a step of the report, or the error message of the step if there is
    no run."""
    if run is None:
        return StepResult(step, None, (), error or "it has not been run")
    run_row = runs.one_run(db, run)
    origin = Origin.of(run_row | {"seconds": jobs.seconds_of(db, run)})
    return StepResult(step, run, tuple(runs.run_rows(db, run)), "", origin)


def evidence_of(results: Sequence[StepResult], data: Data, facts: dict[str, Facts]) -> list[Evidence]:
    """Group the results of the steps by checkpoint, in the order of the plan."""
    tuned = {result.task for result in results if result.step.part == Part.TUNING and result.run and result.task}
    doubled_rows = {task: rows_in_both(task, data.glue) for task in sorted(tuned)}
    learned = {task: rows for task, rows in doubled_rows.items() if rows}
    return [
        Evidence(
            name,
            checkpoint_facts.causal,
            data.official,
            tuple(result for result in results if result.step.checkpoint == name),
            bundled=data.glue is None,
            learned=learned,
        )
        for name, checkpoint_facts in facts.items()
    ]


# ---------------------------------------------------------------- records


def records_of(evidence: Sequence[Evidence], parts: Sequence[str] = ()) -> Records:
    """Compute the contents of a report: steps, measured values, claim outcomes and head values. `parts` limits the
    values and claims to these parts of the report."""
    shown = {*map(Part, parts), *(part for part, first in COME_WITH.items() if first in parts)}
    chosen = [exhibit for exhibit in exhibits() if not parts or set(exhibit.parts) & shown]
    ids = {exhibit.id for exhibit in chosen}
    return Records(
        [
            StepRecord(
                step.part,
                step.study,
                step.checkpoint,
                step.task,
                step.title,
                result.run,
                result.error,
                step.asked,
                **plain(vars(result.origin)),
            )
            for checkpoint_evidence in evidence
            for result in checkpoint_evidence.results
            for step in [result.step]
        ],
        [
            value
            for exhibit in chosen
            for checkpoint_evidence in evidence
            if checkpoint_evidence.causal in exhibit.causal
            for value in values(exhibit, checkpoint_evidence)
        ],
        [
            outcome
            for claim in claims()
            for checkpoint_evidence in evidence
            if claim.exhibit in ids and checkpoint_evidence.causal in claim.causal
            for outcome in outcomes(claim, checkpoint_evidence)
        ],
        [head for checkpoint_evidence in evidence for head in head_maps(checkpoint_evidence)],
    )


def values(item: Exhibit, evidence: Evidence) -> list[ValueRecord]:
    """Pair the measured numbers of a figure or table with the corresponding published numbers."""
    printed = [
        figure
        for figure in figures()
        if figure.exhibit == item.id and (figure.source == REPLICATION) == evidence.causal
    ]
    missing = {task: evidence.missing(item.parts[0], task) for task in dict.fromkeys(figure.task for figure in printed)}
    context = MeasurementContext(evidence.checkpoint, evidence.official, evidence.missing(item.parts[0]))
    return paired(printed, MEASURES[item.id](evidence), context, missing)


def outcomes(claim: Claim, evidence: Evidence) -> list[ClaimRecord]:
    """Test one claim on one checkpoint, and return the outcomes as records."""
    results = []
    for outcome in claim.test(evidence):
        tested = outcome.statistic
        results.append(ClaimRecord(
                claim.id, claim.exhibit, claim.source, claim.section, claim.sentence, claim.error, evidence.checkpoint,
                outcome.task, outcome.outcome, outcome.said + _learned(evidence, outcome) + _unseen(evidence, outcome),
                outcome.n, outcome.run, outcome.needed,
                tested.value if tested else None, tested.low if tested else None, tested.high if tested else None,
                claim.margin if outcome.margin is None else outcome.margin, _seeds(claim, outcome),
                outcome.needed_seeds,
            ))  # fmt: skip
    return results


def _learned(evidence: Evidence, outcome: Outcome) -> str:
    """Return a note if dev examples were in the train split of the fine-tuned checkpoint."""
    rows = evidence.learned.get(outcome.task or "")
    parts = {result.step.part for result in evidence.results if result.run == outcome.run}
    if not rows or not parts & {Part.TUNING, *TUNED}:
        return ""
    return f" {rows:,} dev examples of this task are also train examples, so they do not test what was learned."


def _unseen(evidence: Evidence, outcome: Outcome) -> str:
    """Return a note if unseen train examples are included with the dev examples."""
    run_results = [result for result in evidence.results if result.run is not None and result.run == outcome.run]
    if not any(getattr(result.step.options, "split", "") == SPLIT for result in run_results):
        return ""
    return (
        f" The examples include train examples that share no {WORDS} consecutive words with the fine-tuning examples."
    )


def _seeds(claim: Claim, outcome: Outcome) -> int | None:
    """Return the number of fine-tuning seeds behind the outcome; 1 for a checkpoint that was fine-tuned once."""
    if outcome.seeds is not None or outcome.outcome == UNTESTED:
        return outcome.seeds
    return 1 if claim.tuned else None


# ---------------------------------------------------------------- the store


def keep(db: Database, options: ReportOptions, records: Records) -> str:
    """Store a report as a run, unless it equals the newest stored report. Return the ID of the run."""
    rows, chosen = rows_of(records), plain(asdict(options))
    newest = runs.latest_run(db, REPORT)
    if newest and one_run(db, newest).options == chosen and runs.run_rows(db, newest) == rows:
        return newest
    names = ", ".join(options.checkpoints)
    tasks = sorted({step.task for step in records.steps if step.task})
    weights = ", ".join(filter(None, map(present_weights, options.checkpoints))) or None
    provenance = runs.Provenance(names, weights, ", ".join(tasks) or None, split="dev", seed=options.seed)
    with db.write():
        run = runs.record_run(db, REPORT, chosen, provenance, title=f"Report on {names}")
        runs.store_rows(db, run, rows)
    return run
