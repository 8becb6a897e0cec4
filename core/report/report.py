"""The report: every exhibit and claim of the sources beside what the stored runs of its plan say.

`rows_of` is pure: from evidence to rows of kind "step", "value", "head" and "claim". `keep` stores them as a run of
their own (study "reproduce"), so that a page can show a report long after. Exhibits stand in the sources' order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from core.report.evidence import Evidence, Found
from core.report.exhibits import CLAIMS, EXHIBITS, Claim, Exhibit
from core.report.measures.scores import MEASURES, head_maps
from core.report.plan import Data, Facts, Step, completed, facts_of, find_data, plan
from core.report.published import REPLICATION, figures
from core.report.verdicts import Place, paired
from core.store import jobs, runs
from core.store.database import Database
from core.store.rows import plain
from core.studies.study import Options, Row

STUDY_NAME = "reproduce"


@dataclass(frozen=True)
class Report:
    """A report to be made: its completed options, what its data and checkpoints are, and its steps."""

    options: Options
    data: Data
    facts: dict[str, Facts]
    steps: list[Step]


def prepared(db: Database, options: Options) -> Report:
    """Look at data and checkpoints and plan the report. Raises InputError, CheckpointError."""
    options = completed(options)
    data = find_data(options["data"], hub=options["hub"])
    facts = {name: facts_of(name) for name in options["checkpoints"]}
    return Report(options, data, facts, plan(db, options, data, facts))


def finish(db: Database, report: Report, ended: Sequence[tuple[str | None, str]]) -> str:
    """Put together what the steps left, keep it, and return its run. ended: run and error of each step."""
    found = [found_of(db, step, *one) for step, one in zip(report.steps, ended, strict=True)]
    rows = rows_of(evidence_of(found, report.data, report.facts), report.options["parts"])
    return keep(db, report.options, rows)


def found_of(db: Database, step: Step, run: str | None, error: str) -> Found:
    """A step with the rows of its run."""
    if run is None:
        return Found(step, None, (), error or "it has not been run")
    known = runs.one_run(db, run)
    names = ("weights_hash", "created", "code_version", "dtype", "device")
    about = {name: known[name] for name in names} | {"seconds": jobs.seconds_of(db, run)}
    return Found(step, run, tuple(runs.run_rows(db, run)), "", about)


def evidence_of(found: Sequence[Found], data: Data, facts: dict[str, Facts]) -> list[Evidence]:
    """What was found, by checkpoint, in the plan's order."""
    return [
        Evidence(name, one.causal, data.official, tuple(item for item in found if item.step.checkpoint == name))
        for name, one in facts.items()
    ]


# ---------------------------------------------------------------- rows


def rows_of(evidence: Sequence[Evidence], parts: Sequence[str] = ()) -> list[Row]:
    """All rows of a report: steps, then values and claims exhibit by exhibit, then a number for every head drawn.

    parts: of the plan, that were asked for; exhibits and claims of others are left out (none: all).
    """
    found = [_step_row(item) for one in evidence for item in one.found]
    chosen = [one for one in EXHIBITS if not parts or set(one.parts) & _shown(parts)]
    for item in chosen:
        for one in evidence:
            if one.causal in item.causal:
                found += values(item, one)
    names = {item.id for item in chosen}
    for claim in CLAIMS:
        for one in evidence:
            if claim.exhibit in names and one.causal in claim.causal:
                found += outcomes(claim, one)
    return plain(found + [row for one in evidence for row in head_maps(one)])


def _shown(parts: Sequence[str]) -> set[str]:
    return {*parts, *(("sink", "sinkless") if "frames" in parts else ())}


def _step_row(one: Found) -> Row:
    step, about = one.step, one.about or {}
    return {
        "kind": "step", "part": step.part, "study": step.study, "checkpoint": step.checkpoint, "task": step.task,
        "title": step.title, "run": one.run, "error": one.error, "options": step.options, **about,
    }  # fmt: skip


def values(item: Exhibit, evidence: Evidence) -> list[Row]:
    """Our numbers of one exhibit beside the published ones: a decoder's beside GPT-2's, an encoder's beside BERT's."""
    ours = MEASURES[item.id](evidence)
    printed = [one for one in figures() if one.exhibit == item.id and (one.source == REPLICATION) == evidence.causal]
    tasks = dict.fromkeys(one.task for one in printed)
    missing = {task: evidence.missing(item.parts[0], task) for task in tasks}
    return paired(
        printed, ours, Place(evidence.checkpoint, evidence.official, evidence.missing(item.parts[0])), missing
    )


def outcomes(claim: Claim, evidence: Evidence) -> list[Row]:
    """What one claim's test says of one checkpoint."""
    about = {"kind": "claim", "claim": claim.id, "exhibit": claim.exhibit, "source": claim.source}
    about |= {"section": claim.section, "sentence": claim.sentence, "known_error": claim.error}
    about |= {"checkpoint": evidence.checkpoint}
    return [
        about | {"task": one.task, "outcome": one.outcome, "said": one.said, "n": one.n, "run": one.run}
        for one in claim.test(evidence)
    ]


# ---------------------------------------------------------------- the store


def keep(db: Database, options: Options, rows: Sequence[Row]) -> str:
    """Store a report's rows as a run; the newest one is returned where it has the same rows and options."""
    newest = runs.latest_run(db, STUDY_NAME)
    if (
        newest
        and runs.one_run(db, newest)["options"] == plain(options)
        and runs.run_rows(db, newest) == plain(list(rows))
    ):
        return newest
    names = ", ".join(options["checkpoints"])
    tasks = sorted({row["task"] for row in rows if row["kind"] == "step" and row["task"]})
    about = runs.Provenance(checkpoint=names, task=", ".join(tasks) or None, split="dev", seed=options["seed"])
    with db.write():
        run = runs.record_run(db, STUDY_NAME, options, about, title=f"Report on {names}")
        runs.store_rows(db, run, rows)
    return run
