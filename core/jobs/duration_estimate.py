"""How long a job will take, from the time that one like it took; and what a stopped one has done, kept as a result."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import prod
from pathlib import Path
from typing import Any

import pandas as pd
from safetensors import SafetensorError, safe_open

from .. import config
from ..errors import AtlasError, JobError
from ..store import jobs as store
from ..store import runs
from ..store.database import Database
from ..studies.hypotheses import measure_heads
from ..studies.hypotheses.measure_heads import ROW_SECONDS
from ..studies.lookup import find_study
from ..studies.provenance import provenance_of_run
from ..studies.records import Result
from ..tasks.glue import read_rows
from ..tasks.own import is_own
from .api import must_start
from .records import Answer, one_job, progress
from .worker import merged, summarize

EVERY_PASS = 400_000  # weights whose products take as long as all else of a pass (of 32 rows, on one core)


@dataclass(frozen=True)
class DurationEstimate:
    """How long a job will take.

    Attributes:
        rows: how many of what `counts` names the job has; None where that is not known.
        here: whether it is a run of this database, not of the record that ships.
    """

    seconds: float
    rows: int | None
    like: str
    made: datetime
    here: bool
    counts: str = "rows"


@dataclass(frozen=True, kw_only=True)
class Extent(Result):
    """The options of a study that say of how much it is; None where it has no such option."""

    texts: Sequence[Any] | None = None
    tasks: Sequence[Any] | None = None
    checkpoints: Sequence[str] | None = None
    checkpoint: str | None = None
    before: str | None = None
    compare: Any = None
    limit: int | None = None
    task: str | None = None
    split: str | None = None
    data: str | None = None
    after: Sequence[str] | None = None
    initialisations: Sequence[str] | None = None
    seeds: Sequence[int] | None = None

    @property
    def first_checkpoint(self) -> str | None:
        """The only or the first one of which the weights tell the time."""
        return self.checkpoint or next(iter(self.checkpoints or ()), None) or self.before

    @property
    def runs(self) -> int:
        """How many times the rows of a task are gone through: by checkpoint, initialisation and seed."""
        several = (self.checkpoints, self.after, self.initialisations, self.seeds)
        return prod(max(1, len(some or ())) for some in several) * (2 if self.compare else 1)

    @property
    def rows(self) -> int | None:
        """Rows of all tasks, as far as they are known without a checkpoint; None where nothing says how many."""
        if self.texts:
            return len(self.texts)
        tasks = list(self.tasks or ()) or [self.task]
        counts = [self._of_task(task) for task in tasks]
        return None if None in counts else sum(count or 0 for count in counts)

    def _of_task(self, task: str | None) -> int | None:
        """The rows of a bundled sample or a file of one's own, at most `limit`; of others `limit`."""
        if task is None or (self.data and not is_own(task)):
            return self.limit
        try:
            return len(read_rows(task, self.split or "dev", limit=self.limit))
        except AtlasError:  # the job will say so
            return self.limit


def estimate_duration(db: Database, study: str, options: Mapping[str, Any]) -> DurationEstimate | None:
    """How long a job will take, by the most similar earlier run of the study that was timed.

    That run's seconds, times the ratio of what the study counts, else of rows, else (where rows are not known) of
    tasks, checkpoints, initialisations and seeds; scaled by the number of weights where both checkpoints are on this
    machine.

    Args:
        db: whose runs are looked through, beside the record that ships.
        options: of the job, by name; the earlier run with most of them alike is taken, the newest of several.

    Returns:
        The estimate; None where no run of the study was timed.
    """
    known = runs.known_runs(db, study)
    if known.empty:
        return None
    timed = [(_alike(json.loads(row.options), options), -place, row) for place, row in enumerate(known.itertuples())]
    for _, _, row in sorted(timed, key=lambda ranked: ranked[:2], reverse=True):
        before = json.loads(row.options)
        seconds = store.seconds_of(db, row.run) if row.source == "yours" else getattr(row, "seconds", None)
        if seconds and not pd.isna(seconds):
            (factor, rows), counts = _amounts(study, options, before), find_study(study).counts
            if not factor:
                factor, rows = _times(options, before, row.row_ids if isinstance(row.row_ids, str) else None)
                counts = "rows"
            seconds *= factor * _scale(options, before)
            return DurationEstimate(seconds, rows, row.title, row.created, row.source == "yours", counts)
    return None


def foreseen_together(db: Database, checkpoint: str, options_by_study: Mapping[str, Mapping[str, Any]]) -> float:
    """Seconds of work that several studies of one checkpoint take as one job (core.studies.hypotheses.measure_heads).

    By what a row of each took of the bundled classifier, and the weights of both; where such a job was timed here,
    times how much longer it took than this says of it.

    Args:
        db: where earlier such jobs are stored.
        options_by_study: of each study by its name; one that is not in measure_heads.ROW_SECONDS counts as their mean.

    Returns:
        Seconds, above 0; 0 without a study.
    """
    usual = _together(checkpoint, options_by_study)
    for row in runs.runs(db, measure_heads.STUDY.name).itertuples():
        took, before = store.seconds_of(db, str(row.run)), json.loads(str(row.options))
        if took:
            steps = {one["study"]: json.loads(one["given"]) for one in before["studies"]}
            return usual * took / _together(before["checkpoint"], steps)
    return usual


def keep_partial(db: Database, job: str) -> str:
    """Store what a stopped job has done as a result of its own, its title saying of how much.

    Args:
        db: where the job is stored.

    Raises:
        JobError: the job is at work or done, or none of its units is done.
        RightsError: the person's role does not start jobs of this study.
    """
    must_start(db, job, "keep a part of a job")
    known, counted = one_job(db, job), progress(db, job)
    if known.active or known.state == "done" or not counted.done:
        raise JobError(
            f"A part is kept of a job that has stopped with units done; this one is {known.state} with "
            f"{counted.done} of {counted.units} units done."
        )
    answer = Answer.of(summarize(known.study, dict(known.options), store.job_rows(db, job)))
    about = provenance_of_run(known.options, merged(store.job_provenance(db, job)))
    title = f"{known.title} (stopped: {counted.done} of {counted.units} units)"
    with db.write():
        run = runs.record_run(db, known.study, known.options, about, title=title)
        runs.store_rows(db, run, answer.rows or ())
    return run


# ---------------------------------------------------------------- behind them


def _amounts(study: str, options: Mapping[str, Any], before: Mapping[str, Any]) -> tuple[float, int | None]:
    """How many times as much is asked for as an earlier run did by what the study counts, and how much; 0 and None
    where it does not say."""
    try:
        declared = find_study(study)
        asked, was = (declared.amount(declared.read(told)) for told in (options, before))
    except AtlasError:  # rows that are not there any more, or an option of an earlier version
        return 0.0, None
    return (asked / was, asked) if asked and was else (0.0, None)


def _together(checkpoint: str, asked: Mapping[str, Mapping[str, Any]]) -> float:
    usual = sum(ROW_SECONDS.values()) / len(ROW_SECONDS)
    seconds = [ROW_SECONDS.get(study, usual) * (Extent.of(given).rows or 1) for study, given in asked.items()]
    return sum(seconds) * _scale({"checkpoint": checkpoint}, {"checkpoint": config.CLASSIFIER})


def _times(options: Mapping[str, Any], before: Mapping[str, Any], row_ids: str | None) -> tuple[float, int | None]:
    """How many times as much is asked for as an earlier run did, and rows asked for. row_ids: of that run, as JSON."""
    asked, was = Extent.of(options), Extent.of(before)
    had = len(json.loads(row_ids) or ()) if row_ids else 0
    rows = asked.rows
    if rows and (had or was.rows):
        took = had if had and not was.tasks else (was.rows or had)
        return rows * asked.runs / (took * was.runs), rows * asked.runs
    tasks = [max(1, len(extent.tasks or ())) for extent in (asked, was)]
    return tasks[0] * asked.runs / (tasks[1] * was.runs), None


def _alike(before: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    return sum(before.get(name) == value for name, value in options.items())


def _scale(options: Mapping[str, Any], before: Mapping[str, Any]) -> float:
    """How many times as long a token takes: by the number of weights, and what a pass costs however few they are."""
    sizes = [_weights(Extent.of(asked).first_checkpoint) for asked in (options, before)]
    return (sizes[0] + EVERY_PASS) / (sizes[1] + EVERY_PASS) if all(sizes) else 1.0


def _weights(name: str | None) -> int:
    """How many weights a checkpoint has: of a folder, or of the bundled one that its name begins with; 0 if unknown."""
    if not name:
        return 0
    bundled = next((model for model in (config.ENCODER, config.DECODER) if Path(name).name.startswith(model)), name)
    folders = (Path(name).expanduser(), config.PROJECT / name, config.BUNDLED_MODELS / bundled)
    try:
        readable = [folder for folder in folders if config.within(folder)]
        counts = (sum(_weights_in(file) for file in folder.glob("*.safetensors")) for folder in readable)
        return next((count for count in counts if count), 0)
    except (OSError, ValueError, RuntimeError, SafetensorError):
        return 0


def _weights_in(file: Path) -> int:
    """The numbers in a safetensors file, by its header alone."""
    with safe_open(file, framework="numpy") as opened:
        return sum(prod(opened.get_slice(name).get_shape()) for name in opened.keys())  # noqa: SIM118 - no mapping
