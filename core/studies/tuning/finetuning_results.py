"""What a fine-tuning run leaves: its figures, its folder, and while it goes on a picture of it. Needs no torch."""

import hashlib
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ... import config
from ...store.rows import Row
from .records import TunedRunScore, TunedScore

METRICS = ("accuracy", "f1", "pearson", "spearman", "mse")
Figures = dict[str, float | None]


@dataclass(frozen=True)
class TunedRun:
    """One run of fine-tuning.

    Attributes:
        seed: of its head and the order of its rows.
        metrics: on the dev rows, by name; None where one is not defined.
        constant: whether all predictions are the same.
        note: what else is to be said of it.
        seconds: that it took; NaN where nobody measured them.
        last_loss: the last training loss; None where nothing was learned.
        folder: of the checkpoint; "" where none is left.
        epochs: the log, a row each.
        gold: labels as the task numbers them, or scores. *Shape:* (dev row,).
        predicted: likewise. *Shape:* (dev row,).
    """

    task: str
    initialisation: str
    seed: int
    metric: str
    metrics: Figures
    constant: bool
    note: str
    train_rows: int
    dev_rows: int
    cut_rows: int
    seconds: float
    last_loss: float | None
    folder: str
    majority: str
    baseline: Figures
    epochs: list[Row]
    held_heads: int
    gold: np.ndarray
    predicted: np.ndarray
    kept_epoch: int | None = None
    kept_because: str = ""

    def score(self) -> TunedRunScore:
        """The run as one of the study's results."""
        return TunedRunScore(
            task=self.task, initialisation=self.initialisation, seed=self.seed, metric=self.metric,
            constant=self.constant, note=self.note, train_rows=self.train_rows, dev_rows=self.dev_rows,
            cut_rows=self.cut_rows, seconds=self.seconds, last_loss=self.last_loss, folder=self.folder,
            majority=self.majority, baseline=self.baseline, epochs=self.epochs, kept_epoch=self.kept_epoch,
            kept_because=self.kept_because, **_stated(self.metrics),
        )  # fmt: skip


@dataclass(frozen=True)
class TunedRuns:
    """The runs of some units."""

    runs: tuple[TunedRun, ...]


def table_scores(runs: Sequence[TunedRun]) -> list[TunedScore]:
    """Each run, then means and the constant predictor of each task, as Table 1 has them."""
    scores: list[TunedScore] = [run.score() for run in runs]
    for task in dict.fromkeys(run.task for run in runs):
        mine = [run for run in runs if run.task == task]
        for initialisation in dict.fromkeys(run.initialisation for run in mine):
            scores.append(_mean([run for run in mine if run.initialisation == initialisation]))
        first = mine[0]
        scores.append(
            TunedScore(kind="baseline", task=task, initialisation=f"always {first.majority}", metric=first.metric, n=1,
                       **_stated(first.baseline))
        )  # fmt: skip
    return scores


def _mean(runs: Sequence[TunedRun]) -> TunedScore:
    """Mean and standard deviation over seeds; runs whose correlation is undefined are counted, not averaged."""
    first, figures = runs[0], Figures()
    for name in METRICS:
        values = [value for run in runs if (value := run.metrics.get(name)) is not None]
        if any(name in run.metrics for run in runs):
            figures[name] = statistics.fmean(values) if values else None
            figures[f"{name}_sd"] = statistics.stdev(values) if len(values) > 1 else None
    constant = sum(run.constant for run in runs)
    note = f"constant predictions in {constant} of {len(runs)} runs" if constant else ""
    return TunedScore(kind="mean", task=first.task, initialisation=first.initialisation, metric=first.metric,
                      n=len(runs), constant=constant, note=note, **_stated(figures))  # fmt: skip


def _stated(figures: Figures) -> dict[str, Any]:
    """Scores by name for a record: what is undefined is said to be so, not left out."""
    return {name: math.nan if value is None else value for name, value in figures.items()}


# ---------------------------------------------------------------- folders, and a run under way


def runs_folder(out: str | None) -> Path:
    """Where fine-tuned checkpoints go: `out`, or beside the database."""
    return config.inside(out, to_write=True) if out else config.settings().runs / "finetuned"


def run_key(task: str, what: str, decides: Mapping[str, Any]) -> str:
    """A run's name: readable, and different wherever anything that decides its result differs.

    decides: those things by name, the checkpoint among them; what: initialisation and seeds, say.
    """
    digest = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:6]
    return f"{Path(decides['checkpoint']).name[:40]}-{Path(task).stem[:40]}-{what}-{digest}"


def state_of(folder: Path) -> Path:
    """Where a run that goes to `folder` keeps what it needs to be taken up again."""
    return folder.with_name(folder.name + ".state")


def live_file(out: str | None, key: str) -> Path:
    """Where a run under way writes what a page shows of it."""
    return runs_folder(out) / f"{key}.live.json"


def live_picture(log: Any) -> Row:
    """Loss so far (at most 200 means), dev metrics, steps and time left."""
    every = max(1, -(-len(log.losses) // 200))
    blocks = [log.losses[k : k + every] for k in range(0, len(log.losses), every)]
    return {
        "step": log.step,
        "steps": log.steps,
        "left": log.seconds_left,
        "losses": [{"step": (k + 1) * every, "loss": statistics.fmean(block)} for k, block in enumerate(blocks)],
        "epochs": log.epochs,
    }
