"""Jobs, their units, and the outcomes of units. Outcomes are appended; the newest one is the state of a unit."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import JobError
from ..study_names import current_name
from .bodies import misfit, sound
from .database import Database
from .rows import Row, from_json, insert, now, quoted, to_json

if TYPE_CHECKING:
    import pandas as pd

_UNIT = pa.schema(
    [
        ("job", pa.string()),
        ("position", pa.int32()),
        ("key", pa.string()),
        ("size", pa.int64()),
        ("arguments", pa.string()),
    ]
)
_ROW = pa.schema([("job", pa.string()), ("position", pa.int32()), ("place", pa.int32()), ("body", pa.string())])
_NEWEST = """SELECT position, arg_max(state, ordinal) AS state, arg_max_null(error, ordinal) AS error,
        arg_max_null(seconds, ordinal) AS seconds, arg_max(worker, ordinal) AS worker,
        count(*) FILTER (state != 'again' OR error IS NOT NULL) AS attempts
    FROM job_outcome WHERE job = $job GROUP BY position"""


def add_job(db: Database, study: str, title: str, options: Mapping[str, Any]) -> str:
    """Add a job to the queue, and return its ID."""
    job = uuid.uuid4().hex[:12]
    with db.write() as cursor:
        cursor.execute(
            "INSERT INTO job (job, study, title, asked, options, state, created) VALUES (?, ?, ?, ?, ?, 'queued', ?)",
            [job, current_name(study), title, to_json(dict(options)), to_json(dict(options)), now()],
        )
    return job


def add_units(db: Database, job: str, options: Mapping[str, Any], units: Sequence[Row]) -> None:
    """Add units of work (key, size, arguments) to a job, and update the options of the job."""
    there = db.rows("SELECT key FROM job_unit WHERE job = ?", [job])
    keys = [*(key for (key,) in there), *(unit["key"] for unit in units)]
    if len(set(keys)) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise JobError(f"The units of a study must have unique keys; got {twice!r} twice. Report this bug.")
    rows = (
        {**unit, "job": job, "position": position, "arguments": to_json(unit["arguments"])}
        for position, unit in enumerate(units, len(there))
    )
    with db.write() as cursor:
        cursor.execute("UPDATE job SET options = ? WHERE job = ?", [to_json(dict(options)), job])
        insert(cursor, "job_unit", _UNIT, rows)


def one_job(db: Database, job: str) -> Row:
    """Return a stored job as a dictionary with its study, title, options, state, error, run and times.

    `asked` are the options as given; `options` are completed by defaults once the job is divided into units.
    """
    found = db.records("SELECT * FROM job WHERE job = ?", [job])
    if not found:
        raise JobError(f"A job must be listed on the Jobs page; got {job!r}. Choose a job from this page.")
    (row,) = found
    for column in ("options", "asked"):
        if why := misfit("job", column, row[column]):
            raise JobError(f"The job {job} cannot be read: {why}. Delete it.")
    return row | {"options": from_json(row["options"]), "asked": from_json(row["asked"])}


def set_state(db: Database, job: str, state: str, *, error: str | None = None, run: str | None = None) -> None:
    """Set the state of a job, such as "running", and record the start or end time of the job."""
    started = now() if state == "running" else None
    finished = now() if state not in {"queued", "running"} else None
    with db.write() as cursor:
        cursor.execute(
            """UPDATE job SET state = $state, error = $error, run = coalesce($run, run),
               started = coalesce($started, started), finished = $finished WHERE job = $job""",
            {"job": job, "state": state, "error": error, "run": run, "started": started, "finished": finished},
        )


def interrupt_running(db: Database) -> int:
    """Mark all running and queued jobs as interrupted, and return their number. The process that ran them must have
    ended."""
    with db.write() as cursor:
        rows = cursor.execute(
            "UPDATE job SET state = 'interrupted', finished = ? WHERE state IN ('running', 'queued') RETURNING job",
            [now()],
        ).fetchall()
    return len(rows)


def open_units(db: Database, job: str) -> list[Row]:
    """Return the units of a job that have not run yet or must run again, in order. Each unit is a dictionary with
    position, key, size, arguments and attempts."""
    units = db.records(
        f"""SELECT position, key, size, arguments, coalesce(attempts, 0) AS attempts FROM job_unit
            LEFT JOIN ({_NEWEST}) USING (position)
            WHERE job = $job AND (state IS NULL OR state = 'again') ORDER BY position""",  # noqa: S608 - our own text
        {"job": job},
    )
    return [unit | {"arguments": from_json(unit["arguments"])} for unit in units]


@dataclass(frozen=True)
class UnitEnd:
    """The result of running one unit of work in a job. `deaths` is the number of worker processes that died while
    running it."""

    rows: Sequence[Row] | None = None
    error: str | None = None
    seconds: float = 0.0
    worker: str = ""
    provenance: Row | None = None
    deaths: int = 0


def store_outcome(db: Database, job: str, position: int, outcome: UnitEnd) -> None:
    """Store the result or error of one unit of work in a job. A unit that has already succeeded is not changed."""
    error, state = outcome.error, "failed" if outcome.error else "done"
    with db.write() as cursor:
        done = cursor.execute(
            "SELECT 1 FROM job_outcome WHERE job = ? AND position = ? AND state = 'done' LIMIT 1", [job, position]
        ).fetchall()
        if done:
            return
        for _ in range(outcome.deaths):
            cursor.execute(
                "INSERT INTO job_outcome (job, position, state, error, finished) VALUES (?, ?, 'again', ?, ?)",
                [job, position, "its worker died", now()],
            )
        cursor.execute(
            """INSERT INTO job_outcome (job, position, state, error, seconds, worker, provenance, finished)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            [job, position, state, error, outcome.seconds, outcome.worker, to_json(outcome.provenance or {}), now()],
        )
        bodies = (
            {"job": job, "position": position, "place": place, "body": to_json(row)}
            for place, row in enumerate(outcome.rows or ())
        )
        insert(cursor, "job_row", _ROW, bodies)


def ask_again(db: Database, job: str) -> int:
    """Reset the failed units of a job so that they run again, and return the number of these units."""
    with db.write() as cursor:
        rows = cursor.execute(
            f"""INSERT INTO job_outcome (job, position, state, finished)
                SELECT $job, position, 'again', $now FROM ({_NEWEST}) WHERE state = 'failed'
                RETURNING position""",  # noqa: S608 - our own text
            {"job": job, "now": now()},
        ).fetchall()
    return len(rows)


def job_rows(db: Database, job: str) -> list[Row]:
    """Return the result rows of all finished units of a job, in the order of the units."""
    bodies = db.rows("SELECT body FROM job_row WHERE job = ? ORDER BY position, place", [job])
    name = f"a row of the job {job}"
    return [from_json(body) for (body,) in bodies if sound("job_row", name, {"body": body})]


def count_rows(db: Database, job: str) -> int:
    """Return the number of result rows that the finished units of a job have stored."""
    ((rows,),) = db.rows("SELECT count(*) FROM job_row WHERE job = ?", [job])
    return int(rows)


def job_provenance(db: Database, job: str) -> list[Row]:
    """Return the provenance record of each finished unit of a job, in order."""
    cursor = db.rows("SELECT provenance FROM job_outcome WHERE job = ? AND state = 'done' ORDER BY position", [job])
    name = f"what a unit of the job {job} reported"
    return [from_json(text) for (text,) in cursor if sound("job_outcome", name, {"provenance": text})]


def count_active(db: Database) -> int:
    """Return the number of running and queued jobs."""
    counts = db.rows("SELECT count(*) FROM job WHERE state IN ('queued', 'running')")
    return int(counts[0][0])


def unit_outcomes(db: Database, job: str) -> "pd.DataFrame":
    """Return a data frame with the state of each unit of work in a job, in order.

    `state` is None before the first outcome; `worker` is the host and process of the last attempt.
    """
    return db.read(
        f"""SELECT position, key, size, state, error, seconds, worker, coalesce(attempts, 0) AS attempts FROM job_unit
            LEFT JOIN ({_NEWEST}) USING (position) WHERE job = $job ORDER BY position""",  # noqa: S608 - our own text
        {"job": job},
    )


def by_worker(db: Database, job: str) -> "pd.DataFrame":
    """Return a data frame with one row per worker process of a job: numbers of finished units, failures and retries,
    and computing time in seconds."""
    return db.read(
        f"""SELECT worker, count(*) AS units, count(*) FILTER (state = 'failed') AS failed,
                sum(attempts - 1)::BIGINT AS retries, sum(seconds) AS seconds
            FROM ({_NEWEST}) WHERE state IN ('done', 'failed') GROUP BY worker ORDER BY units DESC, worker""",  # noqa: S608 - our own text
        {"job": job},
    )


def progress(db: Database, job: str) -> Row:
    """Return the progress of a job as a dictionary: numbers of units, unit sizes, and computing time in seconds."""
    (row,) = db.records(
        f"""SELECT count(*) AS units, count(*) FILTER (state = 'done') AS done,
               count(*) FILTER (state = 'failed') AS failed, coalesce(sum(size), 0)::BIGINT AS size,
               coalesce(sum(size) FILTER (state = 'done'), 0)::BIGINT AS size_done,
               coalesce(sum(seconds), 0) AS seconds
            FROM job_unit LEFT JOIN ({_NEWEST}) USING (position) WHERE job = $job""",  # noqa: S608 - our own text
        {"job": job},
    )
    return row


def jobs(db: Database) -> "pd.DataFrame":
    """Return a data frame of all jobs, newest first, with their state, times and numbers of units.

    `done` and `failed` count units, `workers` those that finished a unit, and `retries` attempts beyond the first.
    """
    return db.read(
        """WITH newest AS (SELECT job, position, arg_max(state, ordinal) AS state, arg_max(worker, ordinal) AS worker,
                   count(*) FILTER (state != 'again' OR error IS NOT NULL) AS attempts
                   FROM job_outcome GROUP BY job, position),
               counted AS (SELECT job_unit.job, count(*) AS units, count(*) FILTER (newest.state = 'done') AS done,
                   count(*) FILTER (newest.state = 'failed') AS failed,
                   count(DISTINCT newest.worker) FILTER (newest.worker != '') AS workers,
                   sum(greatest(newest.attempts - 1, 0)) AS retries
                   FROM job_unit LEFT JOIN newest USING (job, position) GROUP BY job_unit.job)
           SELECT job, study, title, state, error, run, created, started, finished,
                  coalesce(units, 0) AS units, coalesce(done, 0) AS done, coalesce(failed, 0) AS failed,
                  coalesce(workers, 0) AS workers, coalesce(retries, 0)::BIGINT AS retries
           FROM job LEFT JOIN counted USING (job) ORDER BY ordinal DESC"""
    )


def delete_job(db: Database, job: str) -> None:
    """Delete a job and its units. The results of its run remain stored."""
    with db.write() as cursor:
        for table in ("job_row", "job_outcome", "job_unit", "job"):
            cursor.execute(f"DELETE FROM {quoted(table)} WHERE job = ?", [job])  # noqa: S608 - quoted


def jobs_of(db: Database, study: str, *, unfinished: bool = False) -> list[Row]:
    """Return the jobs of a study, newest first, as dictionaries with job, state, options and run. If `unfinished` is
    True, return only unfinished jobs."""
    rows = db.records(
        """SELECT job.job, job.state, job.options, run.run FROM job LEFT JOIN run ON run.run = job.run
           WHERE job.study = ? AND (job.state <> 'done' OR NOT ?) ORDER BY job.ordinal DESC""",
        [current_name(study), unfinished],
    )
    return [row | {"options": from_json(row["options"])} for row in rows if sound("job", f"the job {row['job']}", row)]


def seconds_of(db: Database, run: str) -> float | None:
    """Return the computing time, in seconds, of the successful units behind a run; None if its job is not stored."""
    ((seconds,),) = db.rows(
        """SELECT sum(seconds) FROM job_outcome
           WHERE state = 'done' AND job IN (SELECT job FROM job WHERE run = ?)""",
        [run],
    )
    return seconds
