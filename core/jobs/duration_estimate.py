"""Estimates of the duration of a job from earlier runs, and storage of the finished part of a stopped job."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .. import config
from ..errors import AtlasError, JobError
from ..models.config_files import heads_in, layers_in, read_config
from ..models.present import located, model_folder
from ..models.weights import tensors_in
from ..store import jobs as store
from ..store import runs
from ..store.database import Database
from ..studies.contract import provenance_of_run
from ..studies.hypotheses import measure_heads
from ..studies.hypotheses.measure_heads import ROW_SECONDS
from ..studies.lookup import find_study
from ..studies.records import Result
from ..tasks.glue import read_rows
from ..tasks.own import is_own
from .api import must_start
from .records import Answer, one_job, progress
from .worker import merged, summarize

EVERY_TOKEN = 6_500_000  # multiplications that take as long as all else of a token: Python's calls, tables
BATCHED_TOKEN = 400_000  # the same in training with 32 examples in a batch
SEEN_WEIGHT = 1200  # multiplications that take as long as the softmax and measures of one weight
USUAL_TOKENS = 32  # of an example, where its text is not known
LETTERS = 4.5  # of a token of English
SAMPLED_ROWS = 200  # whose letters are counted
EMBEDDINGS = re.compile(r"embed|(^|\.)(wte|wpe)\.|shared\.weight|lm_head|predictions")
RECORDED_RATE = 4e10  # multiplications a second and core of the machine that made the record that ships


@dataclass(frozen=True)
class DurationEstimate:
    """An estimate of how long a job takes, based on an earlier run. `like` and `made` are the title and time of that
    run, and `here` is False if that run is bundled. `rows` is the number of items to process (None if unknown), and
    `counts` names the items, such as "tokens"."""

    seconds: float
    rows: int | None
    like: str
    made: datetime
    here: bool
    counts: str = "rows"


@dataclass(frozen=True, kw_only=True)
class Extent(Result):
    """The options of a job that determine how much is computed. Options that the study does not have are None."""

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
        """Return the first checkpoint of the job. Its model size is used to estimate the duration."""
        return self.checkpoint or next(iter(self.checkpoints or ()), None) or self.before

    @property
    def runs(self) -> int:
        """Return how many times a study processes its examples, for example once for each checkpoint and seed."""
        several = (self.checkpoints, self.after, self.initialisations, self.seeds)
        return prod(max(1, len(some or ())) for some in several) * (2 if self.compare else 1)

    @property
    def rows(self) -> int | None:
        """Return the number of examples in all tasks of a study; None if it is not known in advance."""
        if self.texts:
            return len(self.texts)
        tasks = list(self.tasks or ()) or [self.task]
        counts = [self._of_task(task) for task in tasks]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def tokens(self) -> float | None:
        """Return the mean number of tokens per example, estimated from the text length; None if the texts are
        unknown."""
        texts = [text if isinstance(text, str) else " ".join(part or "" for part in text) for text in self.texts or ()]
        for task in () if texts else (self.tasks or [self.task]):
            if task is None or (self.data and not is_own(task)):
                return None
            try:
                rows = read_rows(task, self.split or "dev", limit=min(self.limit or SAMPLED_ROWS, SAMPLED_ROWS))
            except AtlasError:  # the job will say so
                return None
            texts += [f"{row.text} {row.pair or ''}" for row in rows]
        return 3 + sum(map(len, texts)) / len(texts) / LETTERS if texts else None

    def _of_task(self, task: str | None) -> int | None:
        """Return the rows of a bundled sample or a file of one's own, at most `limit`; of others `limit`."""
        if task is None or (self.data and not is_own(task)):
            return self.limit
        try:
            return len(read_rows(task, self.split or "dev", limit=self.limit))
        except AtlasError:  # the job will say so
            return self.limit


@dataclass(frozen=True)
class ModelSize:
    """Properties of a model that determine its computing time. `weights` is the number of parameters without
    embeddings."""

    weights: int
    layers: int
    heads: int

    def work(self, tokens: float, *, maps: bool, batched: bool) -> float:
        """Return the approximate number of multiplications in a forward pass on an example with `tokens` tokens."""
        seen = SEEN_WEIGHT * self.layers * self.heads * tokens if maps else 0
        return tokens * (self.weights + (BATCHED_TOKEN if batched else EVERY_TOKEN) + seen)


@cache
def machine_rate() -> float:
    """Return the measured number of multiplications per second on one processor core of this machine."""
    rows, square = np.ones((256, 512), dtype=np.float32), np.ones((512, 512), dtype=np.float32)
    took = []
    for _ in range(8):
        start = time.thread_time()
        rows @ square
        took.append(time.thread_time() - start)
    return rows.size * len(square) / max(min(took), 1e-6)


def estimate_duration(
    db: Database, study: str, options: Mapping[str, Any], *, rate: Callable[[], float] = machine_rate
) -> DurationEstimate | None:
    """Estimate how long a job will take from the most similar earlier run of its study. Return None without such a run.

    The seconds of that run are multiplied by the ratio of what the study counts, otherwise of examples, otherwise of
    tasks, checkpoints, initialisations and seeds. If both checkpoints are on this machine, the ratio of their work is
    included. Runs of the bundled record are multiplied by the ratio of the rates of both machines (multiplications per
    second).
    """
    known = runs.known_runs(db, study)
    if known.empty:
        return None
    timed = []
    for place, row in enumerate(known.itertuples()):
        before = json.loads(row.options)
        alike = sum(before.get(name) == value for name, value in options.items())
        timed.append((alike, -place, row, before))
    for _, _, row, before in sorted(timed, key=lambda ranked: ranked[:2], reverse=True):
        seconds = store.seconds_of(db, row.run) if row.source == "yours" else getattr(row, "seconds", None)
        if seconds and not pd.isna(seconds):
            (factor, rows), counts = _amounts(study, options, before), find_study(study).counts
            if not factor:
                factor, rows = _times(options, before, row.row_ids if isinstance(row.row_ids, str) else None)
                counts = "rows"
            here, counted = row.source == "yours", counts == "tokens"
            seconds *= factor * _scale(study, options, before, counted=counted)
            seconds *= 1 if here else RECORDED_RATE / rate()
            return DurationEstimate(seconds, rows, row.title, row.created, here, counts)
    return None


def foreseen_together(db: Database, checkpoint: str, options_by_study: Mapping[str, Mapping[str, Any]]) -> float:
    """Estimate the seconds for one job that runs several studies on a checkpoint.

    Based on the time per example for the bundled classifier, the weights of both checkpoints, and an earlier such job.
    """
    usual = _together(checkpoint, options_by_study)
    for row in runs.runs(db, measure_heads.STUDY.name).itertuples():
        took, before = store.seconds_of(db, str(row.run)), json.loads(str(row.options))
        if took:
            steps = {one["study"]: json.loads(one["given"]) for one in before["studies"]}
            return usual * took / _together(before["checkpoint"], steps)
    return usual


def keep_partial(db: Database, job: str) -> str:
    """Store the partial results of a stopped job as a run, and return the ID of the run.

    Raises JobError if the job is running or done, or no unit is done; RightsError if the person may not start such
    jobs.
    """
    must_start(db, job, "keep a part of a job")
    known, counted = one_job(db, job), progress(db, job)
    if known.active:
        raise JobError(
            f"Partial results can only be stored for a stopped job; this job is {known.state}. Wait until it stops, or "
            "cancel it."
        )
    if known.state == "done":
        raise JobError(
            "Partial results can only be stored for an unfinished job; this job is done. Open its complete results."
        )
    if not counted.done:
        raise JobError(
            "Partial results can only be stored if at least one unit of work is finished; this job has finished none "
            f"of its {counted.units} units. Resume the job."
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
    """Return the ratio of the amounts of work of a job and an earlier run, and the amount; 0 and None if unknown."""
    try:
        declared = find_study(study)
        asked, was = (declared.amount(declared.read(told)) for told in (options, before))
    except AtlasError:  # missing rows, or an option of an earlier version
        return 0.0, None
    return (asked / was, asked) if asked and was else (0.0, None)


def _together(checkpoint: str, asked: Mapping[str, Mapping[str, Any]]) -> float:
    usual = sum(ROW_SECONDS.values()) / len(ROW_SECONDS)
    seconds = [ROW_SECONDS.get(study, usual) * (Extent.of(given).rows or 1) for study, given in asked.items()]
    shares = [
        _scale(study, {"checkpoint": checkpoint}, {"checkpoint": config.CLASSIFIER}) * took
        for study, took in zip(asked, seconds, strict=True)
    ]
    return sum(shares)


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


def _scale(study: str, options: Mapping[str, Any], before: Mapping[str, Any], *, counted: bool = False) -> float:
    """Return how many times as long an example takes as in an earlier run; 1 if a checkpoint is not on this machine.

    If `counted`, only the time per token is compared.
    """
    sizes = [_size(Extent.of(asked).first_checkpoint) for asked in (options, before)]
    tokens = [None if counted else Extent.of(asked).tokens for asked in (options, before)]
    if None in sizes:
        return 1.0
    if None in tokens:
        tokens = [USUAL_TOKENS, USUAL_TOKENS]
    work = [
        size.work(length, maps=find_study(study).looks_at_maps, batched=counted) * _passes(study, asked, size)
        for size, length, asked in zip(sizes, tokens, (options, before), strict=True)
        if size is not None and length is not None
    ]
    return work[0] / work[1]


def _passes(study: str, options: Mapping[str, Any], size: ModelSize) -> int:
    """Return how many times an example goes through the model: once without each head, or each layer, in a sweep."""
    if not (find_study(study).one_by_one or options.get("sweep")):
        return 1
    what = options.get("what", "heads")
    heads = size.heads if what in ("heads", "all-but-one", "duplicates") else 1
    return 1 if what == "groups" else max(1, size.layers * heads)


def _size(name: str | None) -> ModelSize | None:
    """The size of a checkpoint: of a folder, or of the bundled one that its name begins with; None if unknown."""
    if not name:
        return None
    bundled = next((model for model in (config.ENCODER, config.DECODER) if Path(name).name.startswith(model)), name)
    places = (located(name), config.PROJECT / name, config.BUNDLED_MODELS / bundled)
    for folder in (place for place in places if place is not None and config.is_folder(place)):
        try:
            base = model_folder(folder, name) or folder
            tensors = tensors_in(sorted(base.glob("*.safetensors")))
            weights = sum(prod(shape) for tensor, (_, shape) in tensors.items() if not EMBEDDINGS.search(tensor))
            if weights:
                told = read_config(base, name) if (base / "config.json").is_file() else {}
                return ModelSize(weights, layers_in(told), heads_in(told))
        except (OSError, ValueError, RuntimeError, AtlasError):
            continue
    return None
