"""Functions that all commands share: printing rows as a table, JSON, CSV or LaTeX, and running studies as jobs."""

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

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from .. import scoring
from ..config import MOST_WORKERS, settings
from ..errors import CLOSED, INTERRUPTED, JobError
from ..jobs import api
from ..jobs.executors import JobPlacement
from ..store import backup, exchange, jobs, runs
from ..store.database import Database
from ..store.recovery import LockedError
from ..store.rows import Row, plain
from ..studies.imports import result_rows

TOO_FEW = "too few"
FLIPS = "too few flips"
BY_FLIPS = tuple(f"{metric}{end}" for metric in ("accuracy_", "f1_", "matthews_", "") for end in ("low", "high"))
COPIED_WITHIN = 60.0  # time limit for a backup by the process that holds the database
SEEN, UNSEEN = 0.3, 2.0  # seconds between checks of a job, with and without a progress bar
CANCELLED_WITHIN = 5.0  # time limit for another process to accept a request
Held = Literal["refuse", "copy", "empty"]
Form = Literal["table", "json", "csv", "latex"]
Checkpoint = Annotated[str, typer.Argument(help="checkpoint: bundled name, local folder or hub ID")]
Json = Annotated[
    bool, typer.Option("--json", help="print the result as one JSON object with the keys study, provenance and rows")
]
Csv = Annotated[bool, typer.Option("--csv", help="print the result as CSV")]
Latex = Annotated[bool, typer.Option("--latex", help="print the result as a LaTeX table (booktabs)")]
Cluster = Annotated[
    str | None, typer.Option(help="address of a Dask scheduler that runs the work, such as tcp://host:8786")
]
Workers = Annotated[
    int | None, typer.Option(min=1, max=MOST_WORKERS, help="number of local worker processes that run the study")
]


def without_controls(text: str, kept: str = "\n\t") -> str:
    """Escape the control characters in a text, because they could erase lines in a terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in kept else ascii(letter)[1:-1] for letter in text)


def tell(text: str, *, err: bool = False, end: str = "\n") -> None:
    """Print text to standard output or standard error, with control characters escaped."""
    print(without_controls(text), end=end, file=sys.stderr if err else sys.stdout)


def tell_json(value: Any) -> None:
    """Print a value as JSON to standard output, with control characters escaped."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    print("".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text))


class StoppedError(SystemExit):
    """Exception that exits the program after Ctrl-C, once a message has been printed."""


def show_rows(study: str, provenance: Row, rows: Sequence[Row], form: Form = "table") -> None:
    """Print result rows to standard output: as a table with their provenance in the caption, or in another format."""
    provenance = {name: value for name, value in provenance.items() if name != "study"}
    with _reader_may_leave():
        if form == "json":
            tell_json({"study": study, "provenance": plain(provenance), "rows": plain(list(rows))})
            return
        import pandas as pd  # imported here because it takes 0.6 s at start

        frame = pd.DataFrame(rows if form in ("csv", "latex") else [_with_words(row) for row in rows])
        if form == "csv":
            from ..drawing.csv import csv_text  # with pandas

            print(csv_text(frame), end="")
        elif form == "latex":
            tell(frame.to_latex(index=False, escape=True, float_format="%.4g", na_rep="--"), end="")
        else:
            names = ("checkpoint", "task", "split", "operator", "dtype", "device", "seed", "created")
            caption = " · ".join(
                f"{name} {cell(provenance[name])}" for name in names if provenance.get(name) is not None
            )
            table = Table(title=cell(study), title_justify="left")
            for name in frame.columns:
                table.add_column(cell(name), justify="right" if pd.api.types.is_numeric_dtype(frame[name]) else "left")
            for row in frame.itertuples(index=False):
                table.add_row(*map(cell, row))
            console = _Console()
            if not console.is_terminal:
                console = _Console(
                    width=max(80, console.measure(table, options=console.options.update(width=10_000)).maximum)
                )
            console.print(table if len(frame.columns) else cell(f"{study}: no rows"))
            if caption:
                console.print(cell(caption), soft_wrap=True)


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """Exit like other programs if the reader closes standard output early (`| head`)."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - what is left in the buffer goes nowhere
        raise SystemExit(CLOSED) from None


def _with_words(row: Row) -> Row:
    """Replace missing p and q by "too few", and intervals for few changed predictions by "too few flips"."""
    few = {name: TOO_FEW for name in ("p", "q") if name in row and (row[name] is None or row[name] != row[name])}
    flipped = row.get("flipped")
    if flipped is None or flipped != flipped or flipped >= scoring.effects.FEW_FLIPS:
        return row | few
    return row | few | {name: FLIPS for name in BY_FLIPS if row.get(name) is not None}


class _Console(Console):
    """Raises BrokenPipeError if the reader has left, where rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def tell_table(table: Table) -> None:
    """Print a table of the library `rich` to the terminal."""
    _Console().print(table)


def cell(value: Any) -> Text:
    """Format a value as one line of text for a table cell, with control characters escaped."""
    if value is None or (isinstance(value, float) and value != value):
        return Text("–")
    if isinstance(value, datetime):
        value = value.isoformat(sep=" ", timespec="seconds")
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return Text(without_controls(text, kept=""))


def ran(study: str, options: Row, *, where: JobPlacement, title: str = "") -> tuple[Row, list[Row]]:
    """Run a study as a job, wait until the job is finished, and return the run and its rows.

    The same command resumes an unfinished job. If another process holds the database, a temporary database is used, and
    the rows are written to a file that the Jobs page can import. Raises JobError with the message of the study, and
    StoppedError after Ctrl-C (finished units remain stored).
    """
    options = api.with_absolute_task_paths(options)
    db, holder = open_or_beside(study, options)
    try:
        api.runner(db, where)
        job = api.unfinished_like(db, study, options)
        if job is None:
            job = api.start(db, study, options, title)
        else:
            api.resume(db, job)
            _say(f"Resuming job {job}, which stopped before its end.")
        run = follow(db, job)
        if where.cluster:
            worker_counts = [
                f"{row.worker} {row.units} units" + (f" ({row.retries} retries)" if row.retries else "")
                for row in jobs.by_worker(db, job).itertuples()
            ]
            _say(f"Units by worker: {', '.join(worker_counts)}. `jobs show {job}` lists every unit.")
        for note in dict.fromkeys(note for unit in jobs.job_provenance(db, job) for note in unit.get("notes", ())):
            _say(note)
        provenance, rows = runs.one_run(db, run), result_rows(db, run)
        left = None
        if holder:  # leave the run in the folder where the app finds it
            path = settings().database.expanduser().resolve()
            file = exchange.runs_folder(path) / f"{study.rpartition('.')[2]}-{run[:10]}.jsonl"
            left = exchange.export_run(db, run, file, database=path)
    finally:
        api.runner(db).close()
        db.close()
    if left:
        remove(db.path)
        _say(f"{holder} The rows are also in {left}. Import them on the Jobs page.")
    return provenance, rows


def open_or_beside(study: str, options: Row) -> tuple[Database, str | None]:
    """Open the database and return (database, None). If another process uses the database, return a temporary database
    and a message about that process."""
    chosen = settings().database
    try:
        return Database(chosen), None
    except LockedError as error:
        mark = hashlib.sha256(json.dumps(plain(options), sort_keys=True).encode()).hexdigest()[:10]
        beside = exchange.runs_folder(chosen.expanduser().resolve()) / f"{study}-{mark}.duckdb"
        return Database(beside), f"The database is held by {error.holder}."


@contextmanager
def database(*, held: Held = "refuse") -> Iterator[Database]:
    """Return a context manager that opens the database named in the settings, and closes it at the end.

    `held` is what to do if another process holds it: "refuse" with LockedError, read a "copy" made by that process, or
    use an "empty" temporary database. Raises StoreError if the copy could not be made.
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
            _say(f"The database is held by {error.holder}; stored results were read from a copy.")
        db = Database(passing)
    try:
        yield db
    finally:
        api.runner(db).close()
        db.close()
        if passing:
            remove(passing)


def remove(path: Path) -> None:
    """Delete the file and the log of a temporary database."""
    for file in (path, path.with_name(path.name + ".wal")):
        file.unlink(missing_ok=True)


def follow(db: Database, job: str) -> str:
    """Wait for a job and return the ID of the run. On terminals, a progress bar is shown.

    Raises JobError if the job ended without a run. Ctrl-C stops the job and raises StoppedError; finished units remain
    stored.
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
                rate = f"{now.rate:,.0f} {api.unit_word(now.study)}/s" if now.rate else "starting"
                bar.update(
                    task, total=now.size or None, completed=now.size_done, said=f"{now.done}/{now.units} units, {rate}"
                )
    except KeyboardInterrupt:
        api.runner(db).close()
        _say("Stopped. Finished units are stored; run the same command again to continue.")
        raise StoppedError(INTERRUPTED) from None
    if now.run is None:
        raise JobError(
            now.error or (f"The job was {now.state} before its end. Run the same command again to continue.")
        )
    return now.run


def _say(sentence: str) -> None:
    tell(sentence, err=True)


def ask_to_cancel(job: str) -> bool:
    """Ask the process that uses the database to cancel a job, and return whether the process accepts in time."""
    request = exchange.runs_folder(settings().database.expanduser().resolve()) / f"cancel-{job}"
    request.parent.mkdir(parents=True, exist_ok=True)
    request.touch()
    end = time.monotonic() + CANCELLED_WITHIN
    while request.exists() and time.monotonic() < end:
        time.sleep(0.05)  # the other process checks ten times a second
    was_taken = not request.exists()
    request.unlink(missing_ok=True)
    return was_taken
