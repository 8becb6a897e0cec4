"""One fine-tuning run as studies make it: rows, training, what a page sees meanwhile, and the folder it leaves."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...capture.interventions import Intervention
from ...capture.running import prepared
from ...models.checkpoint import Checkpoint
from ...store.rows import plain
from ...tasks.glue import Task, TaskRow, fingerprint, must_have_labels, read_rows
from ...tasks.metrics import majority
from ...tuning.batches import encode
from ...tuning.live import Live
from ...tuning.model import initialised
from ...tuning.recipe import Recipe, Seeds
from ...tuning.saved_checkpoints import shown_folder, training_log
from ...tuning.saving import save_tuned
from ...tuning.training import Fit, TrainingOutcome
from .finetuning_results import (
    TunedRun,
    live_file,
    live_picture,
    runs_folder,
    state_of,
)


@dataclass(frozen=True)
class FinetuningRun:
    """What is trained, and where it goes.

    Attributes:
        seeds: of head, rows and order.
        data: folder of the rows; None for the bundled ones.
        out: the folder of checkpoints; None for the usual one.
        key: the name of this run's folder in it, and of its state.
        held: interventions under which it learns and is measured; None: the model as it is.
    """

    task: Task
    initialisation: str
    start: str
    seeds: Seeds
    preset: str
    recipe: Recipe
    data: str | None
    out: str | None
    key: str
    held: Sequence[Intervention] | None = None

    @property
    def folder(self) -> Path:
        """Where the checkpoint goes."""
        return runs_folder(self.out) / self.key


def tune(base: Checkpoint, run: FinetuningRun) -> tuple[TunedRun, list[str]]:
    """Train, measure on dev, save; a run that was killed takes its state up again. The run, and ids of its dev rows."""
    task, recipe = run.task, run.recipe
    must_have_labels(task)
    train = read_rows(task, "train", folder=run.data, limit=recipe.train_limit, seed=run.seeds.rows)
    dev = read_rows(task, "dev", folder=run.data, limit=recipe.dev_limit)  # the same rows for every seed
    return tune_on(base, run, train, dev), [row.id for row in dev]


def tune_on(base: Checkpoint, run: FinetuningRun, train: list[TaskRow], dev: list[TaskRow]) -> TunedRun:
    """Train on the rows given, measure on dev, save, as `tune` does."""
    task, recipe = run.task, run.recipe
    length = min(recipe.max_length, base.max_length)
    learned, measured = encode(base, train, length), encode(base, dev, length)
    state, live = state_of(run.folder), Live(live_file(run.out, run.key))
    model: Any = initialised(base, task, run.start, recipe, run.seeds.head).to(base.device)
    fit = Fit(
        base, task, model, learned, measured, recipe, run.seeds.order,
        state=state,
        identity=f"{run.key} {base.weights_hash} {fingerprint(train)} {fingerprint(dev)}",
        on_step=lambda log: live.write(live_picture(log), now=log.epochs[-1]["step"] == log.step),
    )  # fmt: skip
    with nullcontext() if run.held is None else prepared(Checkpoint(base.name, model, base.tokenizer), run.held):
        outcome = fit.run()
    cut = sum(example.encoding.cut > 0 for example in learned)
    save_tuned(run.folder, outcome, base, _facts(run, train, dev, cut))
    state.unlink(missing_ok=True)
    live.place.unlink(missing_ok=True)
    return _tuned(run, outcome, train, dev, cut)


def is_trained(base: Checkpoint, run: FinetuningRun, train: list[TaskRow], dev: list[TaskRow]) -> bool:
    """Whether the run's folder has what this recipe made of these rows already."""
    log, decides = training_log(run.folder), {"base_hash": base.weights_hash} | _decides(run, train, dev)
    return {name: log.get(name) for name in decides} == decides


def _decides(run: FinetuningRun, train: list[TaskRow], dev: list[TaskRow]) -> dict[str, Any]:
    return {
        "recipe": run.recipe.as_options(),
        "train_rows_hash": fingerprint(train),
        "dev_rows_hash": fingerprint(dev),
        "seeds": asdict(run.seeds),
    }


def _facts(run: FinetuningRun, train: list[TaskRow], dev: list[TaskRow], cut: int) -> dict[str, Any]:
    held = (
        {}
        if run.held is None
        else {"held": {intervention.operator: sorted(map(str, intervention.heads)) for intervention in run.held}}
    )
    return {
        "task": run.task.key,
        "initialisation": run.initialisation,
        "seed": run.seeds.order,
        "preset": run.preset,
        "data": run.data or "bundled samples",
        "rows": {"train": len(train), "dev": len(dev), "cut": cut},
        **_decides(run, train, dev),
        **held,
    }


def _tuned(
    run: FinetuningRun, outcome: TrainingOutcome, train: list[TaskRow], dev: list[TaskRow], cut: int
) -> TunedRun:
    task, gold = run.task, [row.label for row in dev]
    name, constant = majority(task, [row.label for row in train], gold)
    one_class = task.labels[int(outcome.predicted[0])] if outcome.constant and task.labels else None
    return TunedRun(
        task=task.key,
        initialisation=run.initialisation,
        seed=run.seeds.order,
        metric=task.metric,
        metrics=plain(outcome.metrics),
        constant=bool(outcome.constant),
        note=f"constant predictions: {one_class or 'one score'}" if outcome.constant else "",
        train_rows=len(train),
        dev_rows=len(dev),
        cut_rows=cut,
        seconds=round(outcome.log.seconds, 1),
        last_loss=outcome.log.losses[-1] if outcome.log.losses else None,
        folder=shown_folder(run.folder),
        majority=name,
        baseline=plain(constant),
        epochs=plain(outcome.log.epochs),
        held_heads=sum(len(intervention.heads) for intervention in run.held or ()),
        gold=np.array(gold),
        predicted=np.array([float(value) if task.is_score else int(value) for value in outcome.predicted]),
        kept_epoch=outcome.log.best,
        kept_because=_why_kept(run.recipe, task, trained=len(outcome.log.epochs) - 1),
    )


def _why_kept(recipe: Recipe, task: Task, *, trained: int) -> str:
    """Why the weights are those of the epoch that was kept."""
    if not trained:
        return "nothing learned: as it began"
    if recipe.keep == "best":
        return f"best {task.metric} on dev of epochs 1 to {trained} (keep=best)"
    return "the last (keep=last)"
