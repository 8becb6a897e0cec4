"""What every command shares: rows as a table, JSON, CSV or LaTeX, and studies run through jobs and the store."""

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ..config import settings
from ..drawing.csv import csv_text
from ..errors import InputError, JobError
from ..jobs import api
from ..jobs.executors import JobPlacement
from ..scoring.effects import FEW_FLIPS
from ..store import backup, exchange, jobs, runs
from ..store.database import Database
from ..store.recovery import LockedError
from ..store.rows import Row, plain
from ..studies.options import LARGEST_SEED

TOO_FEW = "too few"
FLIPS = "too few flips"
BY_FLIPS = tuple(f"{metric}{end}" for metric in ("accuracy_", "f1_", "matthews_", "") for end in ("low", "high"))
COPIED_WITHIN = 60.0  # seconds for the process that holds the database to make a copy
SEEN, UNSEEN = 0.3, 2.0  # seconds between looks at a job, with a bar and without
CANCELLED_WITHIN = 5.0  # seconds for another process to take a request
INTERRUPTED = 130  # exit status after Ctrl-C
CLOSED = 141  # exit status where the reader of standard output left: 128 and SIGPIPE's number, as shells have it
Held = Literal["refuse", "copy", "empty"]
Form = Literal["table", "json", "csv", "latex"]
Checkpoint = Annotated[str, typer.Argument(help="bundled name, local folder or hub id")]
Data = Annotated[str | None, typer.Option(help="folder in GLUE's TSV form, or hub; default: the bundled samples")]
Split = Annotated[str, typer.Option(help="dev or train")]
Limit = Annotated[int | None, typer.Option(min=0, help="most rows of each task, drawn with the seed; 0 for all")]
SEEDS: dict[str, int] = {"min": 0, "max": LARGEST_SEED}
Seed = Annotated[int, typer.Option(**SEEDS, help="of drawn rows, nulls, permutations and intervals")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object {study, provenance, rows}")]
Csv = Annotated[bool, typer.Option("--csv", help="print the rows as CSV")]
Latex = Annotated[bool, typer.Option("--latex", help="print the rows as a LaTeX table (booktabs)")]
Cluster = Annotated[str | None, typer.Option(help="address of a Dask scheduler, tcp://host:8786, to run on")]
Workers = Annotated[int | None, typer.Option(min=1, help="worker processes of this machine")]


def without_controls(text: str, kept: str = "\n\t") -> str:
    """Text that steers no terminal: control characters, which can erase lines, are written as escapes.

    kept: characters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in kept else ascii(letter)[1:-1] for letter in text)


def tell(text: str, *, err: bool = False, end: str = "\n") -> None:
    """Print text on standard output, or on standard error: the only way in which commands print."""
    print(without_controls(text), end=end, file=sys.stderr if err else sys.stdout)


def tell_json(value: Any) -> None:
    """Print a value as JSON, control characters of its texts as escapes of JSON."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    print("".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text))


class StoppedError(SystemExit):
    """The end after Ctrl-C, once a sentence has said what becomes of the work."""


def form_of(as_json: bool, csv: bool, latex: bool) -> Form:
    """The one form asked for. Raises InputError when there are several."""
    chosen: list[Form] = [name for name, on in (("json", as_json), ("csv", csv), ("latex", latex)) if on]  # type: ignore[misc]
    if len(chosen) > 1:
        raise InputError(f"Rows are printed in one form, but --{' and --'.join(chosen)} were given; keep one.")
    return chosen[0] if chosen else "table"


def show_rows(study: str, provenance: Row, rows: Sequence[Row], form: Form = "table") -> None:
    """Print `rows` on standard output. With "json", one object; a table has a caption of the provenance below it.

    provenance: what is known of the run; its own "study" is left out, since `study` names it.
    """
    provenance = {name: value for name, value in provenance.items() if name != "study"}
    with _reader_may_leave():
        _print_rows(study, provenance, rows, form)


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """Where whoever reads standard output has had enough (`| head`), end as a program does that a closed pipe ends."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - what is left in the buffer goes nowhere
        raise SystemExit(CLOSED) from None


def _print_rows(study: str, provenance: Row, rows: Sequence[Row], form: Form) -> None:
    if form == "json":
        tell_json({"study": study, "provenance": plain(provenance), "rows": plain(list(rows))})
        return
    frame = pd.DataFrame(rows if form in ("csv", "latex") else [_with_words(row) for row in rows])
    if form == "csv":
        print(csv_text(frame), end="")
    elif form == "latex":
        tell(frame.to_latex(index=False, escape=True, float_format="%.4g", na_rep="--"), end="")
    else:
        _show_table(study, provenance, frame)


def _with_words(row: Row) -> Row:
    """A row for people: a p or q that was asked for and is none had too few inputs that differ from 0, and of few
    changed predictions no interval is shown."""
    few = {name: TOO_FEW for name in ("p", "q") if name in row and (row[name] is None or row[name] != row[name])}
    flipped = row.get("flipped")
    if flipped is None or flipped != flipped or flipped >= FEW_FLIPS:
        return row | few
    return row | few | {name: FLIPS for name in BY_FLIPS if row.get(name) is not None}


class _Console(Console):
    """Leaves a reader that left to whoever prints, where rich would end with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def tell_table(table: Table) -> None:
    """Print a table of rich's, whose texts are made by `cell`."""
    _Console().print(table)


def _show_table(study: str, provenance: Row, frame: pd.DataFrame) -> None:
    names = ("checkpoint", "task", "split", "operator", "dtype", "device", "seed", "created")
    caption = " · ".join(f"{name} {cell(provenance[name])}" for name in names if provenance.get(name) is not None)
    table = Table(title=cell(study), title_justify="left")
    for name in frame.columns:
        table.add_column(cell(name), justify="right" if pd.api.types.is_numeric_dtype(frame[name]) else "left")
    for row in frame.itertuples(index=False):
        table.add_row(*map(cell, row))
    console = _Console()
    if not console.is_terminal:
        console = _Console(width=max(80, console.measure(table, options=console.options.update(width=10_000)).maximum))
    console.print(table if len(frame.columns) else cell(f"{study}: no rows"))
    if caption:
        console.print(cell(caption), soft_wrap=True)


def cell(value: Any) -> Text:
    """A value as one line of a table; characters that steer a terminal are spelled out."""
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return Text("–")
    if isinstance(value, datetime):
        value = value.isoformat(sep=" ", timespec="seconds")
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return Text(without_controls(text, kept=""))


def place(cluster: str | None, workers: int | None) -> JobPlacement:
    """Where to run: what was asked for, else what the settings say."""
    chosen = settings()
    return JobPlacement(max(1, workers or chosen.workers), cluster or chosen.cluster)


def ran(study: str, options: Row, *, where: JobPlacement, title: str = "") -> tuple[Row, list[Row]]:
    """Run a study as a job and wait for it.

    The same command given again goes on where the last one stopped. While another process holds the database, the
    work is done beside it and the rows are left in a file that the Jobs page imports.

    Args:
        title: of the job; "" for the study's name.

    Returns:
        The run as `runs.one_run` describes it, and its rows.

    Raises:
        JobError: with the study's own sentence.
        StoppedError: Ctrl-C was pressed; what is done stays stored.
    """
    options = api.with_absolute_task_paths(options)
    db, holder = open_or_beside(study, options)
    try:
        run = follow(db, job := _job(db, study, options, title, where))
        if where.cluster:
            _say(_who_did_what(db, job))
        provenance, rows = runs.one_run(db, run), runs.run_rows(db, run)
        left = _left(db, run, study) if holder else None
    finally:
        api.runner(db).close()
        db.close()
    if left:
        remove(db.path)
        _say(f"{holder} The rows are in {left} too: import them on the Jobs page.")
    return provenance, rows


def _who_did_what(db: Database, job: str) -> str:
    rows = jobs.by_worker(db, job).itertuples()
    worker_counts = [
        f"{row.worker} {row.units} units" + (f" ({row.retries} retries)" if row.retries else "") for row in rows
    ]
    return f"Units by worker: {', '.join(worker_counts)}; `jobs show {job}` lists each."


def open_or_beside(study: str, options: Row) -> tuple[Database, str | None]:
    """The database; or, while it is held, one of this study's own beside it and a sentence on who holds it."""
    chosen = settings().database
    try:
        return Database(chosen), None
    except LockedError as error:
        mark = hashlib.sha256(json.dumps(plain(options), sort_keys=True).encode()).hexdigest()[:10]
        beside = exchange.runs_folder(chosen.expanduser().resolve()) / f"{study}-{mark}.duckdb"
        return Database(beside), f"The database is held by {error.holder}."


def _left(db: Database, run: str, study: str) -> Path:
    """Leave a run where the app that holds the database finds it."""
    path = settings().database.expanduser().resolve()
    file = exchange.runs_folder(path) / f"{study.rpartition('.')[2]}-{run[:10]}.jsonl"
    return exchange.export_run(db, run, file, database=path)


@contextmanager
def database(*, held: Held = "refuse") -> Iterator[Database]:
    """The database.

    Args:
        held: what to do where another process holds it: refuse in a sentence; read a copy that it is asked for, so that
            nothing stored is overlooked; or prepare the work in an empty one, where nothing stored is needed.

    Raises:
        LockedError: another process holds it, and it is to be refused then.
        StoreError: where the copy is needed and not made.
    """
    passing = None
    try:
        db = Database(settings().database)
    except LockedError as error:
        if held == "refuse":
            raise
        path = settings().database.expanduser().resolve()
        passing = exchange.runs_folder(path) / f"passing-{os.getpid()}.duckdb"
        if held == "copy":
            backup.ask(path, passing, seconds=COPIED_WITHIN)
            _say(f"The database is held by {error.holder}; what it has stored was read from a copy.")
        db = Database(passing)
    try:
        yield db
    finally:
        api.runner(db).close()
        db.close()
        if passing:
            remove(passing)


def remove(path: Path) -> None:
    """Delete a database that stood beside the held one."""
    for file in (path, path.with_name(path.name + ".wal")):
        file.unlink(missing_ok=True)


def _job(db: Database, study: str, options: Row, title: str, where: JobPlacement) -> str:
    api.runner(db, where)
    job = api.unfinished_like(db, study, options)
    if job is None:
        return api.start(db, study, options, title)
    api.resume(db, job)
    _say(f"Going on with job {job}, which was stopped before its end.")
    return job


def follow(db: Database, job: str) -> str:
    """Wait for a job, with a bar where standard error is a terminal. Ctrl-C stops it, keeping what is stored.

    Args:
        db: where the job is stored, held by this process.

    Raises:
        JobError: with the job's own sentence, where it ended without a run.
        StoppedError: Ctrl-C was pressed.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[said]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    try:
        with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
            now = api.status(db, job)
            task = bar.add_task(without_controls(now.title, kept=""), total=None, said="")
            while now.active:
                now = api.wait(db, job, SEEN if console.is_terminal else UNSEEN)
                rate = f"{now.rate:,.0f} tokens/s" if now.rate else "starting"
                bar.update(
                    task, total=now.size or None, completed=now.size_done, said=f"{now.done}/{now.units} units, {rate}"
                )
    except KeyboardInterrupt:
        api.runner(db).close()
        _say("Stopped; what is done is kept: give the same command again to go on.")
        raise StoppedError(INTERRUPTED) from None
    if now.run is None:
        raise JobError(now.error or f"The job was {now.state}; give the same command again to go on.")
    return now.run


def _say(sentence: str) -> None:
    tell(sentence, err=True)


def ask_to_cancel(job: str) -> bool:
    """Ask the process that holds the database to cancel `job`; whether it took the request within CANCELLED_WITHIN."""
    request = exchange.runs_folder(settings().database.expanduser().resolve()) / f"cancel-{job}"
    request.parent.mkdir(parents=True, exist_ok=True)
    request.touch()
    end = time.monotonic() + CANCELLED_WITHIN
    while request.exists() and time.monotonic() < end:
        time.sleep(0.05)  # the other process looks for it ten times a second
    was_taken = not request.exists()
    request.unlink(missing_ok=True)
    return was_taken
