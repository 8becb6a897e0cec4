"""What a fine-tuning run leaves: its figures, its folder, and while it goes on a picture of it. Needs no torch."""

import hashlib
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core import config
from core.store.rows import Row

METRICS = ("accuracy", "f1", "pearson", "spearman", "mse")
Figures = dict[str, float | None]


@dataclass(frozen=True)
class TunedRun:
    """One run. metrics: on dev; baseline: of the constant predictor `majority`; cut_rows: train rows that were cut.

    last_loss: None where nothing was learned. epochs: the log, a row each. held_heads: how many were held fixed.
    gold, predicted: of the dev rows, in their order. kept_epoch: whose weights these are; kept_because: why.
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

    def row(self) -> Row:
        """The run as a row of kind "run"."""
        names = (
            "constant", "note", "train_rows", "dev_rows", "cut_rows", "seconds", "last_loss", "folder", "majority",
            "baseline", "epochs", "kept_epoch", "kept_because",
        )  # fmt: skip
        key = {name: getattr(self, name) for name in ("task", "initialisation", "seed", "metric")}
        return {"kind": "run", **key, **self.metrics, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class TunedRuns:
    """The runs of some units."""

    runs: tuple[TunedRun, ...]


def table_rows(runs: Sequence[TunedRun]) -> list[Row]:
    """Rows of kind "run", then "mean" and "baseline" for each task, as Table 1 has them."""
    rows = [run.row() for run in runs]
    for task in dict.fromkeys(run.task for run in runs):
        mine = [run for run in runs if run.task == task]
        for initialisation in dict.fromkeys(run.initialisation for run in mine):
            rows.append(_mean([run for run in mine if run.initialisation == initialisation]))
        first = mine[0]
        baseline = {"kind": "baseline", "task": task, "initialisation": f"always {first.majority}"}
        rows.append(baseline | {"metric": first.metric, "n": 1, **first.baseline})
    return rows


def _mean(runs: Sequence[TunedRun]) -> Row:
    """Mean and standard deviation over seeds; runs whose correlation is undefined are counted, not averaged."""
    first = runs[0]
    about = {name: getattr(first, name) for name in ("task", "initialisation", "metric")}
    row: Row = {"kind": "mean", **about, "n": len(runs)}
    for name in METRICS:
        values = [value for run in runs if (value := run.metrics.get(name)) is not None]
        if any(name in run.metrics for run in runs):
            row[name] = statistics.fmean(values) if values else None
            row[f"{name}_sd"] = statistics.stdev(values) if len(values) > 1 else None
    constant = sum(run.constant for run in runs)
    note = f"constant predictions in {constant} of {len(runs)} runs" if constant else ""
    return row | {"constant": constant, "note": note}


# ---------------------------------------------------------------- folders, and a run under way


def runs_folder(out: str | None) -> Path:
    """Where fine-tuned checkpoints go: `out`, or beside the database."""
    return Path(out or config.settings().runs / "finetuned").expanduser()


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
