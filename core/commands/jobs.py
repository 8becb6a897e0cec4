"""`python -m core jobs`: list, start, resume and cancel jobs."""

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
from ..studies.imports import result_rows
from ..studies.stored_runs import one_run
from .output import (
    Form,
    ask_to_cancel,
    follow,
    ran,
    show_rows,
    tell,
)
from .parameters import FORMS, PLACES, of_record, with_form

app = typer.Typer(help="List, start, resume and cancel jobs.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(help="ID of the job, as shown by `jobs list`")]


def _records(frame: pd.DataFrame) -> list[Row]:
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


@app.command("list")
@with_form
def list_jobs(form: Form) -> None:
    """List jobs, newest first."""
    with _opened() as db:
        jobs = store.jobs(db).drop(columns="run")
        show_rows("jobs", {"database": str(db.path)}, _records(jobs), form)


@dataclass(frozen=True)
class Starting:
    """Options for starting a job: the study to run and its options."""

    study: Annotated[str, Flag("name of the study to run, such as statistics", argument=True)]
    options: Annotated[
        list[str] | None, Flag("option of the study as NAME=VALUE; VALUE is JSON or plain text", name="--set")
    ] = None


@app.command()
@of_record(Starting, beside=PLACES | FORMS)
def start(asked: Starting, form: Form, where: JobPlacement) -> None:
    """Run a study with the options given on the command line. Other options have their defaults."""
    provenance, rows = ran(asked.study, dict(map(_option, asked.options or [])), where=where)
    show_rows(asked.study, provenance, rows, form)


def _option(typed: str) -> tuple[str, Any]:
    name, equals, value = typed.partition("=")
    if not equals or not re.fullmatch(r"\w+", name):
        raise InputError(f"An option must be written NAME=VALUE; got {typed!r}. Write, for example, --set limit=100.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


@app.command()
@with_form
def resume(job: Id, *, form: Form, where: JobPlacement) -> None:
    """Resume a stopped job and print its result rows. Units of work that failed are run again."""
    with _opened(where) as db:
        api.resume(db, job)
        run = follow(db, job)
        show_rows(one_run(db, run).study, runs.one_run(db, run), result_rows(db, run), form)


@app.command()
def cancel(job: Id) -> None:
    """Cancel a job, even if it runs in the app. Finished units remain stored, and the job can be resumed."""
    if not re.fullmatch(r"\w+", job):
        raise JobError(f"A job ID must consist of letters and digits; got {job!r}. Use an ID from `jobs list`.")
    try:
        with _opened() as db:
            if one_job(db, job).state == "done":
                raise JobError(
                    "Only a job with unfinished work can be cancelled; this job is done. Run `jobs list` to see "
                    "other jobs."
                )
            store.set_state(db, job, "cancelled")
    except LockedError as error:
        if not ask_to_cancel(job):
            raise JobError(
                f"The job must be cancelled by the process that runs it; this process ({error.holder}) did not answer "
                "the request. Cancel the job on the app's Jobs page."
            ) from error
        tell(f"{error.holder} has been asked to cancel the job.")
        return
    tell("The job has been cancelled. Use `jobs resume` to continue it.")


@app.command()
@with_form
def show(job: Id, *, form: Form) -> None:
    """Show the states and errors of the units of work in a job."""
    with _opened() as db:
        job_record = store.one_job(db, job)
        show_rows(one_job(db, job).title, job_record, _records(store.unit_outcomes(db, job)), form)


@contextmanager
def _opened(where: JobPlacement | None = None) -> Iterator[Database]:
    """Open the database with its runner, which marks jobs of ended processes as interrupted; close both afterwards."""
    with Database(settings().database) as db:
        keeper = api.runner(db, where)
        try:
            yield db
        finally:
            keeper.close()
