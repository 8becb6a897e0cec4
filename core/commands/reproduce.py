"""`python -m core reproduce CHECKPOINT... --data DIR --out DIR`: the papers' figures and tables beside ours."""

import contextlib
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from core.commands.output import (
    SEEDS,
    Cluster,
    Csv,
    Json,
    Latex,
    Workers,
    follow,
    form_of,
    open_or_beside,
    place,
    show_rows,
)
from core.config import settings
from core.errors import JobError
from core.jobs import api
from core.jobs.chain import Asked, run_in_turn
from core.report import rendering, report
from core.report.plan import ReportOptions
from core.report.records import ClaimRecord, Records, records_of
from core.report.rendering.words import About, numbers_of
from core.store import exchange, runs
from core.store.database import Database


def reproduce(
    checkpoints: Annotated[list[str], typer.Argument(help="one or more: bundled names, folders or hub ids")],
    data: Annotated[
        str | None, typer.Option(help="folder with GLUE's, the papers' lists, a treebank; default: the bundled samples")
    ] = None,
    hub: Annotated[bool, typer.Option("--hub", help="GLUE's rows from the hub instead")] = False,
    out: Annotated[Path, typer.Option(help="folder for report.html and the Parquet files")] = Path("report"),
    task: Annotated[list[str] | None, typer.Option(help="several times; default: all that --data has")] = None,
    part: Annotated[list[str] | None, typer.Option(help="several times; default: all parts")] = None,
    limit: Annotated[int, typer.Option(min=0, help="dev rows of a task whose maps are looked at; 0 for all")] = 100,
    sweep_limit: Annotated[int, typer.Option(min=0, help="dev rows that heads are disabled on; 0 for all")] = 200,
    effective_limit: Annotated[int, typer.Option(min=2, help="dev rows of a task for effective attention")] = 30,
    tree_limit: Annotated[int, typer.Option(min=8, help="gold sentences of dev and of test")] = 150,
    train_limit: Annotated[int, typer.Option(min=0, help="train rows of a task; 0 for all")] = 1000,
    dev_limit: Annotated[int, typer.Option(min=0, help="dev rows that Table 1 is measured on; 0 for all")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="fine-tuning runs of each task and initialisation")] = 1,
    preset: Annotated[str, typer.Option(help="auto, paper, replication or small")] = "auto",
    folder: Annotated[str | None, typer.Option(help="where checkpoints go; default data/runs/finetuned")] = None,
    seed: Annotated[int, typer.Option(**SEEDS, help="of rows, nulls and intervals")] = 0,
    stored: Annotated[bool, typer.Option("--stored", help="run nothing: report on what the database has")] = False,
    figures: Annotated[bool, typer.Option("--figures", help="the pictures as SVG, too")] = False,
    anew: Annotated[bool, typer.Option("--anew", help="run again what the database has already")] = False,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Run every study of the papers, then write their numbers beside ours: self-contained HTML, and Parquet.

    What the database holds is not run again, so the same command goes on after an interruption.
    """
    form = form_of(as_json, csv, latex)
    options = ReportOptions.read({
        "checkpoints": checkpoints, "data": data and str(Path(data).expanduser().resolve()), "hub": hub,
        "tasks": task or [], "parts": part or [], "limit": limit or None, "sweep_limit": sweep_limit or None,
        "effective_limit": effective_limit, "tree_limit": tree_limit, "train_limit": train_limit or None,
        "dev_limit": dev_limit or None, "seeds": seeds, "preset": preset, "folder": folder, "seed": seed,
    })  # fmt: skip
    db, holder = open_or_beside(report.STUDY_NAME, asdict(options))
    started = time.monotonic()
    try:
        api.runner(db, place(cluster, workers))
        run = _make(db, options, anew=anew, stored=stored)
        known, records = runs.one_run(db, run), records_of(runs.run_rows(db, run))
        left = _leave(db, run, records) if holder else []
    finally:
        api.runner(db).close()
        db.close()
    written = write(out, About.of(known), records, figures=figures)
    if left:
        typer.echo(f"{holder} {len(left)} runs are left in {left[0].parent}: import them on the Jobs page.", err=True)
    show_rows("reproduce", _about(known), [_short(claim) for claim in records.claims], form)
    typer.echo(f"{written} ({time.monotonic() - started:.0f} s)", err=True)


def _make(db: Database, options: ReportOptions, *, anew: bool, stored: bool) -> str:
    """Run the steps, a line each; then the report's own run."""
    wanted = report.prepared(db, options)
    asked = [Asked(step.study, step.asked, step.title) for step in wanted.steps]
    if stored:
        return report.finish(db, wanted, [(api.finished_like(db, one.study, one.options), "") for one in asked])

    def before(number: int, job: str | None) -> None:
        what = "stored already" if job is None else "running"
        typer.echo(f"{number + 1}/{len(asked)} {asked[number].title}: {what}", err=True)

    ended = run_in_turn(db, asked, watch=_watch, before=before, anew=anew)
    for step, one in zip(wanted.steps, ended, strict=True):
        if one.error:
            typer.echo(f"{step.title}: {one.error}", err=True)
    return report.finish(db, wanted, [(one.run, one.error) for one in ended])


def _watch(db: Database, job: str) -> None:
    with contextlib.suppress(JobError):  # its sentence is the report's, and the next step starts
        follow(db, job)


def _leave(db: Database, run: str, records: Records) -> list[Path]:
    """Every run of the report as a file for the app that holds the database."""
    folder = exchange.runs_folder(settings().database.expanduser().resolve())
    names = [step.run for step in records.steps if step.run]
    return [exchange.export_run(db, name, folder / f"report-{name[:10]}.jsonl") for name in [*names, run]]


def write(folder: Path, about: About, records: Records, *, figures: bool = False) -> str:
    """The report's files; says what was written."""
    page = rendering.html.write_report(folder.expanduser(), about, records, figures=figures)
    return f"{page} is written, with its rows as Parquet beside it."


def _about(known: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in known.items() if name != "row_ids"}


def _short(claim: ClaimRecord) -> dict[str, Any]:
    names = ("claim", "checkpoint", "task", "outcome", "n", "needed")
    return {name: getattr(claim, name) for name in names} | {"said": numbers_of(claim)}
