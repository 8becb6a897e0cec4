"""`python -m core jobs`: list, start, resume and cancel jobs of the database from a terminal."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import pandas as pd
import typer

from ..config import settings
from ..errors import InputError, JobError
from ..jobs import api
from ..jobs.executors import JobPlacement
from ..jobs.records import one_job
from ..store import jobs as store
from ..store import runs
from ..store.database import Database
from ..store.recovery import LockedError
from ..store.rows import Row
from ..studies.contract import Flag
from ..studies.stored_runs import one_run
from .output import (
    Form,
    ask_to_cancel,
    follow,
    ran,
    show_rows,
    tell,
)
from .study_commands import FORMS, PLACES, of_record, with_form

app = typer.Typer(help="List, start, resume and cancel jobs.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(help="the job's id, as `jobs list` prints it")]


def _records(frame: pd.DataFrame) -> list[Row]:
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


@app.command("list")
@with_form
def list_jobs(form: Form) -> None:
    """Which jobs there are, newest first."""
    with _opened() as db:
        jobs = store.jobs(db).drop(columns="run")
        show_rows("jobs", {"database": str(db.path)}, _records(jobs), form)


@dataclass(frozen=True)
class Starting:
    """Which study runs, with which options."""

    study: Annotated[str, Flag("a study's name, such as heads", argument=True)]
    options: Annotated[list[str] | None, Flag("an option as NAME=VALUE, VALUE as JSON or plain text", name="--set")] = (
        None
    )


@app.command()
@of_record(Starting, beside=PLACES | FORMS)
def start(asked: Starting, form: Form, where: JobPlacement) -> None:
    """Run any study with the options given; the others keep their defaults."""
    provenance, rows = ran(asked.study, dict(map(_option, asked.options or [])), where=where)
    show_rows(asked.study, provenance, rows, form)


def _option(typed: str) -> tuple[str, Any]:
    name, equals, value = typed.partition("=")
    if not equals or not re.fullmatch(r"\w+", name):
        raise InputError(f"An option is written NAME=VALUE, but {typed!r} is not; for example --set limit=100.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


@app.command()
@with_form
def resume(job: Id, *, form: Form, where: JobPlacement) -> None:
    """Run what is not stored of a job that stopped, failed units too, and print its rows."""
    with _opened(where) as db:
        api.resume(db, job)
        run = follow(db, job)
        show_rows(one_run(db, run).study, runs.one_run(db, run), runs.run_rows(db, run), form)


@app.command()
def cancel(job: Id) -> None:
    """Cancel a job, also one that runs in the app; what is stored stays and can be resumed."""
    if not re.fullmatch(r"\w+", job):
        raise JobError(f"A job's id has letters and digits, but {job!r} has not; take one from `jobs list`.")
    try:
        with _opened() as db:
            if one_job(db, job).state == "done":
                raise JobError("Only a job with work left can be cancelled, and this one is done.")
            store.set_state(db, job, "cancelled")
    except LockedError as error:
        if not ask_to_cancel(job):
            raise JobError(f"The job runs in {error.holder}, which did not answer; look at its Jobs page.") from error
        tell(f"Asked {error.holder} to cancel the job.")
        return
    tell("Cancelled; `jobs resume` goes on with it.")


@app.command()
@with_form
def show(job: Id, *, form: Form) -> None:
    """The units of a job: what became of each, with its error."""
    with _opened() as db:
        job_record = store.one_job(db, job)
        show_rows(one_job(db, job).title, job_record, _records(store.unit_outcomes(db, job)), form)


@contextmanager
def _opened(where: JobPlacement | None = None) -> Iterator[Database]:
    """The database with its runner, which marks what an ended process left running; both are closed after."""
    with Database(settings().database) as db:
        keeper = api.runner(db, where)
        try:
            yield db
        finally:
            keeper.close()
