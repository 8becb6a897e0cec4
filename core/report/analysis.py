"""Analysis of a model: all studies that can measure a checkpoint on a task, with time and memory, as one job.

The job is a joint one (`core.studies.hypotheses.measure_heads`): it can be stopped and resumed, and each study is
stored as its own run.
"""

import json
import math
import os
from collections.abc import Collection
from dataclasses import dataclass

from .. import config
from ..errors import AtlasError, InputError
from ..jobs.duration_estimate import estimate_duration, foreseen_together
from ..models.config_files import heads_in, layers_in, read_config
from ..models.present import located, model_folder, parts_of
from ..models.weights import HEAD_FILE, tensors_in, weight_files
from ..store.database import Database
from ..store.rows import Row
from ..studies.ablation import translation
from ..studies.hypotheses.measure_heads import STUDY, Asked, MeasureHeadsOptions
from ..studies.lookup import find_study
from ..tasks.glue import task_of
from .data import facts_of, find_data
from .plan import ReportOptions, analyses

QUICK_SECONDS = 600.0  # that the default selection may take
ROWS, SWEPT, EFFECTIVE, TREES = 100, 50, 20, 60  # examples of a quick look; sweeps run each once per head
PROCESS = 500_000_000  # bytes of a worker without a model: Python, PyTorch and spaCy
BATCH, TOKENS = 32, 64  # examples whose maps are in memory together, and their tokens


@dataclass(frozen=True)
class PlannedStudy:
    """A study that can measure a checkpoint, with the estimated time on one core and the memory of one worker."""

    study: str
    options: Row
    shows: str
    seconds: float | None
    memory: int


@dataclass(frozen=True)
class AnalysisPlan:
    """A plan of all studies that can measure a checkpoint on a task, run by `cores` parallel workers."""

    checkpoint: str
    task: str
    studies: tuple[PlannedStudy, ...]
    cores: int

    @property
    def quick(self) -> tuple[str, ...]:
        """Return studies that can be run within a short time limit. Shorter studies are chosen first."""
        chosen, left = [], QUICK_SECONDS * self.cores
        for planned in self.studies:
            if planned.seconds is not None and planned.seconds <= left:
                chosen.append(planned.study)
                left -= planned.seconds
        return tuple(chosen)

    def of(self, names: Collection[str]) -> "list[PlannedStudy]":
        known = [planned.study for planned in self.studies]
        if unknown := sorted(set(names) - set(known)):
            raise InputError(
                f"Studies must be chosen from those that apply to this checkpoint and task ({', '.join(known)}); got "
                f"{unknown[0]!r}. Choose one of them."
            )
        return [planned for planned in self.studies if planned.study in names]

    def seconds(self, names: Collection[str]) -> float:
        """Estimate how many seconds the named studies take on all cores. Studies of unknown duration count as 0."""
        return sum(planned.seconds or 0.0 for planned in self.of(names)) / self.cores

    def job(self, names: Collection[str]) -> MeasureHeadsOptions:
        if not names:
            raise InputError("An analysis needs at least one study; got none. Choose a study.")
        return MeasureHeadsOptions(
            self.checkpoint,
            tuple(Asked(planned.study, json.dumps(planned.options)) for planned in self.of(names)),
        )

    def title(self, names: Collection[str]) -> str:
        studies = "1 study" if len(names) == 1 else f"{len(names)} studies"
        return f"Analysis of {self.checkpoint} on {task_of(self.task).name}: {studies}"


JOB = STUDY.name


def plan_analysis(db: Database, checkpoint: str, task: str, data: str | None = None) -> AnalysisPlan:
    """List every study that can measure a checkpoint on a task on this machine, with estimated time and memory.

    `data` is the folder of the examples (None: bundled samples). Raises CheckpointError if the checkpoint cannot be
    read, and InputError if the task has no examples or the checkpoint is an encoder-decoder.
    """
    if len(parts_of(checkpoint)) > 1:
        raise InputError(
            "The checkpoint must be an encoder or a decoder; this checkpoint is an encoder-decoder. Run the "
            f"study of translation instead: {config.command_line('study', translation.STUDY.name, checkpoint)}."
        )
    key = task_of(task).key
    options = ReportOptions(
        checkpoints=[checkpoint], data=data, tasks=[key], limit=ROWS, sweep_limit=SWEPT, effective_limit=EFFECTIVE,
        tree_limit=TREES,
    )  # fmt: skip
    asked = analyses(db, checkpoint, key, find_data(data), facts_of(checkpoint), options)
    needed = _Memory.of(checkpoint)
    planned = []
    for name, given in asked:
        study, seconds = find_study(name), _seconds(db, checkpoint, name, given)
        planned.append(PlannedStudy(name, given, study.question or study.gives, seconds, needed.of_study(name)))
    planned.sort(key=lambda study: (study.seconds is None, study.seconds))
    return AnalysisPlan(checkpoint, key, tuple(planned), max(1, min(config.settings().workers, os.cpu_count() or 1)))


def _seconds(db: Database, checkpoint: str, name: str, given: Row) -> float | None:
    """Return the seconds of a study on one core, from the most similar earlier run or the time per example."""
    try:
        timed = estimate_duration(db, name, given)
    except AtlasError:  # examples are missing: the job reports it
        return None
    if timed is not None:
        return max(timed.seconds, 1.0)
    return foreseen_together(db, checkpoint, {name: given})


@dataclass(frozen=True)
class _Memory:
    """What a worker needs in memory: the weights in bytes as float32, and the numbers of layers and heads."""

    weights: int
    layers: int
    heads: int

    @classmethod
    def of(cls, checkpoint: str) -> "_Memory":
        folder = located(checkpoint)
        base = model_folder(folder, checkpoint) if folder is not None else None
        if base is None:
            return cls(0, 0, 0)
        told = read_config(base, checkpoint)
        tensors = tensors_in(weight_files(base, checkpoint, HEAD_FILE))
        return cls(4 * sum(math.prod(shape) for _, shape in tensors.values()), layers_in(told), heads_in(told))

    def of_study(self, name: str) -> int:
        maps = 4 * BATCH * self.layers * self.heads * TOKENS**2 if find_study(name).looks_at_maps else 0
        return PROCESS + 2 * self.weights + maps  # some studies also keep the gradients of the weights
