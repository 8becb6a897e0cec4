"""How long a job will take, from the time that one like it took; and what a stopped one has done, kept as a result."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from core import config
from core.errors import JobError
from core.jobs.answers import Answer
from core.jobs.scheduler import provenance_of
from core.jobs.worker import merged, summarize
from core.results.jobs import one_job, progress
from core.results.reading import Result
from core.store import jobs as store
from core.store import runs
from core.store.database import Database


@dataclass(frozen=True)
class Foreseen:
    """seconds: of work, for `rows` rows. like: title of the run whose rate it is; made: when; here: by this
    database's own."""

    seconds: float
    rows: int
    like: str
    made: datetime
    here: bool


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

    @property
    def first_checkpoint(self) -> str | None:
        """The only or the first one of which the weights tell the time."""
        return self.checkpoint or next(iter(self.checkpoints or ()), None) or self.before


def foreseen(db: Database, study: str, options: Mapping[str, Any]) -> Foreseen | None:
    """The time that rows of the most similar earlier run took each, times the rows asked for; scaled by the size of the
    weights where both are on this machine. None where no run of the study was timed, or the rows are not known."""
    known = runs.known_runs(db, study)
    rows = _rows(options, None)
    if known.empty or not rows:
        return None
    timed = [(_alike(json.loads(row.options), options), -place, row) for place, row in enumerate(known.itertuples())]
    for _, _, row in sorted(timed, key=lambda ranked: ranked[:2], reverse=True):
        before = json.loads(row.options)
        seconds = store.seconds_of(db, row.run) if row.source == "yours" else getattr(row, "seconds", None)
        took = _rows(before, row.row_ids if isinstance(row.row_ids, str) else None)
        if seconds and not pd.isna(seconds) and took:
            factor = _scale(options, before)
            return Foreseen(seconds / took * rows * factor, rows, row.title, row.created, row.source == "yours")
    return None


def keep_partial(db: Database, job: str) -> str:
    """Store what a stopped job has done as a result of its own, its title saying of how much; returns the run's id.

    Errors: JobError while it is at work, when it is done, or when no unit is.
    """
    db.person.must("annotator", "keep a part of a job")
    known, counted = one_job(db, job), progress(db, job)
    if known.active or known.state == "done" or not counted.done:
        raise JobError(
            f"A part is kept of a job that has stopped with units done; this one is {known.state} with "
            f"{counted.done} of {counted.units} units done."
        )
    answer = Answer.of(summarize(known.study, dict(known.options), store.job_rows(db, job)))
    about = provenance_of(known.options, merged(store.job_provenance(db, job)))
    title = f"{known.title} (stopped: {counted.done} of {counted.units} units)"
    with db.write():
        run = runs.record_run(db, known.study, known.options, about, title=title)
        runs.store_rows(db, run, answer.rows or ())
    return run


# ---------------------------------------------------------------- behind them


def _rows(options: Mapping[str, Any], row_ids: str | None) -> int | None:
    """Rows that options ask for, of all tasks and checkpoints; of a run, those it had."""
    extent = Extent.of(options)
    several = max(1, len(extent.tasks or ())) * max(1, len(extent.checkpoints or ()))
    several *= 2 if extent.compare else 1
    if extent.texts:
        return len(extent.texts) * several
    if row_ids and isinstance(row_ids, str) and (ids := json.loads(row_ids)):
        return len(ids)
    return extent.limit * several if extent.limit else None


def _alike(before: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    return sum(before.get(name) == value for name, value in options.items())


def _scale(options: Mapping[str, Any], before: Mapping[str, Any]) -> float:
    """How much larger the weights are."""
    sizes = [_weights(Extent.of(asked).first_checkpoint) for asked in (options, before)]
    return sizes[0] / sizes[1] if all(sizes) else 1.0


def _weights(name: str | None) -> int:
    """Bytes of a checkpoint's weights: of a folder, or of the bundled one that its name begins with; 0 if unknown."""
    if not name:
        return 0
    bundled = next((model for model in (config.ENCODER, config.DECODER) if Path(name).name.startswith(model)), name)
    folders = (Path(name).expanduser(), config.PROJECT / name, config.BUNDLED_MODELS / bundled)
    try:
        return next(
            (size for folder in folders if (size := sum(f.stat().st_size for f in folder.glob("*.safetensors")))), 0
        )
    except (OSError, ValueError, RuntimeError):
        return 0
